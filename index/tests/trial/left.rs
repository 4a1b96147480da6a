//! What a load leaves behind for somebody to damage, and what has to hold of it afterwards.

use super::load::{Load, options};
use super::model::{JournalModel, Model};
use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk, Open, read_exact_at};
use index::{Content, DataDir, Entry, Error, Located, Recovered, Replica};
use protocol::{Journal, Life, Offset, Span};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SEEDS: std::ops::Range<u64> = 1..4;
const STEPS: usize = 420;
/// Places of each kind of file that are tried, for each seed and each way to stop.
const PLACES: u64 = 60;

/// What a load left.
pub struct Left {
    pub disk: ForgetfulDisk,
    pub model: Model,
    pub why: String,
}

pub fn lefts() -> impl Iterator<Item = Left> {
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

pub fn open(disk: &ForgetfulDisk) -> Result<(Arc<DataDir>, Recovered), Error> {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    DataDir::open(Arc::new(disk.clone()), clock, options())
}

/// Places in the files of a directory, up to the last byte of each that is no zero.
pub fn places(disk: &ForgetfulDisk, dir: &str) -> Vec<(PathBuf, u64)> {
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

pub fn content(disk: &ForgetfulDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, Open::Read).expect("it is there");
    let mut content = vec![0; file.len().expect("memory") as usize];
    read_exact_at(&*file, &mut content, 0).expect("memory");
    content
}

/// Whether each byte of a local span is that of an append that was tried there.
pub fn is_right(journal: &JournalModel, begin: Offset, bytes: &[u8]) -> bool {
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
pub fn walk(replica: &Replica, model: &Model, journal: &JournalModel, may_lose: bool, why: &str) {
    let mut at = replica.trimmed();
    while at < replica.head() {
        at = match replica.locate(at) {
            Located::Ahead => unreachable!("{why}: below the head"),
            Located::Trimmed(span) | Located::Damaged(span) => span.end(),
            Located::Lost(span) if may_lose => span.end(),
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
pub fn find(data: &DataDir, life: Life, why: &str) -> Arc<Replica> {
    data.replica(life).unwrap_or_else(|| {
        let name = Journal::new(&format!("trial/{life}")).expect("a valid name");
        data.create(life, &name).unwrap_or_else(|e| panic!("{why}: {e}"))
    })
}

pub fn go_on(data: &DataDir, replica: &Arc<Replica>, shown: Offset, why: &str) {
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

/// What a directory has of each journal: where it ends, and its local bytes.
pub fn contents(disk: &ForgetfulDisk) -> BTreeMap<Journal, (Offset, Vec<u8>)> {
    let (data, _) = open(disk).expect("it opens");
    let content = |replica: &Arc<Replica>| {
        let mut local = Vec::new();
        for span in replica.ledger().local.iter() {
            let mut bytes = vec![0; span.len() as usize];
            let mut done = 0;
            while done < bytes.len() {
                let at = span.begin().plus(done as u64);
                done += replica.read(at, &mut bytes[done..]).expect("it is local");
            }
            local.extend(bytes);
        }
        (replica.name().clone(), (replica.head(), local))
    };
    data.replicas().iter().map(content).collect()
}
