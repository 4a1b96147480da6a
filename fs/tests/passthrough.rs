//! The two nodes of a journal, the hand-over between them, and the kernel's page cache.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::double::Double;
use fs::{Caller, Kernel, NodeId, ReadAt, Way};
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

    let attrs = (world.fs.getattr(passthrough.node).await, world.fs.getattr(direct.node).await);
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
}

impl Kernel for Cache {
    fn drop_pages(&self, node: NodeId, from: Offset) -> BoxFuture<'static, ()> {
        self.dropped.lock().unwrap().push((node, from));
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
}
