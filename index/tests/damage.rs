//! Bit rot in a data directory (case T15): one bit is flipped in a log segment, a mirror or the
//! checkpoint, after a mixed load and a clean stop or a kill. What is read then is right, or an
//! error that names it; a head never goes back, nothing is deleted, and the rest goes on.

#[allow(dead_code, reason = "the trial takes the rest")]
#[path = "trial/load.rs"]
mod load;
#[allow(dead_code, reason = "the trial takes the rest")]
#[path = "trial/model.rs"]
mod model;

use futures::FutureExt;
use index::checkpoint::Checkpoint;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk, Open, read_exact_at};
use index::{Content, DataDir, Entry, Error, Located, Recovered, Replica, inspect, log};
use load::{Load, options};
use model::{JournalModel, Model, Promise};
use protocol::{Journal, Life, Offset, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SEEDS: std::ops::Range<u64> = 1..4;
const STEPS: usize = 420;
/// Places of each kind of file that are tried, for each seed and each way to stop.
const PLACES: u64 = 60;

/// What a load left.
struct Left {
    disk: ForgetfulDisk,
    model: Model,
    why: String,
}

fn lefts() -> impl Iterator<Item = Left> {
    let ways = SEEDS.flat_map(|seed| [(seed, true), (seed, false)]);
    ways.map(|(seed, is_clean)| {
        let disk = ForgetfulDisk::new();
        let mut load = Load::begin(disk.clone(), Model::default(), seed).expect("it opens");
        load.run(STEPS);
        if is_clean {
            load.close();
        }
        let why = format!("seed {seed}, {}", if is_clean { "a clean stop" } else { "a kill" });
        Left { disk: disk.crash(Crash::Kill), model: load.model.clone(), why }
    })
}

fn open(disk: &ForgetfulDisk) -> Result<(Arc<DataDir>, Recovered), Error> {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    DataDir::open(Arc::new(disk.clone()), clock, options())
}

/// What `inspect` says, which changes nothing.
fn look(disk: &ForgetfulDisk, why: &str) -> inspect::Report {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    let before = disk.operations_of("write") + disk.operations_of("remove");
    let report = inspect::inspect(Arc::new(disk.clone()), clock, |_, _| ());
    let after = disk.operations_of("write") + disk.operations_of("remove");
    assert_eq!(before, after, "{why}: it changed something");
    report.unwrap_or_else(|e| panic!("{why}: {e}"))
}

/// Places in the frames of the log that a recovery reads: of each one in its head, and one behind.
fn frames(disk: &ForgetfulDisk) -> Vec<(PathBuf, u64)> {
    let start = Checkpoint::read(disk).expect("it verifies").expect("it is there").start;
    let mut places = Vec::new();
    let scanned = log::scan(disk, start, |frame| {
        let path = log::path_of(frame.position.segment());
        let begin = u64::from(frame.position.offset());
        places.extend([5, 32 + u64::from(frame.len - 32) / 3].map(|at| (path.clone(), begin + at)));
        Ok(())
    });
    assert!(scanned.expect("memory").damaged.is_empty());
    places
}

/// Places in the files of a directory, up to the last byte of each that is no zero.
fn places(disk: &ForgetfulDisk, dir: &str) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    for entry in disk.list(Path::new(dir)).expect("memory").iter().filter(|entry| !entry.is_dir) {
        let path = Path::new(dir).join(&entry.name);
        let content = content(disk, &path);
        let used = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        all.extend((0..used).map(|at| (path.clone(), at)));
    }
    let step = (all.len() as u64 / PLACES).max(1) | 1;
    all.into_iter().step_by(step as usize).collect()
}

fn content(disk: &ForgetfulDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, Open::Read).expect("it is there");
    let mut content = vec![0; file.len().expect("memory") as usize];
    read_exact_at(&*file, &mut content, 0).expect("memory");
    content
}

/// Whether each byte of a local span is that of an append that was tried there.
fn is_right(journal: &JournalModel, begin: Offset, bytes: &[u8]) -> bool {
    let mut is_right = vec![false; bytes.len()];
    let span = Span::at(begin, bytes.len() as u64);
    for tried in &journal.tried {
        let from = tried.span.begin().max(span.begin());
        let to = tried.span.end().min(span.end());
        if from >= to {
            continue;
        }
        let (at, len) = (from.since(begin) as usize, to.since(from) as usize);
        let inside = from.since(tried.span.begin()) as usize;
        if tried.content[inside..inside + len] == bytes[at..at + len] {
            is_right[at..at + len].fill(true);
        }
    }
    is_right.into_iter().all(|is_right| is_right)
}

/// Walks a journal: local bytes are right, and what is neither here nor stored is named.
fn walk(replica: &Replica, model: &Model, journal: &JournalModel, why: &str) {
    let mut at = replica.trimmed();
    while at < replica.head() {
        at = match replica.locate(at) {
            Located::Ahead => unreachable!("{why}: below the head"),
            Located::Trimmed(span) | Located::Damaged(span) => span.end(),
            Located::Lost(span) => panic!("{why}: {span} is lost without a power cut"),
            Located::Local(span) => {
                let mut buf = vec![0; span.len() as usize];
                let n = replica.read(at, &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
                assert!(is_right(journal, at, &buf[..n]), "{why}: {span} is wrong at {at}");
                at.plus(n as u64)
            }
            Located::Remote(span) => {
                let life = replica.life();
                let mut stored = model.store.keys().filter(|(owner, _)| *owner == life);
                let stored = stored.find(|(_, stored)| stored.contains(at));
                let is_trimmed = at < journal.trimmed;
                assert!(stored.is_some() || is_trimmed, "{why}: {span} is nowhere");
                stored.map_or(span.end(), |(_, stored)| stored.end().min(span.end()))
            }
        };
    }
}

/// Every journal that was certain is there, or is made again where it ended.
fn find(data: &DataDir, life: Life, why: &str) -> Arc<Replica> {
    data.replica(life).unwrap_or_else(|| {
        let name = Journal::new(&format!("trial/{life}")).expect("a valid name");
        data.create(life, &name).unwrap_or_else(|e| panic!("{why}: {e}"))
    })
}

fn go_on(data: &DataDir, replica: &Arc<Replica>, shown: Offset, why: &str) {
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    assert!(turn.head() >= shown, "{why}: goes on at {}, below {shown}", turn.head());
    let content = Content::Memory("more".into());
    let entry = Entry { content, registers: None, writer: None, is_disk: true };
    let commit = turn.record(entry).unwrap_or_else(|e| panic!("{why}: {e}"));
    drop(turn);
    data.sync_round().unwrap_or_else(|e| panic!("{why}: {e}"));
    let span = commit.done().now_or_never().expect("synced is done").expect("nothing failed");
    let mut buf = [0; 4];
    replica.read(span.begin(), &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
    assert_eq!(&buf, b"more", "{why}");
}

fn is_noticed(recovered: &Recovered) -> bool {
    !recovered.damaged_log.is_empty() || recovered.cut_records > 0 || !recovered.is_clean
}

#[test]
fn a_flipped_bit_of_the_log_is_never_served() {
    for Left { disk, model, why } in lefts() {
        for (path, at) in frames(&disk) {
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let why = format!("{why}, {} at {at}", path.display());
            let report = look(&disk, &why);
            let (data, recovered) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            assert_eq!(report.recovered.damaged_log, recovered.damaged_log, "{why}");
            assert!(is_noticed(&recovered), "{why}: {recovered:?}");
            let aside = Path::new("aside").join(path.file_name().expect("a segment"));
            assert!(disk.stat(&aside).expect("memory").is_some(), "{why}: is not kept");
            for (life, journal) in model.journals.iter().filter(|(_, known)| known.is_certain) {
                let why = format!("{why}: {life}");
                let replica = find(&data, *life, &why);
                walk(&replica, &model, journal, &why);
                for tried in journal.tried.iter().filter(|one| one.promise > Promise::Nothing) {
                    let is_ahead = replica.locate(tried.span.begin()) == Located::Ahead;
                    assert!(!is_ahead || tried.span.is_empty(), "{why}: {} is ahead", tried.span);
                }
                go_on(&data, &replica, journal.shown, &why);
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_the_checkpoint_is_named() {
    for Left { disk, why, .. } in lefts() {
        for at in (0..content(&disk, Path::new("checkpoint")).len() as u64).step_by(97) {
            let disk = disk.crash(Crash::Kill);
            disk.flip(Path::new("checkpoint"), at);
            let opened = open(&disk).map(drop);
            assert!(matches!(opened, Err(Error::Damaged(..))), "{why}, at {at}: {opened:?}");
            // Nothing was touched: the bit put right, everything is there.
            disk.flip(Path::new("checkpoint"), at);
            open(&disk).unwrap_or_else(|e| panic!("{why}, at {at}: {e}"));
        }
    }
}

#[test]
fn a_flipped_bit_of_a_mirror_never_becomes_a_fragment() {
    for Left { disk, model, why } in lefts() {
        for (path, at) in places(&disk, "mirror") {
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let why = format!("{why}, {} at {at}", path.display());
            let report = look(&disk, &why);
            let (data, _) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            for replica in data.replicas() {
                let journal = &model.journals[&replica.life()];
                let of = report.journals.iter().find(|of| of.ledger.life == replica.life());
                let wrong = &of.expect("it is looked at").wrong;
                check_sums(&replica, journal, wrong, &why);
            }
        }
    }
}

/// Spans whose local bytes are not those that were appended are named by `inspect`, and fail the
/// checksum that the persister compares.
fn check_sums(replica: &Replica, journal: &JournalModel, wrong: &[Span], why: &str) {
    let ledger = replica.ledger();
    let spool = Span::between(ledger.spool.begin, ledger.head);
    let closed = ledger.closed.iter().map(|closed| (closed.span, closed.crc));
    for (span, crc) in closed.chain([(spool, ledger.spool.crc)]) {
        if span.is_empty() || !ledger.local.covers(span) {
            continue;
        }
        let mut buf = vec![0; span.len() as usize];
        let n = replica.read(span.begin(), &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert_eq!(n, buf.len(), "{why}: one file has a whole span");
        let is_right = is_right(journal, span.begin(), &buf);
        assert_eq!(crc32c::crc32c(&buf) == crc, is_right, "{why}: the checksum of {span}");
        assert_eq!(!wrong.contains(&span), is_right, "{why}: {span} and what is wrong: {wrong:?}");
    }
}
