//! What is lent to the kernel, and when it is asked back.

mod world;

use broker::Served;
use bytes::Bytes;
use client::{Append, Journals};
use protocol::Offset;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use world::{World, journal, until};

const KIB: usize = 1 << 10;

async fn append(world: &World, name: &str, len: usize) {
    let append = Append::new(journal(name), Bytes::from(vec![b'x'; len]));
    Journals::append(&world.broker, append).await.expect("it is not refused");
}

/// Has a store take what there is of a journal.
async fn store(served: &Arc<Served>) {
    served.replica().roll().expect("the log takes it");
    let head = served.replica().head();
    until("it is stored", || async { served.replica().persisted() == head }).await;
}

/// Lets a few looks at the room go by.
async fn looks() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_lent_beyond_half_is_asked_back_when_room_is_needed() {
    let world = World::with(|config| config.space.local_budget = Some(1024 * KIB as u64)).await;
    let [large, small] = [world.create("a/large").await, world.create("a/small").await];
    let local = world.apply("a/local", |spec| spec.fragment.stores.clear()).await;
    let asked_back = Journals::revocations(&world.broker);
    let lives = || asked_back.borrow().clone();

    append(&world, "a/small", 10 * KIB).await;
    append(&world, "a/large", 400 * KIB).await;
    let lent = [&small, &large].map(|it| it.replica().lend().expect("healthy").expect("it fits"));
    let [_small_loan, large_loan] = lent;
    append(&world, "a/large", 300 * KIB).await;
    store(&small).await;
    store(&large).await;
    world.clock.advance(Duration::from_secs(60));
    looks().await;
    assert_eq!(lives(), BTreeSet::new(), "there is room for everything");
    assert!(local.replica().lend().expect("healthy").is_none(), "no other is lent");

    // Case: somebody appended a moment ago, so that there may be a writer.
    for served in [&large, &small] {
        append(&world, served.journal().as_str(), KIB).await;
        store(served).await;
    }
    append(&world, "a/local", 260 * KIB).await;
    looks().await;
    assert_eq!(lives(), BTreeSet::new());
    // Case: nobody has for a while. The largest comes first, and is enough.
    world.clock.advance(Duration::from_secs(6));
    looks().await;
    assert_eq!(lives(), BTreeSet::from([large.life()]));
    assert_eq!(world.broker.revoked(), 1);
    assert_eq!(large.replica().local_len(), 701 * KIB as u64, "nothing of it is freed before");

    drop(large_loan);
    append(&world, "a/local", 200 * KIB).await;
    until("it is evicted", || async { large.replica().local_len() <= KIB as u64 }).await;
    looks().await;
    assert_eq!(lives(), BTreeSet::new(), "what is back is not asked for any more");
    assert!(small.replica().is_pinned(), "it is within its half");
    assert_eq!(world.read("a/large", 0).await.expect("it is stored").len(), 701 * KIB);
    assert_eq!(local.replica().head(), Offset::ZERO.plus(460 * KIB as u64));
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other_is_asked_back() {
    let world = World::with(|config| config.space.local_budget = Some(1024 * KIB as u64)).await;
    let mut loans = Vec::new();
    let journals = [("a/one", 150), ("a/two", 160), ("a/never", 170)];
    for (name, len) in journals {
        let served = world.create(name).await;
        append(&world, name, len * KIB).await;
        loans.push(served.replica().lend().expect("healthy").expect("it fits"));
    }
    for (name, _) in journals {
        let served = world.broker.served(&journal(name)).expect("it exists");
        append(&world, name, 150 * KIB).await;
        // Case: what no store has can't be freed, whoever gives it back.
        if name != "a/never" {
            store(&served).await;
        }
    }
    world.clock.advance(Duration::from_secs(60));
    let asked_back = Journals::revocations(&world.broker);
    let lives = || asked_back.borrow().clone();
    let life = |name: &str| world.broker.served(&journal(name)).expect("it exists").life();
    looks().await;
    assert_eq!(lives(), BTreeSet::from([life("a/two")]));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(lives(), BTreeSet::from([life("a/one"), life("a/two")]));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(lives(), BTreeSet::from([life("a/one"), life("a/two")]));
    drop(loans);
}
