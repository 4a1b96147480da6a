//! Journals at rest hold no descriptor: a process has fewer of them than a disk has files.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::RealDisk;
use index::{Content, DataDir, Entry, Options, limits};
use protocol::{Journal, Life, Offset};
use std::path::Path;
use std::sync::Arc;

const JOURNALS: u64 = limits::RESTING_MAX + 20;

fn open(dir: &Path) -> Arc<DataDir> {
    let disk = Arc::new(RealDisk::new(dir).expect("a directory"));
    let options = Options { segment_len: Some(1 << 20), ..Options::default() };
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    DataDir::open(disk, clock, options).expect("it opens").0
}

fn append(data: &DataDir, life: Life, content: &'static str) {
    let replica = data.replica(life).expect("it exists");
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory(content.into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    turn.record(entry).expect("there is room");
}

fn read(data: &DataDir, life: Life) -> String {
    let mut buf = [0; 100];
    let read = data.replica(life).expect("it exists").read(Offset::ZERO, &mut buf);
    String::from_utf8(buf[..read.expect("it is local")].to_vec()).expect("tests write text")
}

/// Files of mirrors that this process has open.
fn descriptors(dir: &Path) -> usize {
    let mirrors = dir.join("mirror");
    let open = std::fs::read_dir("/proc/self/fd").expect("Linux");
    let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    open.filter(|path| path.starts_with(&mirrors)).count()
}

#[test]
fn journals_at_rest_hold_no_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = open(dir.path());
    for life in (1..=JOURNALS).map(Life::new) {
        let name = Journal::new(&format!("at/rest/{life}")).expect("a valid name");
        data.create(life, &name).expect("there is room");
        append(&data, life, "one ");
    }
    data.sync_round().expect("a healthy disk");
    assert_eq!(descriptors(dir.path()) as u64, JOURNALS);
    assert!(!data.needs_checkpoint(), "they were just used");
    // Case: they rest, but for one.
    let busy = Life::new(7);
    for _ in 0..=limits::RESTED_TICKS {
        append(&data, busy, "more ");
        data.sync_round().expect("a healthy disk");
        data.tick().expect("a healthy disk");
    }
    assert!(data.needs_checkpoint());
    data.checkpoint().expect("a healthy disk");
    assert_eq!(descriptors(dir.path()), 1);
    append(&data, Life::new(9), "two");
    data.close().expect("a healthy disk");
    assert_eq!(read(&data, Life::new(9)), "one two");
    drop(data);
    // Case: after a start nobody has used any.
    let data = open(dir.path());
    assert_eq!(descriptors(dir.path()), 0);
    assert_eq!(read(&data, Life::new(9)), "one two");
    append(&data, Life::new(9), " three");
    data.close().expect("a healthy disk");
    assert_eq!(read(&data, Life::new(9)), "one two three");
}
