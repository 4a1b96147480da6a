//! The segments of the log that a start has read become those of the next log: their room is not
//! freed and written anew, and what they held before counts no more.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk};
use index::{Content, DataDir, Entry, Options, log};
use protocol::{Journal, Life, Offset};
use std::path::Path;
use std::sync::Arc;

const LIFE: Life = Life::new(1);
const SEGMENT_LEN: u64 = 64 << 10;

fn open(disk: &ForgetfulDisk) -> Arc<DataDir> {
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let options = Options { segment_len: Some(SEGMENT_LEN), ..Options::default() };
    DataDir::open(Arc::new(disk.clone()), clock, options).expect("it opens").0
}

/// Appends and makes durable so many pieces.
fn append(data: &DataDir, pieces: usize, wanted: &mut Vec<u8>) {
    let replica = data.replica(LIFE).expect("it exists");
    for _ in 0..pieces {
        let content = format!("{:>999}\n", wanted.len()).into_bytes();
        wanted.extend_from_slice(&content);
        let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
        let content = Content::Memory(content.into());
        let entry = Entry { content, registers: None, writer: None, is_disk: true };
        turn.record(entry).expect("there is room");
    }
    data.log().sync(data.log().position()).expect("a healthy disk");
}

fn found(data: &DataDir) -> Vec<u8> {
    let replica = data.replica(LIFE).expect("it exists");
    let mut found = Vec::new();
    let mut buf = vec![0; 1 << 20];
    loop {
        let at = Offset::try_from(found.len() as u64).expect("short");
        match replica.read(at, &mut buf) {
            Ok(n) if n > 0 => found.extend_from_slice(&buf[..n]),
            _ => return found,
        }
    }
}

/// Number and length of each segment.
fn segments(disk: &ForgetfulDisk) -> Vec<(u32, u64)> {
    let entries = disk.list(Path::new(log::DIR)).expect("it is there");
    let segment = |entry: &index::disk::Entry| Some((log::number_of(&entry.name)?, entry.len));
    entries.iter().filter_map(segment).collect()
}

#[test]
fn a_start_goes_on_in_the_segments_of_the_log_that_it_read() {
    let mut disk = ForgetfulDisk::new();
    let mut wanted = Vec::new();
    let data = open(&disk);
    data.create(LIFE, &Journal::new("again").expect("a valid name")).expect("there is room");
    append(&data, 100, &mut wanted);
    drop(data);
    for round in 0..12 {
        let before = segments(&disk);
        assert!(before.len() >= 2, "{before:?}");
        let how = if round % 2 == 0 { Crash::Power(round) } else { Crash::Kill };
        disk = disk.crash(how);
        let data = open(&disk);
        let (last, _) = before[before.len() - 1];
        let full = [last + 1, last + 2].map(|number| (number, SEGMENT_LEN));
        assert_eq!(segments(&disk), full, "round {round}");
        assert!(found(&data) == wanted, "round {round}");
        // Case: few, so that what the segments held before lies behind the end of the log; more
        // than one segment takes.
        append(&data, [1, 3, 100][round as usize % 3], &mut wanted);
    }
}
