//! `--async`: a write is answered when it is queued, and flush and fsync tell what became of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::Error as Failure;
use fs::double::Double;
use fs::limits::{ATOMIC_MAX, QUEUED_MAX};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::time::Duration;
use world::{APPEND, World, errno, journal};

fn queued() -> World {
    World::with(Double::new(), |options| options.asynchronous = true)
}

fn text(world: &World) -> String {
    String::from_utf8(world.double.bytes(&journal("test/a.log")).unwrap_or_default()).unwrap()
}

#[tokio::test]
async fn queued_writes_ride_together_in_their_order() {
    let world = queued();
    world.double.put("test/a.log", b"");
    let before = world.stat("a.log").await.unwrap().modified;
    let one = world.open("a.log", APPEND).await.unwrap();
    let two = world.open("a.log", APPEND).await.unwrap();
    for number in 0..10 {
        let handle = if number % 2 == 0 { one } else { two };
        let line = format!("{number}\n");
        assert_eq!(world.write(handle, 0, line.as_bytes(), APPEND).await.unwrap(), 2);
    }
    // This runtime has one thread, and nobody has waited: nothing is appended yet.
    assert_eq!(text(&world), "");
    world.fs.flush(one).await.unwrap();
    assert_eq!(text(&world), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    // Each append of the double is a second later than the last.
    let after = world.stat("a.log").await.unwrap().modified;
    assert_eq!(after.duration_since(before).unwrap(), Duration::from_secs(1), "several appends");
}

#[tokio::test]
async fn fsync_and_synced_writes_wait_for_what_is_queued() {
    let world = queued();
    world.double.put("test/a.log", b"");
    let handle = world.open("a.log", APPEND).await.unwrap();
    world.write(handle, 0, b"one\n", APPEND).await.unwrap();
    world.fs.fsync(handle).await.unwrap();
    assert_eq!(text(&world), "one\n");
    world.write(handle, 0, b"two\n", APPEND).await.unwrap();
    world.write(handle, 0, b"three\n", APPEND | OFlags::DSYNC).await.unwrap();
    assert_eq!(text(&world), "one\ntwo\nthree\n");
    world.fs.settled().await;
}

#[tokio::test]
async fn the_first_failure_stays_with_its_handle() {
    let world = queued();
    world.double.put("test/a.log", b"");
    let other = world.open("a.log", APPEND).await.unwrap();
    let handle = world.open("a.log", OFlags::WRONLY).await.unwrap();
    // Somebody else is quicker: the condition of the queued write does not hold any more.
    world.write(other, 0, b"other\n", APPEND).await.unwrap();
    world.write(handle, 0, b"one\n", OFlags::WRONLY).await.unwrap();
    world.write(handle, 4, b"two\n", OFlags::WRONLY).await.unwrap();
    for _ in 0..2 {
        assert_eq!(errno(world.fs.flush(handle).await), Errno::PERM);
        assert_eq!(errno(world.write(handle, 8, b"x", OFlags::WRONLY).await), Errno::PERM);
        assert_eq!(errno(world.fs.fsync(handle).await), Errno::PERM);
    }
    // Case: other handles go on
    world.write(other, 0, b"more\n", APPEND).await.unwrap();
    world.fs.flush(other).await.unwrap();
    assert_eq!(text(&world), "other\nmore\n");
}

#[tokio::test]
async fn writes_without_append_ride_where_they_go_on() {
    let world = queued();
    world.double.put("test/a.log", b"");
    let handle = world.open("a.log", OFlags::WRONLY).await.unwrap();
    world.write(handle, 0, b"one\n", OFlags::WRONLY).await.unwrap();
    world.write(handle, 4, b"two\n", OFlags::WRONLY).await.unwrap();
    world.fs.flush(handle).await.unwrap();
    assert_eq!(text(&world), "one\ntwo\n");
}

#[tokio::test]
async fn a_queue_has_room_for_so_much_and_the_next_write_waits() {
    let world = queued();
    world.double.put("test/a.log", b"");
    let handle = world.open("a.log", APPEND).await.unwrap();
    let content = vec![b'x'; ATOMIC_MAX];
    let count = QUEUED_MAX / ATOMIC_MAX;
    for _ in 0..count {
        world.write(handle, 0, &content, APPEND).await.unwrap();
    }
    assert_eq!(text(&world).len(), 0, "a write waited before there was need");
    world.write(handle, 0, &content, APPEND).await.unwrap();
    assert!(text(&world).len() >= ATOMIC_MAX, "it did not wait");
    // Case: an answer that is lost is asked for again
    world.double.fail_next(Failure::Unreachable("away".to_owned()));
    world.fs.flush(handle).await.unwrap();
    assert_eq!(text(&world).len(), (count + 1) * ATOMIC_MAX);
}
