//! A sync that failed makes the next one lie: the page cache calls clean what it could not write.
//! However often syncs fail, what is told to be durable survives a power cut.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, ForgetfulDisk, Trouble};
use index::{Content, DataDir, Entry, Located, Options, Turn};
use protocol::{Journal, Life, Offset, Span};
use std::sync::Arc;

const LIFE: Life = Life::new(7);
const EIO: i32 = 5;

/// `inline_max` decides whether content lies in the log or in staging.
fn open(disk: &ForgetfulDisk, inline_max: u64) -> Arc<DataDir> {
    let options = Options { segment_len: Some(64 << 10), inline_max, ..Options::default() };
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    DataDir::open(Arc::new(disk.clone()), clock, options).expect("it opens").0
}

fn turn(data: &DataDir) -> Turn {
    let replica = data.replica(LIFE).expect("it exists");
    replica.turn().now_or_never().expect("nobody holds the turn")
}

fn begin(inline_max: u64) -> (ForgetfulDisk, Arc<DataDir>) {
    let disk = ForgetfulDisk::new();
    let data = open(&disk, inline_max);
    data.create(LIFE, &Journal::new("a/journal").expect("a valid name")).expect("there is room");
    data.sync_round().expect("a healthy disk");
    (disk, data)
}

/// The next so many syncs fail.
fn fail(disk: &ForgetfulDisk, syncs: u64) {
    let next = disk.operations_of("sync");
    for nth in next..next + syncs {
        disk.fail(Trouble { operation: Some("sync"), nth, errno: EIO });
    }
}

/// Whatever a power cut keeps of the rest, all of the journal is there.
fn check(disk: &ForgetfulDisk, inline_max: u64, expected: &[u8], why: &str) {
    for seed in 0..20 {
        let data = open(&disk.crash(Crash::Power(seed)), inline_max);
        let replica = data.replica(LIFE).expect("it exists");
        let located = replica.locate(Offset::ZERO);
        let whole = Span::at(Offset::ZERO, expected.len() as u64);
        assert_eq!(located, Located::Local(whole), "{why}, seed {seed}");
        let mut read = vec![0; expected.len()];
        replica.read(Offset::ZERO, &mut read).expect("it is local");
        assert_eq!(read, expected, "{why}, seed {seed}");
    }
}

#[test]
fn what_is_acknowledged_after_failed_syncs_is_durable() {
    let content: Vec<u8> = (0..3_000).map(|at| (at % 251) as u8).collect();
    // Case: in the log, and in staging; and how many syncs fail
    for (inline_max, failing) in [(64 << 10, 1), (64 << 10, 2), (64 << 10, 5), (100, 2), (100, 4)] {
        let (disk, data) = begin(inline_max);
        let entry = Entry {
            content: Content::Memory(content.clone().into()),
            registers: None,
            writer: None,
            is_disk: true,
        };
        let commit = turn(&data).record(entry).expect("there is room");
        fail(&disk, failing);
        while data.sync_round().is_err() {}
        commit.done().now_or_never().expect("it is synced").expect("it happened");
        check(&disk, inline_max, &content, &format!("{inline_max}, {failing} failed"));
    }
}

#[test]
fn a_checkpoint_after_failed_syncs_of_a_mirror_has_its_content() {
    for failing in [1, 2, 3] {
        let (disk, data) = begin(64 << 10);
        let content = Content::Memory(vec![b'x'; 2_000].into());
        let entry = Entry { content, registers: None, writer: None, is_disk: true };
        let commit = turn(&data).record(entry).expect("there is room");
        data.sync_round().expect("a healthy disk");
        commit.done().now_or_never().expect("it is synced").expect("it happened");
        fail(&disk, failing);
        while data.checkpoint().is_err() {}
        check(&disk, 64 << 10, &[b'x'; 2_000], &format!("{failing} failed"));
    }
}
