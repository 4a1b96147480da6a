//! The disk fails a sync, the process ends, and later the power: what the page cache held in
//! between is not what the disk has, and the next start knows that.

mod world;

use client::Journals;
use index::disk::{Crash, Disk, Trouble};
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;
use world::{World, journal, until};

const EIO: i32 = 5;

#[tokio::test(start_paused = true)]
async fn a_key_space_whose_sync_failed_opens_after_a_kill_and_a_power_cut() {
    for failing in 0..4 {
        for seed in 0..8 {
            let world = World::new().await;
            world.create("a/first").await;
            let nth = world.disk.operations_of("sync") + failing;
            world.disk.fail(Trouble { operation: Some("sync"), nth, errno: EIO });
            let created = Journals::create(&world.broker, &journal("a/second")).await;
            // The process starts anew, on the page cache that the failed sync left.
            let killed = world.crashed(Crash::Kill).await;
            let cut = killed.crashed(Crash::Power(seed)).await;
            assert!(cut.broker.served(&journal("a/first")).is_some(), "{failing}, seed {seed}");
            let second = cut.broker.served(&journal("a/second"));
            assert!(created.is_err() || second.is_some(), "{failing}, seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_after_a_purge_that_failed_stays_there() {
    let world = World::new().await;
    let name = journal("a/journal");
    let served = world.create("a/journal").await;
    world.append("a/journal", "kept").await;
    let nth = world.disk.operations_of("sync");
    world.disk.fail(Trouble { operation: Some("sync"), nth, errno: EIO });
    let purged = Journals::purge(&world.broker, &name).await;
    assert!(purged.is_err(), "the key space can't be synced");
    served.replica().roll().expect("the log takes it");
    until("it is stored", || async { served.replica().persisted() == 4.into() }).await;
    // Objects are deleted after the record of the put, so give that its time.
    sleep(Duration::from_secs(1)).await;
    // The next process may find the journal, which then has its bytes nowhere else.
    let objects = world.files.list(Path::new("a/journal")).expect("memory");
    assert_eq!(objects.len(), 1, "{objects:?}");
}
