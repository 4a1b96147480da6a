//! Look-ups of one thread in the order of a listing, of journals that are far away: many are asked
//! for at once, and what is told is never behind what this mount knows.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use fs::double::Double;
use fs::limits::{FORESEEN_AGE, FORESEEN_AT_ONCE, RUN_MIN};
use fs::{Caller, Filesystem, NodeId};
use rustix::fs::OFlags;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::time::advance;
use world::{APPEND, SELF, World};

const COUNT: usize = 200;
/// Another thread.
const OTHER: Caller = Caller { thread: 8 };

/// A directory of journals that are far away, of one byte each, as it was just listed.
struct Walk {
    world: World,
    directory: NodeId,
}

impl Walk {
    async fn new() -> Self {
        let world = World::with(Double::far(), |_| {});
        (0..COUNT).for_each(|number| world.double.put(&format!("test/d/{}", name(number)), b"x"));
        let names = world.ls("d").await;
        assert_eq!(names, (0..COUNT).map(name).collect::<Vec<_>>());
        let directory = world.find("d").await.unwrap().node;
        Walk { world, directory }
    }

    /// A walk whose next names from `RUN_MIN` on were asked for.
    async fn on_a_run() -> Self {
        let walk = Self::new().await;
        for number in 0..=RUN_MIN {
            assert_eq!(walk.stat(number, SELF).await, 1);
        }
        walk
    }

    fn fs(&self) -> &Arc<Filesystem> {
        &self.world.fs
    }

    /// `stat(2)`: the size by the look-up, and by the attributes that the kernel asks for then.
    async fn stat(&self, number: usize, caller: Caller) -> u64 {
        let found = self.fs().lookup(self.directory, name(number).as_bytes(), caller).await;
        let entry = found.unwrap();
        let attr = self.fs().getattr(entry.node, caller).await.unwrap();
        assert!(attr.size >= entry.attr.size, "{number}: {attr:?} after {entry:?}");
        attr.size
    }

    async fn is_there(&self, number: usize) -> bool {
        self.fs().lookup(self.directory, name(number).as_bytes(), SELF).await.is_ok()
    }

    fn asked(&self) -> usize {
        self.world.double.asked().1
    }

    /// An append of a byte by nobody on this mount.
    async fn grow_elsewhere(&self, number: usize) {
        self.world.other().echo(&path(number), b"y").await.unwrap();
    }
}

fn name(number: usize) -> String {
    format!("{number:03}")
}

fn path(number: usize) -> String {
    format!("d/{}", name(number))
}

#[tokio::test(start_paused = true)]
async fn a_walk_of_far_journals_asks_for_many_at_once() {
    let walk = Walk::new().await;
    let before = walk.asked();
    for number in 0..COUNT {
        assert_eq!(walk.stat(number, SELF).await, 1);
        // As `ls -l` looks the name up again for each extended attribute.
        assert_eq!(walk.stat(number, SELF).await, 1);
    }
    // Before the run is one, each look-up and each GETATTR asks.
    let singly = 4 * (RUN_MIN - 1);
    let at_once = (COUNT - (RUN_MIN - 1)).div_ceil(FORESEEN_AT_ONCE);
    assert_eq!(walk.asked() - before, singly + at_once);
    // Case: two threads at once
    let before = walk.asked();
    for number in 0..COUNT {
        assert_eq!(walk.stat(number, SELF).await, 1);
        assert_eq!(walk.stat(number, OTHER).await, 1);
    }
    assert_eq!(walk.asked() - before, 2 * (2 * (RUN_MIN - 1) + at_once));
}

#[tokio::test(start_paused = true)]
async fn who_is_on_no_run_is_told_what_is() {
    let walk = Walk::on_a_run().await;
    let (next, later) = (RUN_MIN + 1, RUN_MIN + 5);
    walk.grow_elsewhere(later).await;
    assert_eq!(walk.stat(later, OTHER).await, 2, "another thread");
    assert_eq!(walk.stat(later, Caller::default()).await, 2, "nobody known");
    assert_eq!(walk.stat(next, SELF).await, 1);
    // Case: out of order
    assert_eq!(walk.stat(later, SELF).await, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_foreseen_is_told_for_moments_only() {
    let walk = Walk::on_a_run().await;
    let next = RUN_MIN + 1;
    walk.grow_elsewhere(next).await;
    walk.grow_elsewhere(next + 1).await;
    assert_eq!(walk.stat(next, SELF).await, 1, "foreseen");
    advance(FORESEEN_AGE * 2).await;
    assert_eq!(walk.stat(next, SELF).await, 2, "asked again by name");
    assert_eq!(walk.stat(next + 1, SELF).await, 2, "asked again with those after it");
}

#[tokio::test(start_paused = true)]
async fn what_this_mount_does_to_a_journal_shows_at_once() {
    let walk = Walk::on_a_run().await;
    let next = RUN_MIN + 1;
    let written = walk.world.open_as(&path(next), APPEND, OTHER).await.unwrap().handle;
    walk.world.write(written, 0, b"y", APPEND).await.unwrap();
    assert_eq!(walk.stat(next, SELF).await, 2, "written");
    walk.fs().release(written);
    // Case: what was read of is never shorter than that
    let read = walk.world.open_as(&path(next + 1), OFlags::RDONLY, OTHER).await.unwrap().handle;
    walk.grow_elsewhere(next + 1).await;
    assert_eq!(walk.world.read(read, 0, 10).await.unwrap(), b"xy");
    assert_eq!(walk.stat(next + 1, SELF).await, 2, "open");
    walk.fs().release(read);
    // Case: nor once it is closed
    let read = walk.world.open_as(&path(next + 2), OFlags::RDONLY, OTHER).await.unwrap().handle;
    walk.grow_elsewhere(next + 2).await;
    assert_eq!(walk.world.read(read, 0, 10).await.unwrap(), b"xy");
    walk.fs().release(read);
    assert_eq!(walk.stat(next + 2, SELF).await, 2, "closed");
    // Case: a size that was told to another thread
    walk.grow_elsewhere(next + 3).await;
    assert_eq!(walk.stat(next + 3, OTHER).await, 2);
    assert_eq!(walk.stat(next + 3, SELF).await, 2, "told");
    assert_eq!(walk.stat(next + 4, SELF).await, 1, "the run goes on");
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_many_are_asked_for_is_not_undone_by_the_answer() {
    let walk = Walk::new().await;
    for number in 0..RUN_MIN - 1 {
        walk.stat(number, SELF).await;
    }
    let at = RUN_MIN - 1;
    let mut asking = pin!(walk.fs().lookup(walk.directory, name(at).as_bytes(), SELF));
    let asks = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_pending())).await;
    assert!(asks);
    let written = walk.world.open_as(&path(at + 1), APPEND, OTHER).await.unwrap().handle;
    walk.world.write(written, 0, b"y", APPEND).await.unwrap();
    walk.fs().release(written);
    assert_eq!(asking.await.unwrap().attr.size, 1);
    assert_eq!(walk.stat(at + 1, SELF).await, 2);
    assert_eq!(walk.stat(at + 2, SELF).await, 1);
}

#[tokio::test(start_paused = true)]
async fn deleted_journals_are_gone_at_once_where_this_mount_deleted_them() {
    let mut walk = Walk::on_a_run().await;
    walk.world = walk.world.other_with(|options| options.allow_delete = true);
    walk.directory = walk.world.find("d").await.unwrap().node;
    walk.world.ls("d").await;
    for number in 0..=RUN_MIN {
        walk.stat(number, SELF).await;
    }
    let next = name(RUN_MIN + 1);
    walk.fs().unlink(walk.directory, next.as_bytes()).await.unwrap();
    assert!(!walk.is_there(RUN_MIN + 1).await);
    // Case: deleted elsewhere, before it was asked for with others
    walk.world.ls("d").await;
    let other = walk.world.other();
    let directory = other.find("d").await.unwrap().node;
    let gone = 100 + RUN_MIN;
    other.fs.unlink(directory, name(gone).as_bytes()).await.unwrap();
    for number in 100..gone {
        walk.stat(number, SELF).await;
    }
    assert!(!walk.is_there(gone).await);
}

#[tokio::test(start_paused = true)]
async fn a_failure_to_ask_for_many_asks_for_one() {
    let walk = Walk::new().await;
    for number in 0..RUN_MIN - 1 {
        walk.stat(number, SELF).await;
    }
    walk.world.double.fail_next(client::Error::Unsupported("no many".to_owned()));
    assert_eq!(walk.stat(RUN_MIN - 1, SELF).await, 1);
}

#[tokio::test(start_paused = true)]
async fn who_opens_what_it_looks_up_foresees_nothing() {
    let walk = Walk::new().await;
    let before = walk.asked();
    for number in 0..20 {
        let read = walk.world.open(&path(number), OFlags::RDONLY).await.unwrap();
        assert_eq!(walk.world.read(read, 0, 10).await.unwrap(), b"x");
        walk.fs().release(read);
    }
    // Two for each: the look-up and the open.
    assert_eq!(walk.asked() - before, 20 * 2);
}
