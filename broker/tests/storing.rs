//! Persisting, evicting, reading back, and who else may write to a store.

mod world;

use broker::specs::Purge;
use broker::{Error, Terms};
use bytes::Bytes;
use client::{Append, Journals, Writer};
use cluster::{Change, Expect, Outcome};
use index::disk::{Crash, Disk, ForgetfulDisk, Open, Trouble};
use protocol::request::{FragmentsRequest, ReadFrom};
use protocol::{Codec, Fragment, JournalSpec, Offset, Span, Status};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use world::{World, journal, until};

/// Puts an object into a file store, behind everybody's back.
fn plant(files: &ForgetfulDisk, path: &str, content: &[u8]) {
    let path = Path::new(path);
    files.create_dir(path.parent().expect("it is in a directory")).expect("memory");
    let file = files.open(path, Open::New).expect("memory");
    file.write_at(content, 0).expect("memory");
}

async fn persisted(world: &World, name: &str) {
    let served = world.broker.served(&journal(name)).expect("it exists");
    served.replica().roll().expect("the log takes it");
    let head = served.replica().head();
    until("everything is persisted", || async { served.replica().persisted() == head }).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_evicted_is_read_back_byte_for_byte() {
    for codec in [Codec::None, Codec::Gzip, Codec::Zstandard, Codec::Snappy] {
        let world = World::with(|config| config.space.local_budget = Some(0)).await;
        let served = world.apply("a/journal", |spec| spec.fragment.codec = codec).await;
        let mut expected = String::new();
        for round in 0..3 {
            let content = format!("round {round}: {}", "0123456789\n".repeat(10_000));
            // The budget of nothing refuses appends until what is there was evicted.
            until("there is room", || async { served.replica().local_len() == 0 }).await;
            until("it is appended", || async {
                world.commit("a/journal", Terms::default(), &content).await.is_ok()
            })
            .await;
            expected.push_str(&content);
            persisted(&world, "a/journal").await;
        }
        until("it is evicted", || async { served.replica().local_len() == 0 }).await;
        assert_eq!(world.read("a/journal", 0).await.expect("stored"), expected, "{codec}");
        let (metadata, content) =
            world.messages("a/journal", ReadFrom::At(10.into()), |_| ()).await;
        assert_eq!(content, expected[10..], "{codec}");
        let shown: Vec<_> = metadata.iter().filter_map(|one| one.fragment.clone()).collect();
        assert_eq!(shown.len(), 3);
        assert!(shown.iter().all(Fragment::is_persisted) && metadata[0].header.is_some());
        let served_after = world.crashed(Crash::Power(3)).await;
        assert_eq!(served_after.read("a/journal", 0).await.expect("stored"), expected, "{codec}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_spool_longer_than_the_budget_is_closed_early() {
    const BUDGET: u64 = 1 << 20;
    const APPENDS: usize = 40;
    let world = World::with(|config| config.space.local_budget = Some(BUDGET)).await;
    // Their fragments are longer than all that may be local.
    let journals = ["a/first", "a/second"];
    for name in journals {
        world.apply(name, |spec| spec.fragment.length = 1 << 30).await;
    }
    let content = "0123456789\n".repeat(10_000);
    for _ in 0..APPENDS {
        for name in journals {
            // The store is as quick as it is: an append may find no room, and finds some soon.
            until("there is room again", || async {
                world.commit(name, Terms::default(), &content).await.is_ok()
            })
            .await;
        }
        // The broker looks at its room once a second.
        sleep(Duration::from_secs(1)).await;
    }
    for name in journals {
        assert!(world.read(name, 0).await.expect("stored") == content.repeat(APPENDS), "{name}");
        let request = FragmentsRequest::new(journal(name));
        let resolution = world.broker.resolve(&broker::Ask::from(&request)).await.expect("there");
        let page = world.broker.fragments(&resolution, &request).await.expect("it is listed");
        let stored = page.fragments.len();
        assert!((3..APPENDS).contains(&stored), "{name}: {stored} fragments");
    }
}

#[tokio::test(start_paused = true)]
async fn local_fragments_are_shown_without_a_sum_and_stored_ones_with_it() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "stored").await;
    persisted(&world, "a/journal").await;
    world.append("a/journal", "local").await;
    let (metadata, content) = world.messages("a/journal", ReadFrom::At(0.into()), |_| ()).await;
    assert_eq!(content, "storedlocal");
    assert_eq!(metadata.len(), 3, "two fragments, and the head");
    assert_eq!(metadata[2].status, Status::OffsetNotYetAvailable);
    assert!(metadata.iter().all(|one| one.write_head == Offset::from(11)));
    let request = FragmentsRequest::new(journal("a/journal"));
    let ask = broker::Ask::from(&request);
    let resolution = world.broker.resolve(&ask).await.expect("it resolves");
    let page = world.broker.fragments(&resolution, &request).await.expect("it is listed");
    let spans: Vec<_> = page.fragments.iter().map(|listed| listed.fragment.span).collect();
    assert_eq!(spans, [Span::at(0.into(), 6), Span::at(6.into(), 5)]);
    assert!(
        page.fragments[0].fragment.is_persisted() && !page.fragments[1].fragment.is_persisted()
    );
    let one = FragmentsRequest { page_limit: Some(1), ..request };
    let page = world.broker.fragments(&resolution, &one).await.expect("it is listed");
    assert_eq!((page.fragments.len(), page.next), (1, Some(6.into())));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_costs_only_space() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    world.append("a/journal", "content").await;
    for nth in 0..6 {
        world.files.fail(Trouble { operation: Some("write"), nth, errno: 5 });
    }
    served.replica().roll().expect("the log takes it");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(served.replica().persisted(), Offset::ZERO);
    assert!(world.broker.stores().health()[0].failures > 1, "it was tried again");
    let delete = vec![Change::Delete { journal: journal("a/journal"), expect: Expect::Any }];
    let refused = world.broker.apply(delete).await;
    assert!(matches!(refused, Err(Error::Unpersisted { len: 7, .. })), "{refused:?}");
    world.append("a/journal", " and more").await;
    // It works again, without a restart.
    until("it is persisted", || async { served.replica().persisted() == 7.into() }).await;
}

#[tokio::test(start_paused = true)]
async fn a_journal_goes_on_where_its_store_ends() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "0123456789").await;
    let delete = vec![Change::Delete { journal: journal("a/journal"), expect: Expect::Any }];
    let outcome = world.broker.apply(delete).await.expect("its content is stored first");
    assert!(matches!(outcome, Outcome::Applied { .. }));
    assert!(world.broker.served(&journal("a/journal")).is_none());
    let missing = world.read("a/journal", 0).await;
    assert!(matches!(missing, Err(client::Error::NotFound(_))));
    // Created again, it shows what was stored, and goes on there.
    let served = world.create("a/journal").await;
    assert_eq!(served.stat().head, Offset::from(10));
    assert_eq!(world.append("a/journal", "abc").await.span, Span::at(10.into(), 3));
    assert_eq!(world.read("a/journal", 0).await.expect("both"), "0123456789abc");
    let after = world.crashed(Crash::Power(4)).await;
    assert_eq!(after.read("a/journal", 4).await.expect("both"), "456789abc");
}

#[tokio::test(start_paused = true)]
async fn damaged_bytes_never_become_a_fragment_and_stop_none_behind_them() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    world.append("a/journal", "damaged").await;
    let mirror = format!("mirror/{}", served.life());
    world.disk.flip(Path::new(&mirror), 3);
    served.replica().roll().expect("the log takes it");
    world.append("a/journal", "right").await;
    served.replica().roll().expect("the log takes it");
    until("the damage is found", || async { served.replica().gaps() == 1 }).await;
    until("the rest is persisted", || async { served.stat().fragments == 1 }).await;
    let damaged = world.read("a/journal", 0).await;
    let whole = Span::at(0.into(), 7);
    assert!(matches!(damaged, Err(client::Error::Damaged { span, .. }) if span == whole));
    assert_eq!(world.read("a/journal", 7).await.expect("stored"), "right");
    let listed = world.broker.would_purge(&journal("a/journal")).await.expect("it is listed");
    let spans: Vec<_> = listed.fragments.iter().map(|fragment| fragment.span).collect();
    assert_eq!(spans, [Span::at(7.into(), 5)]);
    // Nothing is left to store, so that it can be deleted.
    let delete = vec![Change::Delete { journal: journal("a/journal"), expect: Expect::Any }];
    world.broker.apply(delete).await.expect("it goes");
}

#[tokio::test(start_paused = true)]
async fn purging_takes_the_objects_too() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "stored").await;
    persisted(&world, "a/journal").await;
    world.append("a/journal", "local").await;
    let would = world.broker.would_purge(&journal("a/journal")).await.expect("it is listed");
    assert_eq!(would.fragments.len(), 1);
    let name = journal("a/journal");
    let deleted = world.broker.delete(&name, Expect::Any, Purge::Objects).await;
    assert_eq!(deleted.expect("it goes"), would);
    let served = world.create("a/journal").await;
    assert_eq!(served.stat().head, Offset::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_second_writer_stops_appends_and_is_named() {
    let one = "/0000000000000000-0000000000000007-";
    let sums =
        ["84a516841ba77a5b4648de2cd0dfcb30ea46dbb4", "a17c9aaa61e80a1bf71d0d850af4e5baa9800bbd"];
    // Case: a fragment's name, and the content of seven bytes, whether it is another's
    let longer = "/0000000000000000-00000000000000ff-";
    let cases = [
        (format!("a/journal{one}{}.raw", sums[0]), true),
        (format!("a/journal{longer}{}.raw", sums[1]), true),
        // Case: sha1 of "content", so these are the local bytes.
        (format!("a/journal{one}040f06fd774092478d450774f5ba30c5da78acc8.raw"), false),
    ];
    for (path, is_other) in cases {
        let world = World::new().await;
        let served = world
            .apply("a/journal", |spec| spec.fragment.refresh_interval = Duration::from_secs(1))
            .await;
        until("it is listed", || async { served.is_known() }).await;
        world.append("a/journal", "content").await;
        plant(&world.files, &path, b"content");
        tokio::time::sleep(Duration::from_secs(10)).await;
        let appended = world.commit("a/journal", Terms::default(), "x").await;
        if is_other {
            assert_eq!(
                appended.expect_err("refused").status(),
                Some(Status::IndexHasGreaterOffset)
            );
            let found = served.second_writer().expect("it is named");
            assert!(path.contains(found.split('.').next().expect("a name")), "{found}");
        } else {
            appended.expect("it happens");
        }
        assert_eq!(&world.read("a/journal", 0).await.expect("local")[..7], "content");
    }
}

#[tokio::test(start_paused = true)]
async fn gaps_are_passed_or_told_by_rule() {
    let world = World::new().await;
    // Sums of "0123456789" and "abcdefghij"; what lies before the first and between them is gone.
    let first = "000000000000000a-0000000000000014-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw";
    let second = "000000000000001e-0000000000000028-d68c19a0a345b7eab78d5e11e991c026ec60db63.raw";
    plant(&world.files, &format!("a/journal/{first}"), b"0123456789");
    plant(&world.files, &format!("a/journal/{second}"), b"abcdefghij");
    let served = world.apply("a/journal", |_| ()).await;
    until("it is listed", || async { served.is_known() }).await;
    let stat = served.stat();
    assert_eq!((stat.first, stat.head), (10.into(), 40.into()));
    // A read below the first byte goes on there; objects of the disk in memory are of 1970, so
    // what is missing between the two will not come any more.
    let (metadata, content) = world.messages("a/journal", ReadFrom::At(0.into()), |_| ()).await;
    assert_eq!(content, "0123456789abcdefghij");
    let offsets: Vec<_> = metadata.iter().map(|one| one.offset).collect();
    assert_eq!(offsets, [10.into(), 30.into(), 40.into()]);
    // A file says what is gone.
    let trimmed = world.read("a/journal", 3).await.expect_err("trimmed");
    assert!(
        matches!(&trimmed, client::Error::Trimmed { span, .. } if *span == Span::at(3.into(), 7)),
        "{trimmed}"
    );
    let hole = world.read("a/journal", 20).await.expect_err("a hole");
    assert!(
        matches!(&hole, client::Error::Damaged { span, .. } if *span == Span::at(20.into(), 10)),
        "{hole}"
    );
    assert_eq!(world.read("a/journal", 32).await.expect("stored"), "cdefghij");
}

#[tokio::test(start_paused = true)]
async fn a_journal_whose_stores_are_not_listed_answers_later() {
    let world = World::new().await;
    for nth in 0..200 {
        world.files.fail(Trouble { operation: Some("list"), nth, errno: 5 });
    }
    let served = world.apply("a/journal", |_| ()).await;
    let append = client::Append::new(journal("a/journal"), Bytes::from_static(b"x"));
    let later = Journals::append(&world.broker, append).await.expect_err("its end is unknown");
    assert_eq!(later.remedy(), protocol::Remedy::Later, "{later}");
    let later = Journals::stat(&world.broker, &journal("a/journal")).await;
    assert_eq!(later.expect_err("its end is unknown").remedy(), protocol::Remedy::Later);
    assert!(!served.is_known());
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_its_journal_keeps_it_is_deleted() {
    let world = World::new().await;
    let served = world
        .apply("a/journal", |spec| {
            spec.fragment.retention = Duration::from_secs(3600);
            spec.fragment.refresh_interval = Duration::from_secs(1);
        })
        .await;
    for content in ["0123456789", "abcdefghij", "last"] {
        world.append("a/journal", content).await;
        persisted(&world, "a/journal").await;
    }
    // Objects of the disk in memory are of 1970, so all are old; the last one stays.
    until("the old ones are gone", || async { served.stat().first == 20.into() }).await;
    let trimmed = world.read("a/journal", 5).await.expect_err("trimmed");
    assert!(
        matches!(&trimmed, client::Error::Trimmed { span, .. } if *span == Span::at(5.into(), 15)),
        "{trimmed}"
    );
    assert_eq!(world.read("a/journal", 20).await.expect("kept"), "last");
    let store = world.broker.stores().get("file:///").expect("it is a store");
    let listed = || async { store.list(&journal("a/journal")).await.expect("it works").len() == 1 };
    until("their objects are deleted", listed).await;
    assert_eq!(world.append("a/journal", "x").await.span, Span::at(24.into(), 1));
    let after = world.crashed(Crash::Power(2)).await;
    assert!(after.read("a/journal", 0).await.is_err());
    assert_eq!(after.read("a/journal", 21).await.expect("kept"), "astx");
}

fn label(spec: &mut JournalSpec, name: &str, value: &str) {
    spec.labels = std::mem::take(&mut spec.labels).with(name, value).expect("a label");
}

#[tokio::test(start_paused = true)]
async fn a_journal_is_no_longer_than_it_may_be() {
    let world = World::new().await;
    world.apply("a/journal", |spec| label(spec, "courant/max-bytes", "24")).await;
    let append = |content: &'static str, sequence| Append {
        writer: Some(Writer { id: [7; 16], sequence }),
        ..Append::new(journal("a/journal"), content.into())
    };
    let writes = |content, sequence| Journals::append(&world.broker, append(content, sequence));
    writes("0123456789", 1).await.expect("there is room");
    persisted(&world, "a/journal").await;
    writes("abcdefghij", 2).await.expect("there is room");
    persisted(&world, "a/journal").await;
    let refused = writes("ABCDE", 3).await.expect_err("there are four bytes of room");
    assert!(matches!(refused, client::Error::OverSize { max: 24, .. }), "{refused}");
    assert!(refused.to_string().contains("courant/max-bytes"), "{refused}");
    // Case: to the last byte, again, and no more
    for is_repeated in [false, true] {
        let appended = writes("ABCD", 4).await.expect("there is room");
        assert_eq!((appended.span, appended.repeated), (Span::at(20.into(), 4), is_repeated));
    }
    writes("E", 5).await.expect_err("it is full");
    assert_eq!(world.read("a/journal", 0).await.expect("all"), "0123456789abcdefghijABCD");
    // Case: what is trimmed makes room
    let both = |spec: &mut JournalSpec| {
        label(spec, "courant/max-bytes", "24");
        label(spec, "courant/retain-bytes", "14");
    };
    let served = world.apply("a/journal", both).await;
    until("the first fragment is gone", || async { served.stat().first == 10.into() }).await;
    writes("0123456789", 6).await.expect("there is room");
    writes("a", 7).await.expect_err("it is full again");
}

#[tokio::test]
async fn labels_of_bytes_are_numbers() {
    let world = World::new().await;
    for name in ["courant/max-bytes", "courant/retain-bytes"] {
        for value in ["many", "0", "-1", "1.5", "10G", ""] {
            let mut spec =
                world.broker.key_space().propose(&journal("a/journal")).expect("a valid name");
            label(&mut spec, name, value);
            let change = Change::Upsert { spec, expect: Expect::Any };
            let refused = world.broker.apply(vec![change]).await.expect_err("no number");
            let text = refused.to_string();
            assert!(text.contains(name) && text.contains("a/journal"), "{text}");
        }
    }
    assert!(world.broker.served(&journal("a/journal")).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_lies_further_below_the_head_than_its_journal_keeps_is_deleted() {
    let world = World::new().await;
    let served = world.apply("a/journal", |spec| label(spec, "courant/retain-bytes", "15")).await;
    let kept = world.apply("a/kept", |_| {}).await;
    for content in ["0123456789", "abcdefghij", "ABCDEFGHIJ", "last"] {
        for name in ["a/journal", "a/kept"] {
            world.append(name, content).await;
            persisted(&world, name).await;
        }
    }
    // The head is at 34: what ends at 19 or below goes, whole fragments only.
    until("the far ones are gone", || async { served.stat().first == 10.into() }).await;
    let trimmed = world.read("a/journal", 5).await.expect_err("trimmed");
    assert!(matches!(trimmed, client::Error::Trimmed { .. }), "{trimmed}");
    assert_eq!(world.read("a/journal", 10).await.expect("kept"), "abcdefghijABCDEFGHIJlast");
    let store = world.broker.stores().get("file:///").expect("it is a store");
    let listed = || async { store.list(&journal("a/journal")).await.expect("it works").len() == 3 };
    until("its object is deleted", listed).await;
    // Case: no label
    assert_eq!(kept.stat().first, 0.into());
}

#[tokio::test(start_paused = true)]
async fn a_prune_keeps_as_many_bytes_as_retention_does() {
    let world = World::new().await;
    let served = world.apply("a/journal", |_| ()).await;
    for content in ["0123456789", "abcdefghij", "ABCDEFGHIJ", "last"] {
        world.append("a/journal", content).await;
        persisted(&world, "a/journal").await;
    }
    let name = journal("a/journal");
    let store = world.broker.stores().get("file:///").expect("it is a store");
    let small = "0000000000000002-0000000000000005-0ec09ef9836da03f1add21e3ef607627e687e790.raw";
    plant(&world.files, &format!("a/journal/{small}"), b"234");
    let objects = async || {
        let listed = store.list(&name).await.expect("it works");
        let mut spans: Vec<_> = listed.iter().map(|fragment| fragment.span).collect();
        spans.sort();
        spans
    };
    let spans = |spans: &[(u32, u64)]| -> Vec<_> {
        spans.iter().map(|(begin, len)| Span::at((*begin).into(), *len)).collect()
    };
    let all = spans(&[(0, 10), (2, 3), (10, 10), (20, 10), (30, 4)]);
    assert_eq!(objects().await, all);
    let prune = async |bytes, is_dry| {
        world.apply("a/journal", |spec| label(spec, "courant/retain-bytes", bytes)).await;
        let pruned = world.broker.prune(&name, is_dry).await?;
        let gone: Vec<_> = pruned.fragments.iter().map(|fragment| fragment.span).collect();
        Ok::<_, broker::Error>((gone, pruned.first))
    };
    // Case: all of it is kept, to the byte
    assert_eq!(prune("34", false).await.expect("it works"), (Vec::new(), 0.into()));
    assert_eq!(prune("25", false).await.expect("it works"), (Vec::new(), 0.into()));
    // Case: the head is at 34: what ends at 19 or below goes, small fragments too
    let far = (spans(&[(0, 10), (2, 3)]), Offset::from(10));
    assert_eq!(prune("15", true).await.expect("it works"), far);
    assert_eq!((objects().await, served.stat().first), (all, 0.into()), "it was dry");
    assert_eq!(prune("15", false).await.expect("it works"), far);
    assert_eq!(objects().await, spans(&[(10, 10), (20, 10), (30, 4)]));
    assert_eq!(world.read("a/journal", 10).await.expect("kept"), "abcdefghijABCDEFGHIJlast");
    // Case: the last one stays
    let rest = (spans(&[(10, 10), (20, 10)]), Offset::from(30));
    assert_eq!(prune("1", false).await.expect("it works"), rest);
    assert_eq!(world.read("a/journal", 30).await.expect("kept"), "last");
}

#[tokio::test(start_paused = true)]
async fn a_flipped_bit_never_becomes_a_fragment() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    world.append("a/journal", "content").await;
    let mirror = index::mirror::path_of(served.life(), 0);
    world.disk.flip(&mirror, 3);
    served.replica().roll().expect("the log takes it");
    let name = journal("a/journal");
    let read = || async { world.read("a/journal", 0).await.is_err() };
    until("the damage is noticed", read).await;
    let damaged = world.read("a/journal", 0).await.expect_err("damaged");
    assert!(matches!(damaged, client::Error::Damaged { .. }), "{damaged}");
    let stored = world.broker.stores().get("file:///").expect("it is a store");
    assert_eq!(stored.list(&name).await.expect("it works").len(), 0);
    // The rest goes on.
    assert_eq!(world.append("a/journal", "more").await.span, Span::at(7.into(), 4));
}

#[tokio::test(start_paused = true)]
async fn an_in_memory_store_is_handed_in() {
    let objects = Arc::new(object_store::memory::InMemory::new());
    let store = index::store::Store::over("s3://bucket/prefix/", objects).expect("a valid URL");
    let world = World::with(|config| config.stores = vec![store]).await;
    world
        .apply("a/journal", |spec| spec.fragment.stores = vec!["s3://bucket/prefix/".into()])
        .await;
    world.append("a/journal", "content").await;
    persisted(&world, "a/journal").await;
    let stat = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
    assert_eq!((stat.fragments, stat.persisted), (1, 7.into()));
}
