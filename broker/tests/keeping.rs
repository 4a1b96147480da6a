//! What is kept: for ever without a retention, and within the local budget without a store.

mod world;

use broker::Terms;
use bytes::Bytes;
use client::{Append, Error, Journals};
use cluster::{Change, Expect, Outcome};
use index::disk::{Crash, ForgetfulDisk};
use protocol::Offset;
use std::time::Duration;
use world::{World, journal, until};

#[tokio::test(start_paused = true)]
async fn a_retention_of_zero_keeps_for_ever() {
    let world = World::new().await;
    let served = world.apply("a/journal", |spec| spec.fragment.retention = Duration::ZERO).await;
    for content in ["0123456789", "abcdefghij", "last"] {
        world.append("a/journal", content).await;
        served.replica().roll().expect("the log takes it");
    }
    // Objects of the disk in memory are of 1970, so any retention would find them old.
    until("everything is stored", || async { served.stat().fragments == 3 }).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    for is_dry in [true, false] {
        let pruned = world.broker.prune(&journal("a/journal"), is_dry).await.expect("it is listed");
        assert!(pruned.fragments.is_empty(), "{pruned:?}");
    }
    assert_eq!(served.stat().first, Offset::ZERO);
    assert_eq!(world.read("a/journal", 0).await.expect("kept"), "0123456789abcdefghijlast");
}

#[tokio::test(start_paused = true)]
async fn a_journal_without_stores_is_bounded_by_the_local_budget() {
    let world = World::with(|config| config.space.local_budget = Some(1 << 20)).await;
    world.apply("a/journal", |spec| spec.fragment.stores.clear()).await;
    let piece = || Bytes::from(vec![b'x'; 256 << 10]);
    let append = || Journals::append(&world.broker, Append::new(journal("a/journal"), piece()));
    let mut taken = 0;
    let refused = loop {
        match append().await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 16, "the budget bounds nothing");
        // The budget is looked at each second.
        tokio::time::sleep(Duration::from_secs(2)).await;
    };
    assert!(matches!(refused, Error::NoSpace(..)), "{refused}");
    assert!(taken >= 4, "a budget of 1 MiB takes four times 256 KiB, and took {taken}");
    assert!(world.broker.is_over_budget(), "the status tells why");
    // What is there stays, whole.
    let content = world.read("a/journal", 0).await.expect("it is local");
    assert_eq!(content.len(), taken * (256 << 10));
}

#[tokio::test(start_paused = true)]
async fn a_stale_deletion_is_a_conflict_and_stores_nothing() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    world.commit("a/journal", Terms::default(), "local").await.expect("it happens");
    let expect = Expect::At(served.entry().mod_revision + 7);
    let delete = Change::Delete { journal: journal("a/journal"), expect };
    let outcome = world.broker.apply(vec![delete]).await.expect("it is decided");
    assert!(matches!(outcome, Outcome::Conflict { .. }), "{outcome:?}");
    assert_eq!((served.stat().fragments, served.replica().persisted()), (0, Offset::ZERO));
}

#[tokio::test(start_paused = true)]
async fn local_bytes_that_a_store_no_longer_has_are_not_freed() {
    let world = World::new().await;
    let served = world.create("a/journal").await;
    world.append("a/journal", "was stored once").await;
    served.replica().roll().expect("there is room");
    until("it is stored", || async { served.replica().persisted() == Offset::from(15) }).await;
    world.broker.close().await.expect("it closes");

    let emptied = ForgetfulDisk::new();
    let begin = |files| {
        World::on(world.disk.crash(Crash::Kill), files, |config| {
            config.space.local_budget = Some(0);
        })
    };
    let without = begin(emptied).await;
    // The budget is looked at each second.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let read = without.read("a/journal", 0).await.expect("it is local");
    assert_eq!(read, "was stored once");
    without.broker.close().await.expect("it closes");

    // Case: with the store as it was, the same bytes are freed.
    let with = begin(world.files.crash(Crash::Kill)).await;
    let served = with.broker.served(&journal("a/journal")).expect("it is served");
    until("it is evicted", || async { served.replica().local_len() == 0 }).await;
    assert_eq!(with.read("a/journal", 0).await.expect("it is stored"), "was stored once");
}
