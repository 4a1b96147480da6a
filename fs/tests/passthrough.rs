//! The two nodes of a journal, the hand-over between them, and the kernel's page cache.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::double::Double;
use fs::{Caller, Kernel, NodeId, ReadAt, Renewal, Way};
use futures::future::BoxFuture;
use protocol::Offset;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
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

/// A kernel that notes how its pages are renewed.
#[derive(Default)]
struct Cache(Mutex<Vec<(NodeId, Renewal)>>);

impl Kernel for Cache {
    fn renew(&self, node: NodeId, renewal: Renewal) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push((node, renewal));
        Box::pin(async {})
    }
}

impl Cache {
    fn take(&self) -> BTreeMap<NodeId, Renewal> {
        std::mem::take(&mut *self.0.lock().unwrap()).into_iter().collect()
    }
}

fn renewal(drop_from: i64, puts: &[(i64, &[u8])]) -> Renewal {
    let put = |(at, bytes): &(i64, &[u8])| (Offset::new(*at).unwrap(), bytes.to_vec().into());
    let drop_from = Offset::new(drop_from).unwrap();
    Renewal { drop_from, puts: puts.iter().map(put).collect() }
}

#[tokio::test]
async fn pages_are_made_right_before_a_new_size_is_told_once_the_cache_is_used() {
    let (world, _directory) = lending();
    let cache = Arc::new(Cache::default());
    world.fs.attach(cache.clone());
    world.echo("a.log", &[b'x'; 5_000]).await.unwrap();
    let passthrough = world.find("a.log").await.unwrap().node;
    let (_, handle) = way(&world, OFlags::RDWR).await;
    let direct = find_direct(&world).await;
    world.stat("a.log").await.unwrap();
    assert!(cache.take().is_empty(), "nothing was cached");

    let fill = ReadAt { handle, offset: 0, size: 8_192, nonblocking: false, fills: true };
    assert_eq!(world.fs.read(fill).await.unwrap().len(), 5_000);
    // Case: no growth since.
    world.stat("a.log").await.unwrap();
    assert!(cache.take().is_empty());
    // Case: the page of the old tail gets its bytes where it lies, for which a fill has to be over
    // that is under way; pages behind it are of bytes that waited. Where the kernel reads a file,
    // pages are dropped.
    world.write(handle, 0, b"y", OFlags::RDWR | OFlags::APPEND).await.unwrap();
    let grown = cache.take();
    assert_eq!(grown[&direct], renewal(8_192, &[(4_999, b"x"), (5_000, b"y")]));
    assert_eq!(grown[&passthrough], renewal(4_096, &[]));
    // Case: much growth: the rest of that page, and the byte by which the kernel knows the size.
    world.echo("a.log", &[b'z'; 40_000]).await.unwrap();
    let rest = [b'z'; 8_192 - 5_001];
    let expected = renewal(8_192, &[(5_000, b"y"), (5_001, &rest), (45_000, b"z")]);
    assert_eq!(cache.take()[&direct], expected);
    // Case: no page lies across the old end.
    world.echo("a.log", &[b'z'; 55]).await.unwrap();
    cache.take();
    world.echo("a.log", b"0123").await.unwrap();
    assert_eq!(cache.take()[&direct], renewal(45_056, &[(45_059, b"3")]));
}

#[tokio::test]
async fn a_page_that_can_not_be_made_right_is_dropped() {
    let (world, _directory) = lending();
    let cache = Arc::new(Cache::default());
    world.fs.attach(cache.clone());
    world.echo("a.log", b"0123").await.unwrap();
    let (_, handle) = way(&world, OFlags::RDWR).await;
    let direct = find_direct(&world).await;
    let fill = ReadAt { handle, offset: 0, size: 4_096, nonblocking: false, fills: true };
    assert_eq!(world.fs.read(fill).await.unwrap().len(), 4);
    world.double.trim(&journal("test/a.log"), 4);
    world.echo("a.log", b"4").await.unwrap();
    assert_eq!(cache.take()[&direct], renewal(0, &[(4, b"4")]));
    // Case: the next time the byte before the old end is known.
    world.double.trim(&journal("test/a.log"), 5);
    world.echo("a.log", b"5").await.unwrap();
    assert_eq!(cache.take()[&direct], renewal(4_096, &[(4, b"4"), (5, b"5")]));
}

#[tokio::test]
async fn pages_of_a_file_that_had_no_byte_are_dropped_when_it_has_some() {
    let (world, _directory) = lending();
    let cache = Arc::new(Cache::default());
    world.fs.attach(cache.clone());
    let made = world.open("a.log", OFlags::RDWR | OFlags::CREATE).await.unwrap();
    let node = world.find("a.log").await.unwrap().node;
    // The kernel believes in bytes that wait.
    let fill = ReadAt { handle: made, offset: 0, size: 4_096, nonblocking: false, fills: true };
    assert_eq!(world.fs.read(fill).await.unwrap(), "");
    world.echo("a.log", b"01").await.unwrap();
    world.fs.getattr(node, Caller::default()).await.unwrap();
    assert_eq!(cache.take()[&node], renewal(0, &[(1, b"1")]));
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
