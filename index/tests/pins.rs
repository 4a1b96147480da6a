//! What is lent to the kernel: half of the local room at most, and nothing of it is freed.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::ForgetfulDisk;
use index::{Content, DataDir, Entry, Options, Pin};
use protocol::{Journal, Life};
use std::sync::Arc;

/// A directory with a budget of 1,000 bytes, and journals of these lives and lengths.
fn begin(journals: &[(u64, usize)]) -> Arc<DataDir> {
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let options =
        Options { segment_len: Some(1 << 20), local_budget: Some(1000), ..Options::default() };
    let disk = Arc::new(ForgetfulDisk::new());
    let data = DataDir::open(disk, clock, options).expect("it opens").0;
    for (life, len) in journals {
        let name = Journal::new(&format!("a/journal-{life}")).expect("a valid name");
        data.create(Life::new(*life), &name).expect("there is room");
        append(&data, *life, *len);
    }
    data
}

fn append(data: &DataDir, life: u64, len: usize) {
    let replica = data.replica(Life::new(life)).expect("it exists");
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory(vec![b'x'; len].into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    turn.record(entry).expect("there is room");
    drop(turn);
    data.sync_round().expect("a healthy disk");
}

fn lend(data: &DataDir, life: u64) -> Option<Pin> {
    data.replica(Life::new(life)).expect("it exists").lend().expect("a healthy disk")
}

#[test]
fn half_of_the_budget_is_lent_at_most() {
    let data = begin(&[(1, 300), (2, 201), (3, 200), (4, 501)]);
    let first = lend(&data, 1).expect("it fits");
    // Case: a second loan of a mirror costs nothing.
    let again = lend(&data, 1).expect("it is lent already");
    assert!(lend(&data, 2).is_none(), "501 bytes are more than half");
    let third = lend(&data, 3).expect("it fits");
    assert!(lend(&data, 4).is_none());
    // Case: it is given back with the last loan of it.
    drop(first);
    assert!(lend(&data, 2).is_none());
    drop(again);
    assert!(lend(&data, 2).is_some());
    drop(third);
    assert!(lend(&data, 4).is_none(), "it is more than half by itself");
}

#[test]
fn what_is_lent_goes_on_growing_and_counts_as_it_is() {
    let data = begin(&[(1, 300), (2, 150)]);
    let first = lend(&data, 1).expect("it fits");
    append(&data, 1, 200);
    assert!(lend(&data, 2).is_some(), "its growth is counted each second");
    data.tick().expect("a healthy disk");
    assert!(lend(&data, 2).is_none());
    assert_eq!(data.over_lent(), 0);
    append(&data, 1, 7);
    data.tick().expect("a healthy disk");
    assert_eq!(data.over_lent(), 7);
    // Case: one that is lent already is lent again, however large.
    let again = lend(&data, 1).expect("it is lent already");
    drop((first, again));
    assert_eq!(data.over_lent(), 0);
    assert!(lend(&data, 2).is_some());
}

#[test]
fn there_may_be_less_room_than_the_budget() {
    let data = begin(&[(1, 300)]);
    for (room, is_lent) in [(1000, true), (599, false), (600, true), (0, false)] {
        data.set_room(room);
        assert_eq!(lend(&data, 1).is_some(), is_lent, "{room}");
    }
}
