//! Opening, creating, waiting, deleting and closing.

mod world;

use broker::{Ask, Broker, Config, Error, Terms};
use client::{Journals, Stat};
use cluster::{Change, Expect};
use index::SystemClock;
use index::disk::{Crash, Disk, Open, Trouble};
use protocol::request::{ReadFrom, ReadRequest};
use protocol::{Offset, Span, Status};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use world::{World, journal, until};

const ENOSPC: i32 = 28;

#[tokio::test]
async fn creations_at_once_make_one_journal() {
    let world = World::new().await;
    let name = journal("a/journal");
    let census = *Journals::census(&world.broker).borrow();
    let creations = (0..8).map(|_| Journals::create(&world.broker, &name));
    let created = futures::future::join_all(creations).await;
    let created: Vec<Stat> = created.into_iter().map(|one| one.expect("it is there")).collect();
    assert!(created.iter().all(|stat| stat.life == created[0].life));
    assert_eq!(*Journals::census(&world.broker).borrow(), census + 1);
    let listed = Journals::list(&world.broker, "a/").await.expect("it is listed");
    assert_eq!(listed, created[..1]);
    assert!(Journals::list(&world.broker, "b/").await.expect("nothing").is_empty());
}

#[tokio::test]
async fn on_a_full_disk_a_creation_is_refused_as_an_append_is() {
    let world = World::new().await;
    world.create("a/journal").await;
    let next = world.disk.operations_of("write");
    for nth in next..next + 100 {
        world.disk.fail(Trouble { operation: Some("write"), nth, errno: ENOSPC });
    }
    let name = journal("b/journal");
    let refused = Journals::create(&world.broker, &name).await;
    assert!(matches!(refused, Err(client::Error::NoSpace(..))), "{refused:?}");
    while world.disk.operations_of("write") < next + 100 {
        let _ = Journals::create(&world.broker, &name).await;
    }
    Journals::create(&world.broker, &name).await.expect("there is room again");
}

#[tokio::test]
async fn names_are_refused() {
    let world = World::new().await;
    world.create("a/journal").await;
    // Case: a name, whether it is taken
    for (name, is_taken) in [
        ("b/journal", true),
        ("a/journal/inner", false),
        ("b/some.tmp", false),
        ("b/.courant/x", false),
    ] {
        let refused = Journals::may_create(&world.broker, &journal(name));
        assert_eq!(refused.is_ok(), is_taken, "{name}");
        let created = Journals::create(&world.broker, &journal(name)).await;
        assert_eq!(created.is_ok(), is_taken, "{name}");
    }
}

#[tokio::test]
async fn growth_ends_a_wait_and_so_does_the_end_of_a_life() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    let name = journal("a/journal");
    let (broker, life) = (world.broker.clone(), served.life());
    let (asked, waited) = (name.clone(), broker.clone());
    let grown = tokio::spawn(async move { waited.grown(&asked, life, Offset::ZERO).await });
    world.append("a/journal", "content").await;
    let stat = grown.await.expect("no panic").expect("it grew");
    assert_eq!(stat.head, Offset::from(7));
    let asked = name.clone();
    let gone = tokio::spawn(async move { broker.grown(&asked, life, Offset::from(7)).await });
    tokio::task::yield_now().await;
    Journals::purge(&world.broker, &name).await.expect("it goes");
    let gone = gone.await.expect("no panic");
    assert!(matches!(gone, Err(client::Error::NotFound(_))), "{gone:?}");
}

#[tokio::test]
async fn a_blocked_read_goes_on_with_the_next_append() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "old").await;
    let request =
        ReadRequest { block: true, ..ReadRequest::new(journal("a/journal"), ReadFrom::Head) };
    let resolution = world.broker.resolve(&Ask::from(&request)).await.expect("it resolves");
    let mut reader = world.broker.reader(&resolution, request).expect("it may be read");
    let follower = tokio::spawn(async move {
        let mut content = Vec::new();
        while let Some(step) = reader.next().await {
            if let broker::Step::Content { content: more, .. } = step.expect("it goes on") {
                content.extend_from_slice(&more);
            }
        }
        content
    });
    tokio::task::yield_now().await;
    world.append("a/journal", "new").await;
    world.append("a/journal", "er").await;
    until("the reader has all", || async { true }).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    // A closing broker ends the stream.
    world.broker.close().await.expect("it closes");
    assert_eq!(follower.await.expect("no panic"), b"newer");
}

#[tokio::test]
async fn reads_end_where_they_shall() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "0123456789").await;
    let at = |offset: u32| ReadFrom::At(offset.into());
    // Case: begin, end, metadata only, statuses, content
    let ok = Status::Ok;
    let end = Status::OffsetNotYetAvailable;
    for (from, until, is_metadata, statuses, expected) in [
        (at(0), None, false, vec![ok, end], "0123456789"),
        (at(4), Some(7), false, vec![ok], "456"),
        (at(4), Some(4), false, vec![ok], ""),
        (at(2), None, true, vec![ok], ""),
        (ReadFrom::Head, None, true, vec![end], ""),
        (at(12), None, false, vec![end], ""),
    ] {
        let (metadata, content) = world
            .messages("a/journal", from, |request| {
                request.end = until.map(|end: u32| end.into());
                request.metadata_only = is_metadata;
            })
            .await;
        let found: Vec<_> = metadata.iter().map(|one| one.status).collect();
        assert_eq!((found, content.as_str()), (statuses, expected), "{from:?}");
        assert!(metadata.iter().all(|one| one.write_head == Offset::from(10)));
    }
}

#[tokio::test]
async fn local_files_without_a_spec_are_set_aside_and_named() {
    let world = World::new().await;
    let (keys, kept) = (Path::new("keyspace.redb"), Path::new("kept.redb"));
    let early = world.disk.crash(Crash::Kill).open(keys, Open::Read).expect("it is there");
    let len = usize::try_from(early.len().expect("memory")).expect("it is small");
    let early = early.read_new(len, 0).expect("memory");
    let served = world.create("a/journal").await;
    world.append("a/journal", "content").await;
    let disk = world.disk.crash(Crash::Kill);
    // A key space that was restored from a copy of before.
    disk.rename(keys, kept).expect("it is there");
    index::disk::replace(&disk, keys, &early).expect("memory");
    let after = World::on(disk.clone(), world.files.crash(Crash::Kill), |_| ()).await;
    assert!(after.broker.served(&journal("a/journal")).is_none());
    let note = format!("lost+found/{}.name", served.life());
    let file = disk.open(Path::new(&note), Open::Read).expect("it is named");
    let mut name = [0; 10];
    file.read_at(&mut name, 0).expect("memory");
    assert_eq!(&name, b"a/journal\n");
    // Case: the right copy is found after all, with and without what says how much of the files is
    // right, as an earlier release left them. No offset is used twice.
    for has_ledger in [true, false] {
        let disk = disk.crash(Crash::Kill);
        disk.rename(kept, keys).expect("it is there");
        if !has_ledger {
            let ledger = format!("lost+found/{}.ledger", served.life());
            disk.remove(Path::new(&ledger)).expect("it is there");
        }
        let again = World::on(disk, world.files.crash(Crash::Kill), |_| ()).await;
        match again.read("a/journal", 0).await {
            Ok(content) => assert!(has_ledger && content == "content", "{content}"),
            Err(client::Error::Damaged { .. }) if !has_ledger => {}
            Err(error) => panic!("with a ledger: {has_ledger}: {error}"),
        }
        assert_eq!(again.append("a/journal", "more").await.span, Span::at(Offset::from(7), 4));
        assert_eq!(again.read("a/journal", 7).await.expect("local"), "more");
    }
}

#[tokio::test]
async fn misrouted_requests_and_revisions() {
    let world = World::new().await;
    world.create("a/journal").await;
    let mut header = world.broker.header();
    let ask = Ask { header: Some(header.clone()), ..Ask::new(journal("a/journal")) };
    let resolution = world.broker.resolve(&ask).await.expect("it is for us");
    assert_eq!(resolution.status, Status::Ok);
    world.broker.header_of(&resolution).validate().expect("Gazette's clients take it");
    header.etcd.cluster_id += 1;
    let ask = Ask { header: Some(header), ..Ask::new(journal("a/journal")) };
    assert!(matches!(world.broker.resolve(&ask).await, Err(Error::Misrouted(_))));
    let revision = world.broker.header().etcd.revision;
    let ask = Ask { min_revision: revision + 1, ..Ask::new(journal("b/journal")) };
    let broker = world.broker.clone();
    let waiting = tokio::spawn(async move { broker.resolve(&ask).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    world.create("b/journal").await;
    assert!(waiting.await.expect("no panic").is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_directory_is_closed_and_opened_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || async {
        let config = Config::at(dir.path(), Arc::new(SystemClock), 5).expect("it can be made");
        Broker::open(config).await.expect("it opens")
    };
    let broker = open().await;
    let name = journal("a/journal");
    broker.create(&name).await.expect("it is created");
    let resolution = broker.resolve(&Ask::new(name.clone())).await.expect("it resolves");
    let content = bytes::Bytes::from("0123456789abcdef".repeat(20_000));
    let terms = Terms::default();
    broker.append_bytes(resolution, terms, content.clone()).await.expect("it happens");
    let loan = Journals::lend(&broker, &name).expect("it is local and whole");
    drop(loan);
    broker.close().await.expect("it closes");
    let refused = broker.resolve(&Ask::new(name.clone())).await;
    assert!(matches!(refused, Err(Error::Closing)));
    drop(broker);
    let broker = open().await;
    assert!(broker.recovered().is_clean);
    let served = broker.served(&name).expect("it exists");
    let mut read = Vec::new();
    while read.len() < content.len() {
        let offset = Offset::ZERO.plus(read.len() as u64);
        read.extend_from_slice(&broker.read_at(&served, offset, 1 << 20).await.expect("local"));
    }
    assert!(read == content);
    broker.close().await.expect("it closes");
}

#[tokio::test(start_paused = true)]
async fn a_spec_applied_twice_conflicts() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    let spec = served.entry().spec.clone();
    let again = Change::Upsert { spec, expect: Expect::Absent };
    let outcome = world.broker.apply(vec![again]).await.expect("it is decided");
    assert!(matches!(outcome, cluster::Outcome::Conflict { .. }));
}
