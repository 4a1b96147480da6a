//! A broker that is away: how long each operation waits, and what goes on when it is back.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::double::{Absence, Double};
use fs::{HandleId, NodeId, ReadAt, Wait, WriteAt};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::time::Duration;
use tokio::time::Instant;
use world::{APPEND, SELF, World, errno, journal};

const ABSENCES: [Absence; 2] = [Absence::Refuses, Absence::Silent];

fn follow(handle: HandleId, nonblocking: bool) -> ReadAt {
    ReadAt { handle, offset: 4, size: 10, nonblocking, fills: false }
}

fn blind<T: 'static>(wait: Wait<T>) -> Wait<()> {
    Box::pin(async move { wait.await.map(drop) })
}

/// Every operation that asks a broker, by name, on a file that is there and open.
async fn operations(world: &World) -> Vec<(&'static str, Wait<()>)> {
    let fs = &world.fs;
    let node = world.find("a.log").await.unwrap().node;
    let handle = world.open("a.log", APPEND).await.unwrap();
    let written = WriteAt { handle, offset: 0, content: b"two\n", flags: APPEND };
    let synced = WriteAt { flags: APPEND | OFlags::SYNC, ..written };
    let create = APPEND | OFlags::CREATE;
    let fills = ReadAt { fills: true, ..follow(handle, false) };
    vec![
        ("lookup", blind(fs.lookup(NodeId::ROOT, b"a.log", SELF))),
        ("lookup of a new name", blind(fs.lookup(NodeId::ROOT, b"new", SELF))),
        ("getattr", blind(fs.getattr(node, SELF))),
        ("setattr", blind(fs.setattr(node, None, Some(4)))),
        ("open", blind(fs.open(node, APPEND, SELF))),
        ("create", blind(fs.create(NodeId::ROOT, b"other", create, SELF))),
        ("mknod", blind(fs.mknod(NodeId::ROOT, b"other"))),
        ("mkdir", blind(fs.mkdir(NodeId::ROOT, b"directory"))),
        ("rmdir", blind(fs.rmdir(NodeId::ROOT, b"directory"))),
        ("unlink", blind(fs.unlink(NodeId::ROOT, b"a.log"))),
        ("opendir", blind(fs.opendir(NodeId::ROOT))),
        ("getxattr", blind(fs.getxattr(node, b"user.courant.head"))),
        ("read", blind(fs.read(fills))),
        ("write", blind(fs.write(written))),
        ("synced write", blind(fs.write(synced))),
        ("fsync", blind(fs.fsync(handle))),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_operation_ends_in_its_time_whatever_it_asks_for_on_its_way() {
    for absence in ABSENCES {
        let world = World::with(Double::far(), |options| options.allow_delete = true);
        world.echo("a.log", b"one\n").await.unwrap();
        let limit = world.fs.options().write_timeout;
        for at in 0..operations(&world).await.len() {
            // Case: what its system call has spent before
            for spent in [Duration::ZERO, limit / 2, limit] {
                let (name, operation) = operations(&world).await.swap_remove(at);
                let operation = world.fs.within(spent, operation);
                world.double.be_away(absence);
                let began = Instant::now();
                assert_eq!(errno(operation.await), Errno::TIMEDOUT, "{name}, {absence:?}");
                assert_eq!(began.elapsed(), limit - spent, "{name}, {absence:?}");
                world.double.be_away(Absence::None);
            }
        }
        assert_eq!(world.double.bytes(&journal("test/a.log")).unwrap(), b"one\n");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_broker_answers_late_is_in_time() {
    let mut at = 0;
    loop {
        let world = World::new();
        world.echo("a.log", b"one\n").await.unwrap();
        let mut operations = operations(&world).await;
        if at == operations.len() {
            return;
        }
        let (name, operation) = operations.swap_remove(at);
        at += 1;
        if ["rmdir", "unlink", "lookup of a new name"].contains(&name) {
            continue;
        }
        world.double.be_away(Absence::Refuses);
        let operation = tokio::spawn(world.fs.within(Duration::ZERO, operation));
        tokio::time::sleep(world.fs.options().write_timeout / 2).await;
        assert!(!operation.is_finished(), "{name}");
        world.double.be_away(Absence::None);
        operation.await.unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn readers_of_the_follow_view_wait_for_a_broker_as_for_bytes() {
    for is_at_head in [true, false] {
        let world = World::new();
        world.echo("a.log", b"one\n").await.unwrap();
        let handle = world.open(".courant/follow/a.log", OFlags::RDONLY).await.unwrap();
        assert_eq!(world.read(handle, 0, 4).await.unwrap(), b"one\n");
        let reading = if is_at_head {
            let reading = tokio::spawn(world.fs.read(follow(handle, false)));
            tokio::task::yield_now().await;
            world.double.be_away(Absence::Refuses);
            reading
        } else {
            world.echo("a.log", b"two\n").await.unwrap();
            world.double.be_away(Absence::Refuses);
            tokio::spawn(world.fs.read(follow(handle, false)))
        };
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(!reading.is_finished());
        // Case: who may not wait is told to come again, and poll(2) that nothing is there
        assert_eq!(errno(world.fs.read(follow(handle, true)).await), Errno::AGAIN);
        let polled = world.fs.poll(handle).await.unwrap();
        assert!(!polled.is_readable);
        let polling = tokio::spawn(polled.grown.expect("it may grow"));
        world.double.be_away(Absence::None);
        if is_at_head {
            world.echo("a.log", b"two\n").await.unwrap();
        }
        assert_eq!(&reading.await.unwrap().unwrap()[..], b"two\n");
        polling.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_once_for_all_that_is_queued() {
    for absence in ABSENCES {
        let world = World::with(Double::new(), |options| options.asynchronous = true);
        world.double.put("test/a.log", b"");
        let limit = world.fs.options().write_timeout;
        let content = vec![b'x'; fs::limits::ATOMIC_MAX];
        let mut handles = Vec::new();
        for _ in 0..5 {
            handles.push(world.open("a.log", APPEND).await.unwrap());
        }
        world.double.be_away(absence);
        // None of them rides with another.
        for handle in &handles {
            world.write(*handle, 0, &content, APPEND).await.unwrap();
        }
        let began = Instant::now();
        let last = handles[4];
        let closed = world.fs.within(Duration::ZERO, world.fs.flush(last)).await;
        assert_eq!((errno(closed), began.elapsed()), (Errno::TIMEDOUT, limit));
        // Case: its failure stays, and what of it is queued is never written
        assert_eq!(errno(world.write(last, 0, b"y", APPEND).await), Errno::TIMEDOUT);
        world.double.be_away(Absence::None);
        for handle in &handles {
            let _told = world.fs.flush(*handle).await;
            let _idle = world.fs.release(*handle);
        }
        let there = world.double.bytes(&journal("test/a.log")).unwrap().len();
        assert!(there <= 4 * content.len(), "{there} bytes: more than of the other handles");
    }
}

#[tokio::test(start_paused = true)]
async fn status_tells_that_the_broker_is_away() {
    let world = World::new();
    let text = String::from_utf8(world.cat(".courant/status").await.unwrap()).unwrap();
    assert!(!text.contains("broker-away"), "{text}");
    world.double.be_away(Absence::Refuses);
    tokio::time::advance(Duration::from_secs(72)).await;
    let text = String::from_utf8(world.cat(".courant/status").await.unwrap()).unwrap();
    assert!(text.contains("broker-away-seconds 72\n"), "{text}");
    assert!(text.contains("broker-away-because the double is away\n"), "{text}");
}
