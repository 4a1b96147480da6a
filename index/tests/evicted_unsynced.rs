//! An eviction whose record no sync covers, found by a recovery that the power is cut in.

use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, ForgetfulDisk, Trouble};
use index::record::Persisted;
use index::{Content, DataDir, Entry, Error, Located, Options, Policy};
use protocol::{Codec, Journal, Life, Offset};
use std::sync::Arc;
use std::time::Duration;

const EIO: i32 = 5;
const LIFE: Life = Life::new(1);
const LEN: usize = 100_000;

fn open(disk: &ForgetfulDisk) -> Result<Arc<DataDir>, Error> {
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let options = Options { segment_len: Some(512 << 10), ..Options::default() };
    DataDir::open(Arc::new(disk.clone()), clock, options).map(|(data, _)| data)
}

/// A journal of one stored span that was given up a moment before the process died; the disk failed
/// the last syncs, so that the page cache calls clean what it could not write.
fn killed(failing: Option<u64>) -> ForgetfulDisk {
    let disk = ForgetfulDisk::new();
    let data = open(&disk).expect("a healthy disk");
    data.create(LIFE, &Journal::new("a/log").expect("valid")).expect("there is room");
    let replica = data.replica(LIFE).expect("it was created");
    let flush_interval = Duration::from_secs(60);
    replica.set_policy(Policy { fragment_len: 9_000, flush_interval, codec: Codec::None });
    for _ in 0..2 {
        let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
        let content = Content::Memory(vec![b'x'; LEN / 2].into());
        let entry = Entry { content, registers: None, writer: None, is_disk: true };
        let commit = turn.record(entry).expect("there is room");
        drop(turn);
        data.sync_round().expect("a healthy disk");
        commit.done().now_or_never().expect("synced is done").expect("nothing failed");
    }
    replica.roll().expect("a healthy disk");
    data.checkpoint().expect("a healthy disk");
    for closed in replica.to_persist() {
        let persisted = Persisted {
            life: LIFE.get(),
            begin: closed.span.begin().get(),
            end: closed.span.end().get(),
            codec: Codec::None.number(),
            ..Persisted::default()
        };
        replica.persisted_as(persisted).expect("a healthy disk");
    }
    data.sync_round().expect("a healthy disk");
    let evictable = replica.evictable();
    assert!(!evictable.is_empty());
    for span in evictable {
        replica.evict(span).expect("a healthy disk").expect("nobody has it open");
    }
    if let Some(failing) = failing {
        let next = disk.operations_of("sync");
        for nth in next..next + failing {
            disk.fail(Trouble { operation: Some("sync"), nth, errno: EIO });
        }
        data.sync_round().expect_err("the disk fails");
    }
    disk.crash(Crash::Kill)
}

#[test]
fn its_bytes_are_not_freed_before_its_record_is_durable() {
    // No sync came after the record, or one that failed, and was tried once more.
    [None, Some(2)].into_iter().for_each(check);
}

fn check(failing: Option<u64>) {
    let killed = killed(failing);
    let mut kept = 0;
    for at in 0.. {
        let mut is_over = false;
        for seed in 0..3 {
            let disk = killed.crash(Crash::Kill);
            disk.stop_at(at);
            drop(open(&disk));
            is_over = !disk.is_stopped();
            let why = format!("{failing:?}: the recovery is cut after operation {at}, seed {seed}");
            let data = open(&disk.crash(Crash::Power(seed)));
            let data = data.unwrap_or_else(|error| panic!("{why}: {error}"));
            let replica = data.replica(LIFE).unwrap_or_else(|| panic!("{why}: it is gone"));
            let mut offset = Offset::ZERO;
            while offset < replica.head() {
                offset = match replica.locate(offset) {
                    Located::Local(span) => {
                        kept += 1;
                        let mut bytes = vec![0; span.end().since(offset) as usize];
                        let n = replica.read(offset, &mut bytes).expect("it is local");
                        assert!(bytes[..n].iter().all(|byte| *byte == b'x'), "{why}: at {offset}");
                        offset.plus(n as u64)
                    }
                    Located::Remote(span) => span.end(),
                    other => panic!("{why}: {other:?} at {offset}"),
                };
            }
        }
        if is_over {
            break;
        }
    }
    assert!(kept > 0, "the record was always there");
}
