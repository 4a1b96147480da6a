//! What a read gives: exact bytes to the head, and beyond it only what was asked to wait.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::Error as Failure;
use fs::double::Double;
use fs::{ReadAt, Seek, Trimmed};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::time::Duration;
use world::{World, errno, journal};

#[tokio::test]
async fn every_size_is_read_exactly() {
    for size in [0_usize, 1, 4_095, 4_096, 131_073, 1_048_577] {
        let world = World::new();
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        world.echo("a.log", b"").await.unwrap();
        for piece in content.chunks(100_000) {
            world.echo("a.log", piece).await.unwrap();
        }
        assert_eq!(world.cat("a.log").await.unwrap(), content);
        // The double gives pieces of 100,000: one read gets all that is there.
        let handle = world.open("a.log", OFlags::RDONLY).await.unwrap();
        assert_eq!(world.read(handle, 0, 2_000_000).await.unwrap().len(), size);
        assert_eq!(world.read(handle, size as u64, 10).await.unwrap(), b"");
        assert_eq!(world.read(handle, size as u64 + 5, 10).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn a_trimmed_range_is_an_error_or_the_hole_that_was_asked_for() {
    let world = World::new();
    world.echo("a.log", b"0123456789").await.unwrap();
    world.double.trim(&journal("test/a.log"), 4);
    let handle = world.open("a.log", OFlags::RDONLY).await.unwrap();
    assert_eq!(errno(world.read(handle, 0, 10).await), Errno::NODATA);
    assert_eq!(world.read(handle, 4, 10).await.unwrap(), b"456789");

    let sparse = World::with(Double::new(), |options| options.trimmed = Trimmed::Sparse);
    sparse.echo("a.log", b"0123456789").await.unwrap();
    sparse.double.trim(&journal("test/a.log"), 4);
    assert_eq!(sparse.cat("a.log").await.unwrap(), b"\0\0\0\x00456789");
    // Case: what was lost behind it is no hole
    sparse.double.lose(&journal("test/a.log"));
    let handle = sparse.open("a.log", OFlags::RDONLY).await.unwrap();
    assert_eq!(sparse.read(handle, 0, 4).await.unwrap(), b"\0\0\0\0");
    assert_eq!(errno(sparse.read(handle, 4, 10).await), Errno::NODATA);
    let node = sparse.find("a.log").await.unwrap().node;
    let holes = [0, 4].map(|offset| sparse.fs.seek(node, offset, Seek::Hole));
    assert_eq!(futures::future::try_join_all(holes).await.unwrap(), [0, 10]);
}

#[tokio::test]
async fn trimmed_ranges_are_the_only_holes() {
    let world = World::new();
    world.echo("a.log", b"0123456789").await.unwrap();
    world.double.trim(&journal("test/a.log"), 4);
    let node = world.find("a.log").await.unwrap().node;
    // Case: (offset, next data, next hole)
    let cases = [
        (0, Ok(4), Ok(0)),
        (3, Ok(4), Ok(3)),
        (4, Ok(4), Ok(10)),
        (9, Ok(9), Ok(10)),
        (10, Err(Errno::NXIO), Err(Errno::NXIO)),
        (-1, Err(Errno::NXIO), Err(Errno::NXIO)),
    ];
    for (offset, data, hole) in cases {
        for (seek, expected) in [(Seek::Data, data), (Seek::Hole, hole)] {
            let found = world.fs.seek(node, offset, seek).await;
            assert_eq!(found.map_err(|error| error.errno()), expected, "{seek:?} at {offset}");
        }
    }
}

#[tokio::test]
async fn an_error_after_some_bytes_is_told_by_the_next_read() {
    let world = World::new();
    for _ in 0..2 {
        world.echo("a.log", &[b'x'; 100_000]).await.unwrap();
    }
    let handle = world.open("a.log", OFlags::RDONLY).await.unwrap();
    world.double.fail_next(Failure::Later("once".to_owned()));
    // Case: what passes is not seen at all.
    assert_eq!(world.read(handle, 0, 200_000).await.unwrap().len(), 200_000);
    world.double.fail_next(Failure::Io("disk".to_owned()));
    assert_eq!(errno(world.read(handle, 0, 10).await), Errno::IO);
}

#[tokio::test]
async fn the_follow_view_waits_at_the_head() {
    let world = World::new();
    world.echo("a.log", b"one\n").await.unwrap();
    let handle = world.open(".courant/follow/a.log", OFlags::RDONLY).await.unwrap();
    assert_eq!(world.read(handle, 0, 10).await.unwrap(), b"one\n");
    let read = ReadAt { handle, offset: 4, size: 10, nonblocking: false, fills: false };

    // Case: O_NONBLOCK; a fill of the page cache, which never waits.
    let nonblocking = ReadAt { nonblocking: true, ..read };
    assert_eq!(errno(world.fs.read(nonblocking).await), Errno::AGAIN);
    assert!(world.fs.read(ReadAt { fills: true, ..read }).await.unwrap().is_empty());

    let polled = world.fs.poll(handle).await.unwrap();
    assert!(!polled.is_readable);
    // Case: who is told of changes alone is told of the next one also where there is something
    let at_begin = world.open(".courant/follow/a.log", OFlags::RDONLY).await.unwrap();
    let readable = world.fs.poll(at_begin).await.unwrap();
    assert!(readable.is_readable);
    let changing = tokio::spawn(readable.grown.expect("it may grow"));
    let waiting = tokio::spawn(world.fs.read(read));
    let polling = tokio::spawn(polled.grown.expect("it may grow"));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished() && !polling.is_finished() && !changing.is_finished());
    world.echo("a.log", b"two\n").await.unwrap();
    assert_eq!(&waiting.await.unwrap().unwrap()[..], b"two\n");
    polling.await.unwrap().unwrap();
    changing.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_follow_view_ends_with_its_journal() {
    let world = World::with(Double::new(), |options| options.allow_delete = true);
    world.echo("a.log", b"one\n").await.unwrap();
    let handle = world.open(".courant/follow/a.log", OFlags::RDONLY).await.unwrap();
    let read = ReadAt { handle, offset: 4, size: 10, nonblocking: false, fills: false };
    let waiting = tokio::spawn(world.fs.read(read));
    tokio::task::yield_now().await;
    world.unlink("a.log").await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    assert_eq!(errno(ended), Errno::STALE);
}

#[tokio::test]
async fn the_follow_view_can_only_be_read() {
    let world = World::new();
    world.echo("d/a.log", b"one\n").await.unwrap_err();
    world.mkdir("d").await.unwrap();
    world.echo("d/a.log", b"one\n").await.unwrap();
    let views = ["follow", "lines", "whole", "fragments", "specs", "status"];
    assert_eq!(world.ls(".courant").await, views);
    assert_eq!(world.ls(".courant/follow").await, ["d"]);
    assert_eq!(world.ls(".courant/follow/d").await, ["a.log"]);
    let path = ".courant/follow/d/a.log";
    assert_eq!(errno(world.open(path, world::APPEND).await), Errno::ROFS);
    assert_eq!(errno(world.unlink(path).await), Errno::PERM);
    assert_eq!(errno(world.echo(".courant/follow/d/new", b"x").await), Errno::PERM);
    let (plain, follow) = (world.stat("d/a.log").await, world.stat(path).await);
    assert_eq!(plain.unwrap().inode, follow.unwrap().inode);
}

#[tokio::test]
async fn status_is_a_text() {
    let world = World::new();
    let text = String::from_utf8(world.cat(".courant/status").await.unwrap()).unwrap();
    assert!(text.lines().any(|line| line == "prefix test/"), "{text}");
    assert_eq!(errno(world.open(".courant/status", world::APPEND).await), Errno::ROFS);
}
