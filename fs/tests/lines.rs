//! Line mode: whole lines are committed, and the rest of a line waits for its newline.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::Error as Failure;
use client::disk::Crash;
use fs::double::Double;
use rustix::fs::OFlags;
use rustix::io::Errno;
use world::staged::Staged;
use world::{APPEND, errno, journal};

#[tokio::test]
async fn only_whole_lines_are_committed() {
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    // Case: what is written, what the journal has then
    let cases = [
        ("one", ""),
        ("\n", "one\n"),
        ("two\nthr", "one\ntwo\n"),
        ("ee", "one\ntwo\n"),
        ("\nfour\nfive", "one\ntwo\nthree\nfour\n"),
        ("\n\n", "one\ntwo\nthree\nfour\nfive\n\n"),
        ("six\n", "one\ntwo\nthree\nfour\nfive\n\nsix\n"),
    ];
    for (content, expected) in cases {
        assert_eq!(staged.append(handle, content.as_bytes()).await.unwrap(), content.len());
        assert_eq!(staged.text("test/a.log"), expected, "after {content:?}");
    }
    staged.close(handle).await;
    assert_eq!(staged.files(), (0, 0));
}

#[tokio::test]
async fn the_rest_of_a_line_is_committed_at_fsync_and_at_the_last_close() {
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    staged.append(handle, b"one").await.unwrap();
    // Case: a duplicate is closed, or a child has ended
    staged.world.fs.flush(handle).await.unwrap();
    assert_eq!(staged.text("test/a.log"), "");
    assert!(staged.status().await.contains("staged-bytes 3\nstaged-files 1\n"));
    staged.world.fs.fsync(handle).await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one");
    staged.append(handle, b" two").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one");
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "one two");
    assert!(staged.status().await.contains("staged-bytes 0\nstaged-files 0\n"));
}

#[tokio::test]
async fn the_lines_of_two_handles_do_not_mix() {
    let staged = Staged::new();
    let one = staged.open(".courant/lines/a.log").await;
    let two = staged.open(".courant/lines/a.log").await;
    // Case: (handle, content)
    let writes = [(one, "on"), (two, "tw"), (one, "e\n"), (two, "o\nthr"), (one, "four\n")];
    for (handle, content) in writes {
        staged.append(handle, content.as_bytes()).await.unwrap();
    }
    staged.close(two).await;
    assert_eq!(staged.text("test/a.log"), "one\ntwo\nfour\nthr");
}

#[tokio::test]
async fn a_line_of_any_size_is_one_append() {
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..5 {
        assert_eq!(staged.append(handle, &piece).await.unwrap(), piece.len());
        // Somebody else appends meanwhile.
        staged.world.echo("a.log", b"-\n").await.unwrap();
    }
    staged.append(handle, b"\n").await.unwrap();
    let expected = ["-\n".repeat(5).into_bytes(), vec![b'x'; 5 << 20], vec![b'\n']].concat();
    assert!(staged.bytes("test/a.log") == expected);
}

#[tokio::test]
async fn a_whole_mount_can_be_in_line_mode() {
    let staged = Staged::with(world::staged::ROOM, |options| options.lines = true);
    let handle = staged.open("a.log").await;
    staged.append(handle, b"one\ntwo").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\n");
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "one\ntwo");
}

#[tokio::test]
async fn without_append_lines_go_on_where_the_last_write_ended() {
    let staged = Staged::new();
    staged.world.echo("a.log", b"old\n").await.unwrap();
    let handle = staged.world.open(".courant/lines/a.log", OFlags::WRONLY).await.unwrap();
    // Case: offset, content, outcome, journal
    let cases = [
        (0, "x", Err(Errno::PERM), "old\n"),
        (5, "x", Err(Errno::INVAL), "old\n"),
        (4, "on", Ok(2), "old\n"),
        (4, "x", Err(Errno::PERM), "old\n"),
        (7, "x", Err(Errno::INVAL), "old\n"),
        (6, "e\ntw", Ok(4), "old\none\n"),
        (10, "o\n", Ok(2), "old\none\ntwo\n"),
        (12, "three\n", Ok(6), "old\none\ntwo\nthree\n"),
    ];
    for (offset, content, outcome, expected) in cases {
        let written = staged.world.write(handle, offset, content.as_bytes(), OFlags::WRONLY).await;
        assert_eq!(written.map_err(|error| error.errno()), outcome, "{content:?} at {offset}");
        assert_eq!(staged.text("test/a.log"), expected);
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_the_line_is_there_once() {
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    staged.append(handle, b"on").await.unwrap();
    staged.world.double.fail_next(Failure::Unreachable("away".to_owned()));
    staged.append(handle, b"e\ntwo").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\n");
    // Case: it is not asked for again; the next write finds out what became of it
    staged.world.double.fail_next(Failure::Unknown);
    assert_eq!(errno(staged.append(handle, b"\n").await), Errno::TIMEDOUT);
    staged.append(handle, b"three\n").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\ntwo\nthree\n");
}

/// What is refused after an answer was lost may be there: what follows is another append all the
/// same, and a write that was told to have failed is there once at most.
#[tokio::test]
async fn a_refusal_after_a_lost_answer_says_nothing_of_the_line() {
    let refused = || {
        let journal = journal("test/a.log");
        [
            Failure::OverRate { journal: journal.clone(), rate: 1 },
            Failure::NotAllowed { journal: journal.clone(), detail: String::new() },
            Failure::NoSpace(journal, "the disk is full".to_owned()),
        ]
    };
    for at in 0..refused().len() {
        let staged = Staged::new();
        staged.world.double.put("test/a.log", b"");
        let handle = staged.open(".courant/lines/a.log").await;
        staged.append(handle, b"on").await.unwrap();
        // Case: within one write, and over several
        staged.world.double.fail_next(Failure::Unreachable("away".to_owned()));
        staged.world.double.fail_next(refused()[at].clone());
        assert_eq!(errno(staged.append(handle, b"e\n").await), Errno::TIMEDOUT);
        staged.world.double.fail_next(refused()[at].clone());
        assert_eq!(errno(staged.append(handle, b"three\n").await), Errno::TIMEDOUT);
        assert_eq!(staged.append(handle, b"two\n").await.unwrap(), 4);
        staged.world.fs.fsync(handle).await.unwrap();
        assert_eq!(staged.text("test/a.log"), "one\ntwo\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_knows_no_writers_gets_a_line_once() {
    let staged = Staged::over(Double::without_writers(), world::staged::ROOM, |_| {});
    staged.world.double.put("test/a.log", b"");
    let handle = staged.open(".courant/lines/a.log").await;
    staged.append(handle, b"on").await.unwrap();
    // Case: the answer is lost; what lies at the offset tells that the append was made
    staged.world.double.fail_next(Failure::Unknown);
    staged.append(handle, b"e\ntwo").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\n");
    // Case: and it can't be told, since the broker stays away
    for _ in 0..1_000 {
        staged.world.double.fail_next(Failure::Unknown);
    }
    assert_eq!(errno(staged.append(handle, b"\n").await), Errno::TIMEDOUT);
    staged.world.double.fail_no_more();
    staged.append(handle, b"three\n").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\ntwo\nthree\n");
    assert_eq!(staged.files().1, 1);
    let status = staged.status().await;
    assert!(status.contains("closed test/a.log 4 bytes set aside in "), "{status}");
    assert!(status.contains(": the broker knows no writers, and may have"), "{status}");
}

#[tokio::test]
async fn a_write_that_is_refused_leaves_the_line_as_it_was() {
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    staged.append(handle, b"first\non").await.unwrap();
    staged.world.double.forbid_writes(&journal("test/a.log"));
    assert_eq!(errno(staged.append(handle, b"e\n").await), Errno::ROFS);
    assert!(staged.status().await.contains("staged-bytes 2\n"));
    // Case: and what can't be committed at the close is kept and named
    staged.close(handle).await;
    assert_eq!(staged.files(), (0, 1));
    let status = staged.status().await;
    assert!(status.contains("staged-aside 1\n"), "{status}");
    assert!(status.contains("closed test/a.log 2 bytes set aside in"), "{status}");
}

#[tokio::test]
async fn what_waits_is_bounded_and_a_write_says_so() {
    let staged = Staged::with(10, |_| {});
    let one = staged.open(".courant/lines/a.log").await;
    let two = staged.open(".courant/lines/a.log").await;
    staged.append(one, b"1234567").await.unwrap();
    assert_eq!(errno(staged.append(two, b"1234").await), Errno::NOSPC);
    // Case: the lines are committed, and the answer is short by what finds no room
    assert_eq!(staged.append(two, b"line\n1234").await.unwrap(), 5);
    staged.append(two, b"123").await.unwrap();
    staged.append(one, b"\n").await.unwrap_err();
    staged.close(two).await;
    staged.append(one, b"\n").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "line\n1231234567\n");
    // Case: the disk is full
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/a.log").await;
    staged.append(handle, b"one").await.unwrap();
    staged.disk.set_capacity(Some(0));
    assert_eq!(errno(staged.append(handle, &[b'x'; 8192]).await), Errno::NOSPC);
    staged.disk.set_capacity(None);
    staged.append(handle, b"\n").await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one\n");
}

/// Writes lines in pieces until the disk stops; the bytes that were acknowledged.
async fn write_until_stopped(staged: &Staged) -> Vec<u8> {
    let opened = staged.world.open(".courant/lines/a.log", APPEND | OFlags::CREATE).await;
    let Ok(handle) = opened else { return Vec::new() };
    let mut acknowledged = Vec::new();
    for piece in ["on", "e\n", "t", "wo\nthree\nf", "ou", "r\n", "five\n", "six"] {
        match staged.append(handle, piece.as_bytes()).await {
            Ok(len) => acknowledged.extend(&piece.as_bytes()[..len]),
            Err(_stopped) => break,
        }
    }
    acknowledged
}

#[tokio::test]
async fn a_mount_that_dies_at_any_moment_leaves_whole_lines_that_are_committed_once() {
    let script = "one\ntwo\nthree\nfour\nfive\nsix";
    let all = {
        let staged = Staged::new();
        write_until_stopped(&staged).await;
        staged.disk.operations()
    };
    assert!(all > 20, "only {all} operations");
    for at in 0..=all {
        let staged = Staged::new();
        staged.disk.stop_at(at);
        let acknowledged = write_until_stopped(&staged).await;
        let next = staged.after(Crash::Kill).await;
        let found = next.text("test/a.log");
        // All that was acknowledged, and of what was not at most the write on its way, whole.
        let acknowledged = String::from_utf8(acknowledged).unwrap();
        assert!(found.starts_with(&acknowledged), "stopped at {at}: {found:?} {acknowledged:?}");
        assert!(script.starts_with(&found), "stopped at {at}: {found:?}");
        assert_eq!(next.files(), (0, 0), "stopped at {at}");
        // Case: and nothing comes a second time
        let last = next.after(Crash::Kill).await;
        assert_eq!(last.text("test/a.log"), found);
    }
}

#[tokio::test]
async fn what_a_power_cut_left_is_committed_whole_or_set_aside() {
    for seed in 0..50 {
        let staged = Staged::new();
        let handle = staged.open(".courant/lines/a.log").await;
        staged.append(handle, b"line\nrest").await.unwrap();
        let next = staged.after(Crash::Power(seed)).await;
        let found = next.text("test/a.log");
        assert!(found == "line\n" || found == "line\nrest", "seed {seed}: {found:?}");
        // Case: with O_DSYNC the rest is on the disk
        let staged = Staged::new();
        let handle = staged.open(".courant/lines/a.log").await;
        let synced = APPEND | OFlags::DSYNC;
        staged.world.write(handle, 0, b"line\nrest", synced).await.unwrap();
        let next = staged.after(Crash::Power(seed)).await;
        assert_eq!(next.text("test/a.log"), "line\nrest", "seed {seed}");
    }
}

#[tokio::test]
async fn what_waits_follows_the_name_of_its_file() {
    // Case: the view, and what becomes of it without a crash
    for view in ["lines", "whole"] {
        let staged = Staged::new();
        let handle = staged.open(&format!(".courant/{view}/old.log")).await;
        staged.append(handle, b"waits").await.unwrap();
        staged.world.rename("old.log", "new.log").await.unwrap();
        staged.append(handle, b" on").await.unwrap();
        staged.close(handle).await;
        assert_eq!(staged.text("test/new.log"), "waits on", "{view}");
        assert_eq!(staged.world.double.bytes(&journal("test/old.log")), None);
    }
    // Case: a crash before anything more is written
    let staged = Staged::new();
    let handle = staged.open(".courant/lines/old.log").await;
    staged.append(handle, b"waits").await.unwrap();
    staged.world.rename("old.log", "new.log").await.unwrap();
    let next = staged.after(Crash::Kill).await;
    assert_eq!(next.text("test/new.log"), "waits");
    assert_eq!(next.world.double.bytes(&journal("test/old.log")), None);
}
