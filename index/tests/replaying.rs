//! A power cut under many appends of many journals: all of their content is moved again, in
//! whatever pieces recovery writes it.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, ForgetfulDisk};
use index::{Content, DataDir, Entry, Options};
use protocol::{Journal, Life, Offset};
use std::collections::BTreeMap;
use std::sync::Arc;

/// More than recovery holds of one journal, and of all together.
const JOURNALS: u64 = 12;
const ROUNDS: usize = 160;
const PIECE: usize = 12 << 10;

fn open(disk: &ForgetfulDisk) -> Arc<DataDir> {
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let (data, recovered) =
        DataDir::open(Arc::new(disk.clone()), clock, Options::default()).expect("it opens");
    assert!(recovered.damaged.is_empty() && recovered.lost.is_empty(), "{recovered:?}");
    data
}

fn create(data: &DataDir, life: u64) {
    let name = Journal::new(&format!("replayed/{life}")).expect("a valid name");
    data.create(Life::new(life), &name).expect("there is room");
}

fn append(data: &DataDir, life: u64, content: Vec<u8>) {
    let replica = data.replica(Life::new(life)).expect("it exists");
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory(content.into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    turn.record(entry).expect("there is room");
}

#[test]
fn what_many_journals_were_given_is_there_after_a_power_cut() {
    let disk = ForgetfulDisk::new();
    let data = open(&disk);
    (1..=JOURNALS).for_each(|life| create(&data, life));
    let mut wanted: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for round in 0..ROUNDS {
        for life in 1..=JOURNALS {
            // Some come twice in a row, some have nothing, none is as long as another.
            let times = [1, 2, 0][(round + life as usize) % 3];
            for time in 0..times {
                let len = PIECE + 100 * life as usize + round + time;
                let content = vec![(round as u8) ^ (life as u8) ^ (time as u8); len];
                wanted.entry(life).or_default().extend(&content);
                append(&data, life, content);
            }
        }
        // The log alone: mirrors have nothing yet.
        data.log().sync(data.log().position()).expect("a healthy disk");
    }
    // Case: one that ended has nothing to be moved, and its next life begins anew.
    data.delete(Life::new(1)).expect("it exists");
    wanted.remove(&1);
    create(&data, 100);
    append(&data, 100, b"anew".to_vec());
    wanted.insert(100, b"anew".to_vec());
    data.log().sync(data.log().position()).expect("a healthy disk");
    drop(data);

    let data = open(&disk.crash(Crash::Power(7)));
    assert!(data.replica(Life::new(1)).is_none());
    for (life, wanted) in wanted {
        let replica = data.replica(Life::new(life)).expect("it was created");
        let mut found = Vec::new();
        let mut buf = vec![0; 1 << 20];
        while found.len() < wanted.len() {
            let at = Offset::try_from(found.len() as u64).expect("short");
            let n = replica.read(at, &mut buf).expect("it is local");
            assert!(n > 0, "journal {life} ends at {}", found.len());
            found.extend_from_slice(&buf[..n]);
        }
        assert!(found == wanted, "journal {life}");
    }
}
