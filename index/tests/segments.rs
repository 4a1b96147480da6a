//! The log's next segment is made by whoever needs it first, while others append, sync and free:
//! no frame that was appended is ever written over, renamed over or removed.

use bytes::Bytes;
use index::disk::{Disk, ForgetfulDisk};
use index::log::{self, Log, Purpose};
use index::record::{Append, Body, Position, Record};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SEGMENT_LEN: u64 = 16 << 10;
const WRITERS: u64 = 3;
const APPENDS: u64 = 6_000;

fn record(life: u64, number: u64) -> Record {
    let content = Bytes::from(vec![b'x'; 200 + (number % 700) as usize]);
    let len = content.len() as u64;
    let append = Append { life, begin: number as i64, len, content, ..Append::default() };
    Record { body: Some(Body::Append(append)) }
}

/// Ends the threads that go on for ever, when the test fails as well.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Appends until the log has taken all, whatever it refuses meanwhile, or until the test is over.
fn append(log: &Log, life: u64, is_over: &AtomicBool) -> Vec<(u64, u64)> {
    let mut taken = Vec::new();
    for number in 0..APPENDS {
        while log.append(&record(life, number), Purpose::Append).is_err() {
            if is_over.load(Ordering::Relaxed) {
                return taken;
            }
            thread::yield_now();
        }
        taken.push((life, number));
    }
    taken
}

#[test]
fn segments_are_made_by_many_and_no_frame_is_lost() {
    let disk: Arc<dyn Disk> = Arc::new(ForgetfulDisk::new());
    disk.create_dir(Path::new(log::DIR)).expect("memory");
    let begun = Log::begin(disk.clone(), 1, Position::default(), 0, SEGMENT_LEN);
    let log = begun.expect("a healthy disk");
    let is_over = AtomicBool::new(false);
    // What lies below was scanned, and may be freed.
    let mut found = BTreeSet::new();
    let mut from = Position::new(1, 0);
    let mut scan_from = |log: &Log, from: Position| {
        let position = log.position();
        log.sync(position).expect("a healthy disk syncs");
        let scan = log::scan(&*disk, from, |frame| {
            if let Body::Append(append) = &frame.body {
                found.insert((append.life, append.begin as u64));
            }
            Ok(())
        });
        let scan = scan.expect("a healthy disk is read");
        assert!(scan.end >= position, "it ends at {}, and was at {position}", scan.end);
        assert!(scan.damaged.is_empty(), "{:?}", scan.damaged);
        let keep = Position::new(position.segment(), 0);
        log.free_below(keep).expect("a healthy disk frees");
        keep.max(from)
    };
    let taken = thread::scope(|scope| {
        let (log, is_over) = (&log, &is_over);
        let over = Over(is_over);
        let writers = (0..WRITERS).map(|life| scope.spawn(move || append(log, life, is_over)));
        let writers: Vec<_> = writers.collect();
        for _ in 0..2 {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    log.prepare_spare().expect("a healthy disk has room");
                    thread::yield_now();
                }
            });
        }
        while writers.iter().any(|writer| !writer.is_finished()) {
            from = scan_from(log, from);
        }
        drop(over);
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    scan_from(&log, from);
    let taken: BTreeSet<(u64, u64)> = taken;
    let lost: Vec<_> = taken.difference(&found).take(5).collect();
    assert!(lost.is_empty(), "frames are gone: {lost:?}");
}

#[test]
fn a_segment_for_which_there_is_no_room_is_not_begun() {
    let forgetful = ForgetfulDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(forgetful.clone());
    disk.create_dir(Path::new(log::DIR)).expect("memory");
    let log = Log::begin(disk, 1, Position::default(), 0, SEGMENT_LEN).expect("a healthy disk");
    // The first one is there; of the next one all but a block has room.
    forgetful.set_capacity(Some(2 * SEGMENT_LEN - 4096));
    let before = forgetful.operations_of("write");
    let error = log.prepare_spare().expect_err("it is full");
    assert!(error.is_full(), "{error}");
    assert_eq!(forgetful.operations_of("write"), before, "the disk was filled to find out");
    forgetful.set_capacity(None);
    log.prepare_spare().expect("there is room");
}
