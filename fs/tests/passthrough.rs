//! The two nodes of a journal, the hand-over between them, and the kernel's page cache.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::double::Double;
use fs::{Caller, Kernel, LastByte, NodeId, ReadAt, Way};
use futures::future::BoxFuture;
use protocol::Offset;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use world::{APPEND, SELF, World, errno, journal};

fn lending() -> (World, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let double = Double::with_mirrors(directory.path().to_owned());
    (World::with(double, |_| {}), directory)
}

/// Whether the kernel reads by itself, and whether writes come to us all the same.
async fn way(world: &World, flags: OFlags) -> (Option<bool>, fs::HandleId) {
    let opened = world.open_as("a.log", flags, SELF).await.unwrap();
    let way = match opened.way {
        Way::Direct => None,
        Way::Passthrough { direct, .. } => Some(direct),
    };
    (way, opened.handle)
}

#[tokio::test]
async fn handles_go_to_the_node_of_their_mode() {
    let (world, _directory) = lending();
    world.echo("a.log", b"one\n").await.unwrap();
    // Case: (flags, way)
    let cases = [
        (OFlags::RDONLY, Some(false)),
        (OFlags::WRONLY, Some(true)),
        (APPEND, Some(true)),
        (OFlags::RDWR, None),
        (OFlags::RDONLY, Some(false)),
    ];
    let mut handles = Vec::new();
    for (flags, expected) in cases {
        let (way, handle) = way(&world, flags).await;
        assert_eq!(way, expected, "{flags:?}");
        handles.push(handle);
    }
    assert_eq!(world.double.pins(), 4, "a loan is out for each passthrough handle");
    for handle in handles {
        world.fs.release(handle);
    }
    assert_eq!(world.double.pins(), 0);
}

#[tokio::test]
async fn both_nodes_are_one_file() {
    let (world, _directory) = lending();
    world.echo("a.log", b"one\n").await.unwrap();
    let passthrough = world.find("a.log").await.unwrap();
    assert_eq!(errno(world.fs.open(passthrough.node, OFlags::RDWR, SELF).await), Errno::STALE);
    // Case: the kernel looks up twice; another thread still gets the passthrough node.
    let direct = world.find("a.log").await.unwrap();
    assert_eq!(world.find("a.log").await.unwrap().node, direct.node);
    assert_ne!(direct.node, passthrough.node);
    let other = Caller { thread: 8 };
    assert_eq!(world.find_as("a.log", other).await.unwrap().node, passthrough.node);
    // Case: a caller without a thread id.
    let unknown = Caller { thread: 0 };
    assert_eq!(world.find_as("a.log", unknown).await.unwrap().node, direct.node);

    let attrs = (
        world.fs.getattr(passthrough.node, Caller::default()).await,
        world.fs.getattr(direct.node, Caller::default()).await,
    );
    assert_eq!(attrs.0.unwrap(), attrs.1.unwrap());
    let handle = world.fs.open(direct.node, OFlags::RDWR, SELF).await.unwrap().handle;
    // Case: having arrived, the thread is not sent on.
    assert_eq!(world.find("a.log").await.unwrap().node, passthrough.node);
    world.fs.release(handle);
}

#[tokio::test]
async fn a_mirror_that_can_not_be_opened_leads_to_the_direct_node() {
    let (world, _directory) = lending();
    world.echo("a.log", b"one\n").await.unwrap();
    let opened = world.open_as("a.log", OFlags::RDONLY, SELF).await.unwrap();
    world.fs.refuse_passthrough(opened.handle, SELF);
    assert_eq!(world.double.pins(), 0);
    assert_eq!(way(&world, OFlags::RDONLY).await.0, None);
    assert_eq!(way(&world, OFlags::RDONLY).await.0, Some(false));
    world.fs.stop_passthrough();
    assert_eq!(way(&world, OFlags::RDONLY).await.0, None);
}

#[tokio::test]
async fn what_is_no_longer_whole_in_its_mirror_is_read_directly() {
    let (world, _directory) = lending();
    world.echo("a.log", b"one\n").await.unwrap();
    let node = world.find("a.log").await.unwrap().node;
    world.double.trim(&journal("test/a.log"), 2);
    // Case: looked up before, opened after.
    assert_eq!(errno(world.fs.open(node, OFlags::RDONLY, SELF).await), Errno::STALE);
    assert_eq!(way(&world, OFlags::RDONLY).await.0, None);
}

/// A kernel that notes which pages it drops, and what was told while it did.
#[derive(Default)]
struct Cache {
    dropped: Mutex<Vec<(NodeId, Offset)>>,
    /// The last bytes that it was shown, and where.
    shown: Mutex<Vec<(NodeId, u64, u8)>>,
}

impl Kernel for Cache {
    fn renew(&self, node: NodeId, from: Offset, last: Option<LastByte>) -> BoxFuture<'static, ()> {
        self.dropped.lock().unwrap().push((node, from));
        self.shown.lock().unwrap().extend(last.map(|last| (node, last.at.as_u64(), last.byte)));
        Box::pin(async {})
    }
}

impl Cache {
    fn take(&self) -> Vec<(NodeId, u64)> {
        let dropped = std::mem::take(&mut *self.dropped.lock().unwrap());
        dropped.into_iter().map(|(node, from)| (node, from.as_u64())).collect()
    }
}

#[tokio::test]
async fn pages_are_dropped_before_a_new_size_is_told_once_the_cache_is_used() {
    let (world, _directory) = lending();
    let cache = Arc::new(Cache::default());
    world.fs.attach(cache.clone());
    world.echo("a.log", &[b'x'; 5_000]).await.unwrap();
    let passthrough = world.find("a.log").await.unwrap().node;
    let (_, direct) = way(&world, OFlags::RDWR).await;
    world.stat("a.log").await.unwrap();
    assert_eq!(cache.take(), [], "nothing was cached");

    let fill = ReadAt { handle: direct, offset: 0, size: 8_192, nonblocking: false, fills: true };
    assert_eq!(world.fs.read(fill).await.unwrap().len(), 5_000);
    // Case: the first size since; every page may be one that was filled at the tail.
    world.stat("a.log").await.unwrap();
    let first = cache.take();
    assert!(first.len() >= 2 && first.iter().all(|(_, from)| *from == 0), "{first:?}");
    assert!(first.iter().any(|(node, _)| *node == passthrough));
    // Case: no growth, nothing to drop; growth, the old tail page of every node.
    world.stat("a.log").await.unwrap();
    assert_eq!(cache.take(), []);
    world.write(direct, 0, b"y", OFlags::RDWR | OFlags::APPEND).await.unwrap();
    let grown = cache.take();
    assert_eq!(grown.len(), first.len());
    assert!(grown.iter().all(|(_, from)| *from == 4_096), "{grown:?}");

    // The kernel's size follows, but for the node whose reads end with its file.
    let shown = std::mem::take(&mut *cache.shown.lock().unwrap());
    assert!(shown.contains(&(find_direct(&world).await, 4_999, b'x')), "{shown:?}");
    assert!(shown.contains(&(find_direct(&world).await, 5_000, b'y')), "{shown:?}");
    assert!(shown.iter().all(|(node, ..)| *node != passthrough), "{shown:?}");
}

/// The direct node of a.log: what a caller without a thread is always given.
async fn find_direct(world: &World) -> NodeId {
    world.find_as("a.log", Caller { thread: 0 }).await.unwrap().node
}

#[tokio::test]
async fn what_is_asked_back_is_another_generation_until_the_kernel_knows() {
    let (world, _directory) = lending();
    let name = journal("test/a.log");
    world.echo("a.log", b"one\n").await.unwrap();
    world.echo("b.log", b"two\n").await.unwrap();
    let before = world.find("a.log").await.unwrap();
    let reader = world.open("a.log", OFlags::RDONLY).await.unwrap();
    let other = world.open("b.log", OFlags::RDONLY).await.unwrap();
    let asked = world.fs.revocations();
    let take_back = || world.fs.take_back(&asked.borrow());
    assert!(take_back().is_empty());

    world.double.revoke(Some(&name));
    let taken = take_back();
    assert_eq!(taken.len(), 1);
    assert!(take_back().is_empty(), "once is enough");
    let place = world.fs.place_of_revoked(&taken[0]).await.unwrap();
    assert_eq!(place.as_deref(), Some(std::path::Path::new("a.log")));
    // Case: look-ups find the same node under another generation; opens find the direct one.
    let after = world.find("a.log").await.unwrap();
    assert_eq!((after.node, after.generation), (before.node, before.generation + 1));
    assert_eq!(way(&world, OFlags::RDONLY).await.0, None);
    assert_eq!(world.cat("a.log").await.unwrap(), b"one\n");
    assert_eq!(world.find("a.log").await.unwrap().node, before.node);
    assert_eq!(world.find("b.log").await.unwrap().generation, 0);
    // Case: the kernel knows, and the handle is still open.
    world.fs.has_taken_back(&taken[0]);
    assert_ne!(world.find("a.log").await.unwrap().node, before.node);
    assert_eq!(world.double.pins(), 2, "a loan ends with its handle");
    world.fs.release(reader);
    world.fs.release(other);
    assert_eq!(world.double.pins(), 0);
    // Case: it may be lent again, under the generation that the kernel knows.
    world.double.revoke(None);
    let again = world.find("a.log").await.unwrap();
    assert_eq!((again.node, again.generation), (after.node, after.generation));
    assert_eq!(way(&world, OFlags::RDONLY).await.0, Some(false));
}

#[tokio::test]
async fn what_is_asked_back_is_left_to_its_writers() {
    let (world, _directory) = lending();
    world.echo("a.log", b"one\n").await.unwrap();
    let before = world.find("a.log").await.unwrap();
    let reader = world.open("a.log", OFlags::RDONLY).await.unwrap();
    let writer = world.open("a.log", APPEND).await.unwrap();
    world.double.revoke(Some(&journal("test/a.log")));
    let asked = world.fs.revocations();
    let take_back = || world.fs.take_back(&asked.borrow()).len();
    assert_eq!(take_back(), 0);
    // Case: one that came after it was asked back writes through the direct node.
    let late = world.open("a.log", APPEND).await.unwrap();
    world.write(late, 0, b"two\n", APPEND).await.unwrap();
    world.write(writer, 0, b"three\n", APPEND).await.unwrap();
    world.fs.release(writer);
    assert_eq!(take_back(), 1);
    world.write(late, 0, b"four\n", APPEND).await.unwrap();
    // Case: nobody told the kernel, and the last handle of before is closed.
    assert_eq!(world.find("a.log").await.unwrap().node, before.node);
    world.fs.release(reader);
    assert_ne!(world.find("a.log").await.unwrap().node, before.node);
    assert_eq!(world.cat("a.log").await.unwrap(), b"one\ntwo\nthree\nfour\n");
}
