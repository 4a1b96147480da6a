//! The whole view: what is written between open and last close is one append.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::Error as Failure;
use client::disk::{Crash, Disk, Open};
use fs::double::Absence;
use fs::limits::DRAFTS_MAX;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::path::Path;
use world::staged::Staged;
use world::{errno, journal};

#[tokio::test]
async fn what_is_written_between_open_and_close_is_one_append() {
    let staged = Staged::new();
    let one = staged.open(".courant/whole/a.log").await;
    let two = staged.open(".courant/whole/a.log").await;
    let piece = vec![b'1'; 1 << 20];
    for _ in 0..5 {
        staged.append(one, &piece).await.unwrap();
        staged.append(two, b"2222").await.unwrap();
    }
    // Case: a duplicate is closed
    staged.world.fs.flush(one).await.unwrap();
    let there = staged.world.double.bytes(&journal("test/a.log"));
    assert_eq!(there, None, "no journal is made yet");
    staged.close(two).await;
    assert_eq!(staged.text("test/a.log"), "2222".repeat(5));
    staged.close(one).await;
    let expected = ["2222".repeat(5).into_bytes(), vec![b'1'; 5 << 20]].concat();
    assert!(staged.bytes("test/a.log") == expected);
    let status = staged.status().await;
    for span in ["0..20", "20..5242900"] {
        assert!(status.contains(&format!("\nclosed test/a.log {span} committed\n")), "{status}");
    }
    assert_eq!(staged.files(), (0, 0));
}

#[tokio::test]
async fn closes_commit_in_their_order() {
    let staged = Staged::new();
    staged.world.double.put("test/a.log", b"");
    let mut closing = Vec::new();
    let mut expected = String::new();
    for number in 0..50 {
        let handle = staged.open(".courant/whole/a.log").await;
        staged.append(handle, format!("{number}\n").as_bytes()).await.unwrap();
        closing.push(staged.world.fs.release(handle).unwrap());
        expected += &format!("{number}\n");
    }
    // Their work is begun in any order, as threads do.
    closing.reverse();
    futures::future::try_join_all(closing).await.unwrap();
    assert_eq!(staged.text("test/a.log"), expected);
}

#[tokio::test]
async fn closes_that_wait_for_one_another_are_all_committed_after_a_crash() {
    let staged = Staged::new();
    staged.world.double.put("test/a.log", b"");
    let mut closing = Vec::new();
    for content in ["one\n", "two\n", "three\n"] {
        let handle = staged.open(".courant/whole/a.log").await;
        staged.append(handle, content.as_bytes()).await.unwrap();
        closing.push(staged.world.fs.release(handle).unwrap());
    }
    staged.world.double.be_away(Absence::Refuses);
    // The first asks again and again, and the others come behind it.
    let away = futures::future::join_all(closing);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(100), away).await;
    assert!(waited.is_err(), "the broker is away");
    staged.world.double.be_away(Absence::None);
    let after = staged.after(Crash::Kill).await;
    let mut lines: Vec<String> = after.text("test/a.log").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["one", "three", "two"]);
    assert_eq!(after.files(), (0, 0));
}

#[tokio::test]
async fn a_whole_that_was_refused_after_a_lost_answer_is_there_once() {
    let staged = Staged::new();
    staged.world.double.put("test/a.log", b"");
    let handle = staged.open(".courant/whole/a.log").await;
    staged.append(handle, b"one").await.unwrap();
    let detail = "the journal is read-only".to_owned();
    let refused = Failure::NotAllowed { journal: journal("test/a.log"), detail };
    staged.world.double.fail_next(Failure::Unreachable("away".to_owned()));
    staged.world.double.fail_next(refused);
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "one");
    assert_eq!(staged.files(), (0, 0), "it is not set aside as if it were not there");
}

#[tokio::test]
async fn fsync_commits_and_tells_its_error() {
    let staged = Staged::new();
    let handle = staged.open(".courant/whole/a.log").await;
    staged.append(handle, b"one").await.unwrap();
    staged.world.fs.fsync(handle).await.unwrap();
    assert_eq!(staged.text("test/a.log"), "one");
    staged.append(handle, b"two").await.unwrap();
    staged.append(handle, b"three").await.unwrap();
    staged.world.double.forbid_writes(&journal("test/a.log"));
    assert_eq!(errno(staged.world.fs.fsync(handle).await), Errno::ROFS);
    // Case: at the close nobody can be told; nothing is lost
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "one");
    assert_eq!(staged.files(), (0, 1));
    let status = staged.status().await;
    assert!(status.contains("closed test/a.log 8 bytes set aside in"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_close_while_the_broker_is_away_is_committed_when_it_is_back() {
    let staged = Staged::new();
    let handle = staged.open(".courant/whole/a.log").await;
    staged.append(handle, b"whole").await.unwrap();
    for _ in 0..200 {
        staged.world.double.fail_next(Failure::Unreachable("away".to_owned()));
    }
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "whole");
    staged.world.fs.settled().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_closed_is_committed_after_a_crash_and_what_was_not_is_set_aside() {
    let staged = Staged::new();
    let closed = staged.open(".courant/whole/closed").await;
    let open = staged.open(".courant/whole/open").await;
    staged.append(closed, b"closed").await.unwrap();
    staged.append(open, b"open").await.unwrap();
    for _ in 0..20_000 {
        staged.world.double.fail_next(Failure::Later("away".to_owned()));
    }
    let closing = staged.world.fs.release(closed).unwrap();
    let given_up = tokio::time::timeout(std::time::Duration::from_secs(60), closing).await;
    assert!(given_up.is_err(), "it was committed");
    staged.world.double.fail_no_more();
    let next = staged.after(Crash::Kill).await;
    assert_eq!(next.text("test/closed"), "closed");
    assert_eq!(next.text("test/open"), "");
    let status = next.status().await;
    assert!(status.contains("closed test/closed 0..6 committed\n"), "{status}");
    assert!(status.contains("closed test/open 4 bytes set aside in"), "{status}");
    assert!(status.contains("the mount ended before the file was closed\n"), "{status}");
    assert_eq!(next.files(), (0, 1));
    // Case: what is aside stays there
    let last = next.after(Crash::Kill).await;
    assert_eq!((last.files(), last.text("test/open")), ((0, 1), String::new()));
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_off_is_set_aside_and_named() {
    // Case: bytes that are left of the file, whose content begins at byte 4096
    for len in [4096, 4098] {
        let staged = Staged::new();
        let handle = staged.open(".courant/whole/a.log").await;
        staged.append(handle, b"whole").await.unwrap();
        let draft = staged.disk.open(Path::new("000000000001.draft"), Open::Existing).unwrap();
        draft.set_len(len).unwrap();
        let next = staged.after(Crash::Kill).await;
        let status = next.status().await;
        assert!(status.contains("\nclosed damaged "), "{len} bytes: {status}");
        assert_eq!((next.files(), next.text("test/a.log")), ((0, 1), String::new()));
    }
}

#[tokio::test]
async fn without_append_a_whole_file_begins_at_the_head() {
    let staged = Staged::new();
    staged.world.echo("a.log", b"old\n").await.unwrap();
    let handle = staged.world.open(".courant/whole/a.log", OFlags::WRONLY).await.unwrap();
    // Case: offset, outcome
    let cases = [
        (0, Err(Errno::PERM)),
        (9, Err(Errno::INVAL)),
        (4, Ok(2)),
        (6, Ok(2)),
        (6, Err(Errno::PERM)),
    ];
    for (offset, outcome) in cases {
        let written = staged.world.write(handle, offset, b"ab", OFlags::WRONLY).await;
        assert_eq!(written.map_err(|error| error.errno()), outcome, "at {offset}");
        if outcome.is_ok() {
            // Others may append meanwhile: the whole goes behind them.
            staged.world.echo("a.log", b"-").await.unwrap();
        }
    }
    staged.close(handle).await;
    assert_eq!(staged.text("test/a.log"), "old\n--abab");
    // Case: old bytes are never truncated
    let truncate = OFlags::WRONLY | OFlags::TRUNC;
    assert_eq!(errno(staged.world.open(".courant/whole/a.log", truncate).await), Errno::PERM);
}

#[tokio::test]
async fn a_failed_write_spoils_the_whole() {
    let staged = Staged::with(10, |_| {});
    let handle = staged.open(".courant/whole/a.log").await;
    staged.append(handle, b"1234567").await.unwrap();
    assert_eq!(errno(staged.append(handle, b"1234").await), Errno::NOSPC);
    // Case: what would have room, and fsync
    assert_eq!(errno(staged.append(handle, b"1").await), Errno::NOSPC);
    assert_eq!(errno(staged.world.fs.fsync(handle).await), Errno::NOSPC);
    staged.close(handle).await;
    assert_eq!((staged.text("test/a.log"), staged.files()), (String::new(), (0, 0)));
    let status = staged.status().await;
    assert!(status.contains("closed test/a.log 7 bytes dropped: "), "{status}");
    assert!(status.contains("staged-bytes 0\n"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_for_the_room_of_what_is_closed() {
    // Case: all files are taken, or all bytes
    let cases = [(u64::MAX, DRAFTS_MAX, 1), (10, 2, 5)];
    for (room, files, len) in cases {
        let staged = Staged::with(room, |_| {});
        let mut handles = Vec::new();
        for at in 0..files {
            let handle = staged.open(&format!(".courant/whole/{at}.log")).await;
            staged.append(handle, &vec![b'x'; len]).await.unwrap();
            handles.push(handle);
        }
        // Case: nobody makes room, and it is told at once
        let late = staged.open(".courant/whole/late.log").await;
        assert_eq!(errno(staged.append(late, b"spoiled").await), Errno::NOSPC);
        let next = staged.open(".courant/whole/next.log").await;
        for _ in 0..50 {
            staged.world.double.fail_next(Failure::Unreachable("away".to_owned()));
        }
        let closing = tokio::spawn(staged.world.fs.release(handles[0]).unwrap());
        assert_eq!(staged.append(next, b"next").await.unwrap(), 4, "{files} files");
        closing.await.unwrap().unwrap();
        staged.close(next).await;
        assert_eq!(staged.text("test/next.log"), "next");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_closed_follows_the_name_of_its_file() {
    let staged = Staged::new();
    let handle = staged.open(".courant/whole/old.log").await;
    staged.append(handle, b"whole").await.unwrap();
    let closing = staged.world.fs.release(handle).unwrap();
    staged.world.rename("old.log", "new.log").await.unwrap();
    closing.await.unwrap();
    assert_eq!((staged.text("test/new.log"), staged.files()), ("whole".to_owned(), (0, 0)));
}

#[tokio::test]
async fn views_have_the_same_tree() {
    let staged = Staged::new();
    let world = &staged.world;
    world.mkdir(".courant/whole/made").await.unwrap();
    world.mkdir("app").await.unwrap();
    world.echo("app/a.log", b"old\n").await.unwrap();
    let handle = staged.open(".courant/lines/made/new.log").await;
    for view in ["", ".courant/lines/", ".courant/whole/"] {
        assert_eq!(world.ls(view).await, ["app", "made"], "{view}");
        assert_eq!(world.ls(&format!("{view}made")).await, ["new.log"]);
        assert_eq!(world.cat(&format!("{view}app/a.log")).await.unwrap(), b"old\n");
        let inode = world.stat(&format!("{view}app/a.log")).await.unwrap().inode;
        assert_eq!(inode, world.stat("app/a.log").await.unwrap().inode);
    }
    let rooms = ["follow", "lines", "whole", "fragments", "specs", "status"];
    assert_eq!(world.ls(".courant").await, rooms);
    // Case: a file that is unlinked before its first byte takes what was written with it
    staged.append(handle, b"gone").await.unwrap();
    world.unlink("made/new.log").await.unwrap();
    staged.close(handle).await;
    assert_eq!((staged.text("test/made/new.log"), staged.files()), (String::new(), (0, 0)));
}

#[tokio::test]
async fn a_mount_without_a_staging_directory_has_no_such_writes() {
    let world = world::World::new();
    world.echo("a.log", b"old\n").await.unwrap();
    for view in ["lines", "whole"] {
        let path = format!(".courant/{view}/a.log");
        assert_eq!(errno(world.open(&path, world::APPEND).await), Errno::OPNOTSUPP);
        assert_eq!(world.cat(&path).await.unwrap(), b"old\n");
    }
}

#[tokio::test]
async fn what_waits_is_never_truncated() {
    let staged = Staged::new();
    let world = &staged.world;
    world.echo("old.log", b"0123").await.unwrap();
    // Case: the file, flags of its writes, where they begin, where it ends in the end
    for (name, flags, at, end) in [
        ("one.log", OFlags::WRONLY, 0, 7),
        ("two.log", world::APPEND, 0, 7),
        ("old.log", OFlags::WRONLY, 4, 11),
        ("old.log", world::APPEND, 0, 18),
    ] {
        let path = format!(".courant/whole/{name}");
        let handle = world.open(&path, flags | OFlags::CREATE).await.unwrap();
        world.write(handle, at, b"abc", flags).await.unwrap();
        world.write(handle, at + 3, b"defg", flags).await.unwrap();
        let node = world.find(&path).await.unwrap().node;
        let resized = |size| world.fs.setattr(node, Some(handle), Some(size));
        // As rsync does when it has written a file.
        resized(end).await.unwrap();
        for size in [0, 4, end - 1] {
            assert_eq!(errno(resized(size).await), Errno::PERM, "{name} {size}");
        }
        assert_eq!(errno(resized(end + 1).await), Errno::INVAL, "{name}");
        staged.close(handle).await;
        assert!(staged.text(&format!("test/{name}")).ends_with("abcdefg"), "{name}");
        assert_eq!(world.stat(name).await.unwrap().size, end, "{name}");
    }
}
