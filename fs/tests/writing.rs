//! What a write does: one append, whole, at the head, or an error that says so.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::{Durability, Error as Failure};
use fs::Fsync;
use fs::double::Double;
use fs::limits::ATOMIC_MAX;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::time::Duration;
use world::{APPEND, World, errno, journal};

#[tokio::test]
async fn appends_go_to_the_head_whatever_the_offset() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let handle = world.open("a.log", APPEND).await.unwrap();
    // Case: the kernel's offset is stale, or beyond.
    for offset in [0, 2, 1_000] {
        world.write(handle, offset, b"x", APPEND).await.unwrap();
    }
    assert_eq!(world.cat("a.log").await.unwrap(), b"one\nxxx");
    // Case: fcntl took O_APPEND away, or set it, after the open.
    assert_eq!(errno(world.write(handle, 0, b"y", OFlags::WRONLY).await), Errno::PERM);
    world.write(handle, 0, b"y", APPEND).await.unwrap();
    assert_eq!(world.stat("a.log").await.unwrap().size, 8);
}

#[tokio::test]
async fn without_append_only_a_write_at_the_head_is_one() {
    let world = World::new();
    world.echo("a.log", b"0123456789").await.unwrap();
    let handle = world.open("a.log", OFlags::RDWR).await.unwrap();
    // Case: (offset, outcome)
    let cases =
        [(0, Err(Errno::PERM)), (9, Err(Errno::PERM)), (11, Err(Errno::INVAL)), (10, Ok(2))];
    for (offset, outcome) in cases {
        let written = world.write(handle, offset, b"ab", OFlags::RDWR).await;
        assert_eq!(written.map_err(|error| error.errno()), outcome, "at {offset}");
    }
    // Case: a second writer that remembers the same offset.
    assert_eq!(errno(world.write(handle, 10, b"cd", OFlags::RDWR).await), Errno::PERM);
    assert_eq!(world.cat("a.log").await.unwrap(), b"0123456789ab");
}

#[tokio::test]
async fn a_write_over_the_limit_is_answered_short() {
    let world = World::new();
    world.echo("a.log", b"-").await.unwrap();
    let handle = world.open("a.log", APPEND).await.unwrap();
    let content = vec![b'x'; ATOMIC_MAX + 1];
    assert_eq!(world.write(handle, 0, &content, APPEND).await.unwrap(), ATOMIC_MAX);
    let exact = &content[..ATOMIC_MAX];
    assert_eq!(world.write(handle, 0, exact, APPEND).await.unwrap(), ATOMIC_MAX);
    assert_eq!(world.cat("a.log").await.unwrap().len(), 1 + 2 * ATOMIC_MAX);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_applied_once() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    // Case: the broker applied the append, and is away or busy before its answer came.
    for failure in [Failure::Unreachable("away".to_owned()), Failure::Later("busy".to_owned())] {
        world.double.fail_next(failure);
        world.echo("a.log", b"x").await.unwrap();
    }
    assert_eq!(world.cat("a.log").await.unwrap(), b"one\nxx");
}

#[tokio::test(start_paused = true)]
async fn a_write_gives_up_after_its_time() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    for _ in 0..1_000 {
        world.double.fail_next(Failure::Later("busy".to_owned()));
    }
    assert_eq!(errno(world.echo("a.log", b"two\n").await), Errno::TIMEDOUT);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_would_wait_for_its_journals_rate_for_too_long_is_over_quota() {
    // Case: each write by itself, and those of a queue
    for asynchronous in [false, true] {
        let world = World::with(Double::new(), |options| options.asynchronous = asynchronous);
        echo_and_close(&world, b"one\n").await.unwrap();
        let limit = world.fs.options().write_timeout;
        // Case: the time of the mount, nearly all of it, most of it
        for (wait, expected) in [
            (limit, Err(Errno::DQUOT)),
            (limit * 9 / 10, Err(Errno::DQUOT)),
            (limit * 8 / 10, Ok(())),
        ] {
            world.double.slow_down(wait);
            let began = tokio::time::Instant::now();
            let written = echo_and_close(&world, b"two\n").await;
            assert_eq!(written, expected, "{wait:?}");
            assert_eq!(began.elapsed().is_zero(), expected.is_err(), "it is told at once");
        }
        world.double.slow_down(Duration::ZERO);
        assert_eq!(world.cat("a.log").await.unwrap(), b"one\ntwo\n", "nothing was appended");
    }
}

/// A write and a close: which tells what became of the write, where it was only queued.
async fn echo_and_close(world: &World, content: &[u8]) -> Result<(), Errno> {
    let handle =
        world.open("a.log", APPEND | OFlags::CREATE).await.map_err(|error| error.errno())?;
    let written = world.write(handle, 0, content, APPEND).await.map(drop);
    let closed = world.fs.flush(handle).await;
    world.fs.release(handle);
    written.and(closed).map_err(|error| error.errno())
}

#[tokio::test]
async fn failures_are_told_at_once_where_asking_again_is_no_use() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let name = || journal("test/a.log");
    // Case: (failure, errno)
    let cases = [
        (Failure::NoSpace(name(), "full".to_owned()), Errno::NOSPC),
        (Failure::TooLarge(name(), 2, 1), Errno::FBIG),
        (Failure::Unknown, Errno::TIMEDOUT),
        (Failure::SecondWriter(name(), "sum".to_owned()), Errno::IO),
    ];
    for (failure, expected) in cases {
        world.double.fail_next(failure);
        assert_eq!(errno(world.echo("a.log", b"x").await), expected);
    }
}

#[tokio::test]
async fn old_bytes_can_not_be_truncated() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let truncate = OFlags::WRONLY | OFlags::TRUNC;
    assert_eq!(errno(world.open("a.log", truncate).await), Errno::PERM);
    let node = world.find("a.log").await.unwrap().node;
    // Case: (size, outcome)
    let cases = [(0, Err(Errno::PERM)), (3, Err(Errno::PERM)), (4, Ok(4)), (5, Err(Errno::INVAL))];
    for (size, outcome) in cases {
        let resized = world.fs.setattr(node, None, Some(size)).await;
        assert_eq!(resized.map(|attr| attr.size).map_err(|error| error.errno()), outcome);
    }
    // Case: chmod, chown, utimens.
    world.fs.setattr(node, None, None).await.unwrap();
    // Case: a file without a byte.
    let handle = world.open("new.log", truncate | OFlags::CREATE).await.unwrap();
    let node = world.find("new.log").await.unwrap().node;
    world.fs.setattr(node, None, Some(0)).await.unwrap();
    world.fs.release(handle);
}

#[tokio::test]
async fn what_may_not_be_written_says_so_at_open() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    world.double.forbid_writes(&journal("test/a.log"));
    assert_eq!(errno(world.open("a.log", APPEND).await), Errno::ROFS);
    assert_eq!(world.stat("a.log").await.unwrap().mode, 0o444);
    assert_eq!(world.cat("a.log").await.unwrap(), b"one\n");

    let world = World::with(Double::new(), |options| options.read_only = true);
    assert_eq!(errno(world.echo("a.log", b"one\n").await), Errno::ROFS);
    assert_eq!(errno(world.mkdir("a").await), Errno::ROFS);
}

#[tokio::test]
async fn fsync_means_disk() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let synced = async |world: &World| {
        let node = world.find("a.log").await.unwrap().node;
        String::from_utf8(world.fs.getxattr(node, b"user.courant.synced").await.unwrap()).unwrap()
    };
    assert_eq!(synced(&world).await, "0");
    let handle = world.open("a.log", APPEND).await.unwrap();
    world.fs.fsync(handle).await.unwrap();
    assert_eq!(synced(&world).await, "4");
    // Case: O_DSYNC is known at each write.
    world.write(handle, 0, b"two\n", APPEND | OFlags::DSYNC).await.unwrap();
    assert_eq!(synced(&world).await, "8");
    // Case: a broker without a disk, on a mount that was told so or not.
    world.double.fail_next(Failure::NoDisk("it".to_owned()));
    assert_eq!(errno(world.fs.fsync(handle).await), Errno::INVAL);
    let told = World::with(Double::new(), |options| options.fsync = Fsync::Replicated);
    told.echo("a.log", b"one\n").await.unwrap();
    let handle = told.open("a.log", APPEND).await.unwrap();
    told.double.fail_next(Failure::NoDisk("it".to_owned()));
    told.fs.fsync(handle).await.unwrap();
    // Case: a mount whose every write is synced.
    let world = World::with(Double::new(), |options| options.durability = Durability::Disk);
    world.echo("a.log", b"one\n").await.unwrap();
    assert_eq!(synced(&world).await, "4");
}

#[tokio::test]
async fn a_handle_belongs_to_the_life_that_it_was_opened_on() {
    let world = World::with(Double::new(), |options| options.allow_delete = true);
    world.echo("a.log", b"one\n").await.unwrap();
    let handle = world.open("a.log", OFlags::RDWR | OFlags::APPEND).await.unwrap();
    let inode = world.stat("a.log").await.unwrap().inode;
    world.unlink("a.log").await.unwrap();
    assert_eq!(errno(world.find("a.log").await), Errno::NOENT);
    world.echo("a.log", b"two\n").await.unwrap();
    assert_ne!(world.stat("a.log").await.unwrap().inode, inode);
    let flags = OFlags::RDWR | OFlags::APPEND;
    assert_eq!(errno(world.write(handle, 0, b"x", flags).await), Errno::STALE);
    assert_eq!(errno(world.read(handle, 0, 10).await), Errno::STALE);
    assert_eq!(world.cat("a.log").await.unwrap(), b"two\n");
}

#[tokio::test]
async fn a_sync_is_begun_with_the_write_where_one_is_likely_to_be_asked_for() {
    let world = World::new();
    world.echo("a.log", b"-").await.unwrap();
    world.echo("a.log", b"-").await.unwrap();
    let handle = world.open("a.log", APPEND).await.unwrap();
    // Case: (what is done, syncs that were foreseen by then)
    let steps = [
        ("sync", 0),
        ("write", 0),
        ("sync", 0),
        ("write", 1),
        ("write", 1),
        ("sync", 1),
        ("write", 1),
    ];
    for (number, (step, foreseen)) in steps.into_iter().enumerate() {
        match step {
            "sync" => world.fs.fsync(handle).await.unwrap(),
            _ => drop(world.write(handle, 0, b"x", APPEND).await.unwrap()),
        }
        assert_eq!(world.double.foreseen(), foreseen, "after step {number}");
    }
}

#[tokio::test]
async fn a_sync_that_came_too_late_says_so_once() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let handle = world.open("a.log", APPEND).await.unwrap();
    world.fs.fsync(handle).await.unwrap();
    world.write(handle, 0, b"two\n", APPEND).await.unwrap();
    // Case: the broker's machine loses what is in its memory, and comes back.
    world.double.lose(&journal("test/a.log"));
    assert_eq!(errno(world.fs.fsync(handle).await), Errno::IO);
    // Case: it was told.
    world.fs.fsync(handle).await.unwrap();
    // Case: what is written from then on is kept, whatever was lost before.
    world.write(handle, 0, b"three\n", APPEND).await.unwrap();
    world.fs.fsync(handle).await.unwrap();
    // Case: what was synced by itself is not asked for again, and lost by nothing.
    world.write(handle, 0, b"four\n", APPEND | OFlags::DSYNC).await.unwrap();
    world.fs.fsync(handle).await.unwrap();
}
