//! Waiting until bytes are durable: by the next sync that covers them, without a record of its own,
//! and without an append that waits for it.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{ForgetfulDisk, Trouble};
use index::{Content, DataDir, Entry, Error, Options, Replica};
use protocol::{Journal, Life};
use std::sync::Arc;

/// Input/output error (errno(3)).
const EIO: i32 = 5;

const LIFE: Life = Life::new(1);

fn open(disk: &ForgetfulDisk) -> (Arc<DataDir>, Arc<Replica>) {
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let opened = DataDir::open(Arc::new(disk.clone()), clock, Options::default());
    let data = opened.expect("it opens").0;
    data.create(LIFE, &Journal::new("a/log").expect("valid")).expect("there is room");
    let replica = data.replica(LIFE).expect("it was created");
    (data, replica)
}

/// Whether the append is published at once.
fn append(replica: &Arc<Replica>) -> bool {
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory("line\n".into());
    let entry = Entry { content, registers: None, writer: None, is_disk: false };
    turn.record(entry).expect("there is room").is_done()
}

#[test]
fn who_waits_for_a_sync_is_told_by_the_one_that_covers_it() {
    let (data, replica) = open(&ForgetfulDisk::new());
    // The first append waits for a ceiling.
    append(&replica);
    data.sync_round().expect("a healthy disk");
    // Case: all is durable.
    assert!(replica.durable(replica.head()).now_or_never().expect("no wait").is_ok());
    // Case: it is not, and no record is made for that, and no append waits for it.
    assert!(append(&replica));
    let before = data.log().position();
    let first = replica.head();
    let mut waits = Box::pin(replica.durable(first));
    assert!(waits.as_mut().now_or_never().is_none());
    assert_eq!(data.log().position(), before);
    assert!(append(&replica), "an append waited for a sync of others");
    data.sync_round().expect("a healthy disk");
    assert!(waits.now_or_never().expect("it is synced").is_ok());
    assert!(replica.synced() >= first);
    // Case: who gave up waiting keeps nobody else.
    append(&replica);
    drop(Box::pin(replica.durable(replica.head())).as_mut().now_or_never());
    let mut waits = Box::pin(replica.durable(replica.head()));
    assert!(waits.as_mut().now_or_never().is_none());
    data.sync_round().expect("a healthy disk");
    assert!(waits.now_or_never().expect("it is synced").is_ok());
}

#[test]
fn who_waits_for_a_sync_is_not_told_by_one_that_failed() {
    let disk = ForgetfulDisk::new();
    let (data, replica) = open(&disk);
    append(&replica);
    data.sync_round().expect("a healthy disk");
    append(&replica);
    let mut waits = Box::pin(replica.durable(replica.head()));
    // Case: the sync fails, and again after its frames were written again.
    let next = disk.operations_of("sync");
    for nth in next..next + 2 {
        disk.fail(Trouble { operation: Some("sync"), nth, errno: EIO });
    }
    assert!(waits.as_mut().now_or_never().is_none());
    data.sync_round().expect_err("the disk fails");
    assert!(waits.as_mut().now_or_never().is_none(), "told of a sync that failed");
    disk.forgive();
    data.sync_round().expect("a healthy disk again");
    assert!(waits.now_or_never().expect("it is synced").is_ok());
}

#[test]
fn who_waits_for_a_sync_of_a_journal_that_ends_hears_of_it() {
    let (data, replica) = open(&ForgetfulDisk::new());
    append(&replica);
    data.sync_round().expect("a healthy disk");
    append(&replica);
    let mut waits = Box::pin(replica.durable(replica.head()));
    assert!(waits.as_mut().now_or_never().is_none());
    data.delete(LIFE).expect("it exists");
    let told = waits.now_or_never().expect("it waits for nothing");
    assert!(matches!(told, Err(Error::Closing)), "{told:?}");
    // Case: it ended before.
    let told = replica.durable(replica.head()).now_or_never().expect("it waits for nothing");
    assert!(matches!(told, Err(Error::Deleted(LIFE))), "{told:?}");
}
