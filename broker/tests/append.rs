//! Appending: order, conditions, durability, limits.

mod world;

use broker::{Ask, Error, Terms};
use bytes::Bytes;
use client::{Append, Durability, Journals, Writer};
use futures::FutureExt;
use index::disk::{Crash, Disk, ForgetfulDisk, Open};
use protocol::request::AppendSuspend;
use protocol::{Flags, LabelSet, Offset, Selector, Span, Status, Sum, SuspendLevel};
use std::path::Path;
use std::time::Duration;
use world::{World, journal};

fn labels(name: &str, value: &str) -> LabelSet {
    LabelSet::default().with(name, value).expect("a valid label")
}

#[tokio::test]
async fn appends_lie_one_after_the_other() {
    let world = World::new().await;
    world.create("a/journal").await;
    let first = world.append("a/journal", "hello ").await;
    let second = world.append("a/journal", "world").await;
    assert_eq!(first.span, Span::at(Offset::ZERO, 6));
    assert_eq!(second.span, Span::at(Offset::from(6), 5));
    assert_eq!(world.read("a/journal", 0).await.expect("local"), "hello world");
    let stat = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
    assert_eq!((stat.head, stat.synced, stat.first), (11.into(), 11.into(), Offset::ZERO));
}

#[tokio::test]
async fn what_needs_no_waiting_is_ready_at_once() {
    let world = World::new().await;
    world.create("a/journal").await;
    // The first memory append waits for its ceiling to be durable.
    world.append("a/journal", "first").await;
    let append = |content: &'static str| Append {
        durability: Some(Durability::Memory),
        ..Append::new(journal("a/journal"), Bytes::from_static(content.as_bytes()))
    };
    Journals::append(&world.broker, append("second")).await.expect("it happens");
    let name = journal("a/journal");
    let now = Journals::append(&world.broker, append("third")).now_or_never();
    assert_eq!(now.expect("ready").expect("it happens").span, Span::at(Offset::from(11), 5));
    let stat = Journals::stat(&world.broker, &name).now_or_never();
    assert_eq!(stat.expect("ready").expect("it exists").head, Offset::from(16));
    let read = client::Read { journal: name, life: None, offset: Offset::from(5), max: 6 };
    let read = Journals::read(&world.broker, read).now_or_never();
    assert_eq!(&read.expect("ready").expect("local")[..], b"second");
}

#[tokio::test(start_paused = true)]
async fn what_would_wait_for_the_rate_for_too_long_is_not_appended() {
    const RATE: usize = 1000;
    let world = World::new().await;
    world.apply("a/journal", |spec| spec.max_append_rate = RATE as i64).await;
    let append = |len: usize, rate_wait| Append {
        rate_wait,
        ..Append::new(journal("a/journal"), vec![b'x'; len].into())
    };
    let (short, long) = (Duration::from_secs(5), Duration::from_secs(30));
    // A second's worth is there at first.
    Journals::append(&world.broker, append(RATE, Some(short))).await.expect("it is allowed");
    // Case: bytes, the longest wait, whether it happens
    for (len, rate_wait, happens) in [
        (20 * RATE, Some(short), false),
        // Case: what was refused took nothing: this one waits for itself alone.
        (4 * RATE, Some(short), true),
        (20 * RATE, Some(long), true),
        (9 * RATE, Some(short), false),
        (9 * RATE, None, true),
    ] {
        let before = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
        let answer = Journals::append(&world.broker, append(len, rate_wait)).await;
        let after = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
        let grown = usize::try_from(after.head.since(before.head)).expect("few bytes");
        match answer {
            Ok(_) => assert_eq!((happens, grown), (true, len)),
            Err(client::Error::OverRate { rate, .. }) => {
                assert_eq!((happens, grown, rate), (false, 0, RATE as u64), "{len}");
            }
            Err(other) => panic!("{len}: {other}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_pieces_of_an_append_wait_for_the_rate_together() {
    let world = World::new().await;
    world.apply("a/journal", |spec| spec.max_append_rate = 1000).await;
    let resolution = world.broker.resolve(&Ask::new(journal("a/journal"))).await;
    let terms = Terms { rate_wait: Some(Duration::from_secs(5)), ..Terms::default() };
    let (resolution, connection) = (resolution.expect("it resolves"), world.broker.connection());
    let begun = world.broker.begin_append(resolution, terms, &connection).await;
    let mut stager = begun.expect("it may be appended to");
    for seconds in 0..6 {
        stager.push(vec![b'x'; 1000].into()).await.unwrap_or_else(|_| panic!("after {seconds} s"));
    }
    let refused = stager.push(vec![b'x'; 1000].into()).await;
    assert!(matches!(refused, Err(Error::OverRate { rate: 1000, .. })), "{refused:?}");
}

#[tokio::test]
async fn what_a_mount_staged_is_one_append_and_repeated_once() {
    let world = World::new().await;
    world.create("a/journal").await;
    let disk = ForgetfulDisk::new();
    let file = disk.open(Path::new("staged"), Open::New).expect("a new disk takes files");
    // Longer than what is staged in memory.
    let content = vec![b'x'; 3 << 20];
    file.write_at(&content, 9).expect("it has room");
    let append = |len| Append {
        staged: Some(client::Staged::new(file.clone(), 9, len)),
        writer: Some(Writer { id: [7; 16], sequence: len }),
        ..Append::new(journal("a/journal"), Bytes::from_static(b"first "))
    };
    for is_repeated in [false, true] {
        let appended = Journals::append(&world.broker, append(3 << 20)).await.expect("it happens");
        let expected = (Span::at(Offset::ZERO, 6 + (3 << 20)), is_repeated);
        assert_eq!((appended.span, appended.repeated), expected);
    }
    let read = world.read("a/journal", 0).await.expect("local");
    assert!(read.starts_with("first xxx") && read.bytes().skip(6).all(|byte| byte == b'x'));
    // Case: the file is shorter than it says
    let failed = Journals::append(&world.broker, append((3 << 20) + 1)).await;
    let error = failed.expect_err("a byte is missing");
    assert!(matches!(&error, client::Error::Io(_)), "{error}");
    let stat = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
    assert_eq!(stat.head.as_u64(), 6 + (3 << 20));
}

#[tokio::test]
async fn conditions_are_checked() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "0123456789").await;
    let at = |offset: u32| Terms { offset: Some(offset.into()), ..Terms::default() };
    // Case: terms, content, what comes of it
    let check = |value: &str| Terms {
        check_registers: Some(Selector { include: labels("author", value), ..Selector::default() }),
        ..Terms::default()
    };
    let set = Terms { union_registers: Some(labels("author", "one")), ..Terms::default() };
    let cases = [
        (at(0), "x", Err(Some(Status::WrongAppendOffset))),
        (at(11), "x", Err(Some(Status::WrongAppendOffset))),
        (at(10), "x", Ok(Span::at(Offset::from(10), 1))),
        (at(11), "", Ok(Span::at(Offset::from(11), 0))),
        (check("two"), "x", Ok(Span::at(Offset::from(11), 1))),
        (set.clone(), "", Err(None)),
        (set, "x", Ok(Span::at(Offset::from(12), 1))),
        (check("two"), "x", Err(Some(Status::RegisterMismatch))),
        (check("one"), "x", Ok(Span::at(Offset::from(13), 1))),
    ];
    for (terms, content, expected) in cases {
        let found = world.commit("a/journal", terms.clone(), content).await;
        let found = found.map(|committed| committed.span).map_err(|error| error.status());
        assert_eq!(found, expected, "{terms:?}");
    }
    let committed = world.commit("a/journal", Terms::default(), "").await.expect("it happens");
    assert_eq!(committed.registers, labels("author", "one"));
}

#[tokio::test]
async fn a_repetition_answers_the_first_result_even_after_a_crash() {
    let world = World::new().await;
    world.create("a/journal").await;
    let by = |sequence| Terms {
        writer: Some(Writer { id: [3; 16], sequence }),
        offset: Some(Offset::ZERO),
        ..Terms::default()
    };
    let first = world.commit("a/journal", by(5), "once").await.expect("it happens");
    let again = world.commit("a/journal", by(5), "once").await.expect("it happened");
    assert_eq!((first.is_repeated, again.is_repeated), (false, true));
    assert_eq!(first.span, again.span);
    let after = world.crashed(Crash::Power(1)).await;
    let again = after.commit("a/journal", by(5), "once").await.expect("it happened");
    assert!(again.is_repeated && again.span == first.span);
    let stale = after.commit("a/journal", by(4), "late").await;
    assert!(matches!(stale, Err(Error::StaleSequence { last: 5, .. })), "{stale:?}");
    assert_eq!(after.read("a/journal", 0).await.expect("local"), "once");
}

#[tokio::test]
async fn flags_and_existence_are_respected() {
    let world = World::new().await;
    world.apply("read/only", |spec| spec.flags = Flags::ReadOnly).await;
    let refused = world.commit("read/only", Terms::default(), "x").await;
    assert_eq!(refused.expect_err("read-only").status(), Some(Status::NotAllowed));
    let nothing = world.commit("read/only", Terms::default(), "").await.expect("zero bytes may");
    assert!(nothing.span.is_empty());
    let missing = world.commit("no/such", Terms::default(), "x").await;
    assert_eq!(missing.expect_err("missing").status(), Some(Status::JournalNotFound));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_appends_at_once_are_whole_and_in_one_order() {
    let world = World::new().await;
    world.create("a/journal").await;
    let appends = (0..64u8).map(|at| {
        let content = Bytes::from(format!("<{at:02}{}>", "x".repeat(usize::from(at) * 7)));
        let append = Append {
            durability: Some(Durability::Disk),
            ..Append::new(journal("a/journal"), content.clone())
        };
        let appended = Journals::append(&world.broker, append);
        async move { (appended.await.expect("it happens"), content) }
    });
    let mut done = futures::future::join_all(appends).await;
    done.sort_by_key(|(appended, _)| appended.span);
    let text = world.read("a/journal", 0).await.expect("local");
    let mut end = Offset::ZERO;
    for (appended, content) in done {
        assert_eq!(appended.span, Span::at(end, content.len() as u64));
        let (from, to) = (end.as_u64() as usize, appended.span.end().as_u64() as usize);
        assert_eq!(&text.as_bytes()[from..to], &content[..]);
        end = appended.span.end();
    }
    let after = world.crashed(Crash::Power(9)).await;
    assert_eq!(after.read("a/journal", 0).await.expect("local"), text);
}

#[tokio::test]
async fn content_comes_in_pieces_and_goes_to_disk_when_it_is_long() {
    let world = World::with(|config| config.append_max = 6 << 20).await;
    world.create("a/journal").await;
    let connection = world.broker.connection();
    let terms = Terms { needs_sum: true, ..Terms::default() };
    let begin = || async {
        let resolution = world.broker.resolve(&Ask::new(journal("a/journal"))).await;
        let resolution = resolution.expect("it resolves");
        world.broker.begin_append(resolution, terms.clone(), &connection).await.expect("it begins")
    };
    let piece = Bytes::from("0123456789abcdef".repeat(16 << 10));
    // Case: pieces of 256 KiB
    for count in [0u64, 1, 3, 5, 24] {
        let mut stager = begin().await;
        for _ in 0..count {
            stager.push(piece.clone()).await.expect("it fits");
        }
        let staged = stager.finish().await.expect("it is complete");
        let committed = staged.commit().await.expect("it happens");
        assert_eq!(committed.span.len(), count * piece.len() as u64);
        if count == 0 {
            let empty = Sum::from_hex("da39a3ee5e6b4b0d3255bfef95601890afd80709").expect("a sum");
            assert_eq!(committed.sum, Some(empty));
        }
    }
    let mut stager = begin().await;
    for _ in 0..24 {
        stager.push(piece.clone()).await.expect("it fits");
    }
    let over = stager.push(piece.clone()).await;
    assert!(matches!(over, Err(Error::TooLarge { .. })), "{over:?}");
    drop(stager);
    assert_eq!(world.broker.staged(), (0, 0), "what is given up is given back");
    let text = world.read("a/journal", 0).await.expect("local");
    assert_eq!(text.len(), 33 * piece.len());
    assert!(text.as_bytes().chunks(piece.len()).all(|chunk| chunk == piece));
}

#[tokio::test]
async fn clients_that_stall_do_not_stop_those_that_are_quick() {
    let world = World::new().await;
    world.create("a/journal").await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let mut stalled = Vec::new();
    // Case: more than all content in memory may be
    while stalled.len() << 20 <= 2 * broker::Memory::DEFAULT.pieces() as usize {
        let resolution = world.broker.resolve(&Ask::new(journal("a/journal"))).await;
        let resolution = resolution.expect("it resolves");
        let connection = world.broker.connection();
        let begun = world.broker.begin_append(resolution, Terms::default(), &connection).await;
        let mut stager = begun.expect("it begins");
        stager.push(piece.clone()).await.expect("it goes to disk where memory is short");
        stalled.push(stager);
    }
    assert_eq!(world.append("a/journal", "quick").await.span.len(), 5);
    let last = stalled.pop().expect("there are many");
    let committed = last.finish().await.expect("it is complete").commit().await;
    assert_eq!(committed.expect("it happens").span, Span::at(Offset::from(5), 1 << 20));
}

#[tokio::test]
async fn the_sum_is_that_of_this_append_alone() {
    let world = World::new().await;
    world.create("a/journal").await;
    let terms = Terms { needs_sum: true, ..Terms::default() };
    world.commit("a/journal", terms.clone(), "before").await.expect("it happens");
    let committed = world.commit("a/journal", terms, "abc").await.expect("it happens");
    let expected = Sum::from_hex("a9993e364706816aba3e25717850c26c9cd0d89d").expect("a sum");
    assert_eq!(committed.sum, Some(expected));
}

#[tokio::test]
async fn a_memory_append_survives_the_process_and_a_disk_append_the_machine() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "disk ").await;
    let memory = Terms { durability: Some(Durability::Memory), ..Terms::default() };
    let committed = world.commit("a/journal", memory, "memory").await.expect("it happens");
    let killed = world.crashed(Crash::Kill).await;
    assert_eq!(killed.read("a/journal", 0).await.expect("local"), "disk memory");
    for seed in 0..4 {
        let after = world.crashed(Crash::Power(seed)).await;
        let served = after.broker.served(&journal("a/journal")).expect("it exists");
        // No offset that was shown is used again.
        assert!(served.replica().head() >= committed.span.end());
        let text = after.read("a/journal", 0).await;
        match text {
            Ok(text) => assert_eq!(text, "disk memory"),
            Err(error) => {
                assert!(matches!(error, client::Error::Lost { .. }), "{error}");
                let next = after.append("a/journal", "next").await;
                assert!(next.span.begin() >= committed.span.end());
            }
        }
    }
}

#[tokio::test]
async fn a_suspended_journal_is_resumed_by_an_append() {
    let world = World::new().await;
    world.create("a/journal").await;
    world.append("a/journal", "content").await;
    let ask = |suspend| Terms { suspend, ..Terms::default() };
    let suspended = world.commit("a/journal", ask(AppendSuspend::Now), "").await;
    assert_eq!(suspended.expect_err("told so").status(), Some(Status::Suspended));
    let level = || {
        let entry = world.broker.served(&journal("a/journal")).expect("it exists").entry();
        entry.spec.suspend.map(|suspend| (suspend.level, suspend.offset))
    };
    assert_eq!(level(), Some((SuspendLevel::Partial, Offset::from(7))));
    let refused = world.commit("a/journal", ask(AppendSuspend::NoResume), "x").await;
    assert_eq!(refused.expect_err("suspended").status(), Some(Status::Suspended));
    let resumed = world.commit("a/journal", ask(AppendSuspend::Resume), "x").await;
    assert_eq!(resumed.expect("it happens").span, Span::at(Offset::from(7), 1));
    assert_eq!(level(), Some((SuspendLevel::None, Offset::from(7))));
}

/// Each append looks at the head that the others move.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_at_once_do_not_refuse_each_other() {
    const WRITERS: u32 = 4;
    const APPENDS: u32 = 20_000;
    let world = World::new().await;
    world.create("a/journal").await;
    // The first memory append waits for its ceiling to be durable.
    world.append("a/journal", "0").await;
    let append = Append {
        durability: Some(Durability::Memory),
        ..Append::new(journal("a/journal"), Bytes::from_static(b"x"))
    };
    let writer = |broker: broker::Broker, append: Append| async move {
        for _ in 0..APPENDS {
            Journals::append(&broker, append.clone()).await.expect("nothing is in its way");
        }
    };
    let writers = (0..WRITERS).map(|_| tokio::spawn(writer(world.broker.clone(), append.clone())));
    for written in futures::future::join_all(writers).await {
        written.expect("no writer panics");
    }
    let stat = Journals::stat(&world.broker, &journal("a/journal")).await.expect("it exists");
    assert_eq!(stat.head, Offset::from(1 + WRITERS * APPENDS));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_tells_no_head_before_readers_see_it() {
    let world = World::new().await;
    let name = journal("a/journal");
    world.create("a/journal").await;
    let append = |offset| Append {
        durability: Some(Durability::Disk),
        offset,
        ..Append::new(name.clone(), Bytes::from_static(b"content"))
    };
    let writer = Some(Writer { id: [1; 16], sequence: 1 });
    let conditional = Append { writer, ..append(Some(Offset::ZERO)) };
    let mut first = Journals::append(&world.broker, append(None));
    assert!((&mut first).now_or_never().is_none(), "it is recorded, and waits for its sync");
    let mut second = Journals::append(&world.broker, conditional);
    assert!((&mut second).now_or_never().is_none(), "what refuses it could still be lost");
    let refused = second.await.expect_err("another append was first");
    assert!(matches!(refused, client::Error::WrongOffset { head, .. } if head == 7.into()));
    let stat = Journals::stat(&world.broker, &name).await.expect("it exists");
    assert_eq!(stat.head, 7.into());
    first.await.expect("it happens");
}

#[tokio::test]
async fn what_happened_is_not_refused_when_it_is_asked_for_again() {
    let world = World::new().await;
    world.create("a/journal").await;
    let writer = client::Writer { id: [7; 16], sequence: 1 };
    let terms = Terms { writer: Some(writer), ..Terms::default() };
    let made = world.commit("a/journal", terms.clone(), "once").await.expect("it happens");
    // Case: no content is taken any more; no rate is left for it
    world.apply("a/journal", |spec| spec.flags = Flags::ReadOnly).await;
    let again = world.commit("a/journal", terms.clone(), "once").await.expect("it is there");
    assert_eq!(again.span, made.span);
    world
        .apply("a/journal", |spec| {
            spec.flags = Flags::ReadWrite;
            spec.max_append_rate = 1;
        })
        .await;
    let terms = Terms { rate_wait: Some(Duration::ZERO), ..terms };
    let again = world.commit("a/journal", terms.clone(), "once").await.expect("it is there");
    assert_eq!(again.span, made.span);
    // Case: another append is refused by both
    let next = Terms { writer: Some(client::Writer { sequence: 2, ..writer }), ..terms };
    world.commit("a/journal", next.clone(), &"x".repeat(1000)).await.expect_err("beyond the rate");
    world.apply("a/journal", |spec| spec.flags = Flags::ReadOnly).await;
    world.commit("a/journal", next, "twice").await.expect_err("it is read-only");
    assert_eq!(world.read("a/journal", 0).await.expect("local"), "once");
}
