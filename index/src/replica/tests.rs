//! Ceilings, at moments that no caller from outside can choose.

use crate::clock::ManualClock;
use crate::disk::ForgetfulDisk;
use crate::{Commit, Content, DataDir, Entry, Options, Replica};
use futures::FutureExt;
use protocol::{Journal, Life};
use std::sync::Arc;

const NOW_US: u64 = 1_700_000_000_000_000;

fn append(replica: &Arc<Replica>, content: &'static str) -> Commit {
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory(content.into());
    let entry = Entry { content, registers: None, writer: None, is_disk: false };
    turn.record(entry).expect("there is room")
}

#[test]
fn a_ceiling_that_is_lowered_and_raised_during_a_sync_is_not_taken_for_durable() {
    let clock = Arc::new(ManualClock::at_us(NOW_US));
    let disk = Arc::new(ForgetfulDisk::new());
    let (data, _) = DataDir::open(disk, clock, Options::default()).expect("a new disk");
    let life = Life::new(1);
    data.create(life, &Journal::new("a/log").expect("valid")).expect("there is room");
    let replica = data.replica(life).expect("it was created");
    drop(append(&replica, "first"));
    data.sync_round().expect("a healthy disk");
    assert_eq!(replica.head(), 5.into());

    let snapshot = replica.snapshot();
    data.log().sync(data.log().position()).expect("a healthy disk");
    // While that sync is under way the journal is found idle, and then it is not.
    replica.tick(NOW_US + 10_000_000).expect("there is room");
    drop(append(&replica, "second"));
    replica.on_synced(snapshot).expect("a healthy disk");
    // A power cut may keep the record that lowered the ceiling, and neither of those behind it.
    assert_eq!(replica.head(), 5.into(), "it is shown");
    data.sync_round().expect("a healthy disk");
    assert_eq!(replica.head(), 11.into());
}
