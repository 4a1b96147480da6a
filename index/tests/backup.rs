//! A backup of a directory that goes on being written to: it is of one moment, all that was
//! acknowledged before is in it, and nothing of later. Nothing is lost by the hold, or left over.

#[path = "trial/load.rs"]
mod load;
#[path = "trial/model.rs"]
mod model;

use index::backup::{self, Backup};
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk, Open, read_exact_at};
use index::{DataDir, Error, Moment, Recovered, log};
use load::{Load, go_on};
use model::{Model, check};
use std::path::Path;
use std::sync::Arc;

const SEEDS: std::ops::Range<u64> = 1..25;
/// Steps of the load before the backup, and between two of its own.
const BEFORE: usize = 250;
const BETWEEN: usize = 60;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_us(1_800_000_000_000_000))
}

/// Copies while the load goes on. The copy, what it should hold, and what its recovery said.
fn back_up(load: &mut Load, why: &str) -> (ForgetfulDisk, Model, Recovered) {
    let (from, to) = (load.disk.clone(), ForgetfulDisk::new());
    let mut copied = 0;
    let mut progress = |len| copied += len;
    let hold = load.data.hold().unwrap_or_else(|e| panic!("{why}: {e}"));
    let mut backup = Backup::new(&from, Arc::new(to.clone()), &mut progress);
    load.run(BETWEEN);
    backup.begin().unwrap_or_else(|e| panic!("{why}: {e}"));
    load.run(BETWEEN);
    let moment = hold.moment().unwrap_or_else(|e| panic!("{why}: {e}"));
    let wanted = load.model.clone();
    load.run(BETWEEN);
    backup.log_of(moment).unwrap_or_else(|e| panic!("{why}: {e}"));
    load.run(BETWEEN);
    hold.log_copied();
    load.run(BETWEEN);
    backup.mirrors().unwrap_or_else(|e| panic!("{why}: {e}"));
    drop(hold);
    load.run(BETWEEN);
    let finished = backup.finish(clock(), Some(moment));
    let recovered = finished.unwrap_or_else(|e| panic!("{why}: {e}"));
    assert!(copied > 0, "{why}");
    (to, wanted, recovered)
}

#[test]
fn a_backup_is_of_one_moment_and_whole() {
    for seed in SEEDS {
        let why = format!("seed {seed}");
        let mut load = Load::begin(ForgetfulDisk::new(), Model::default(), seed).expect("it opens");
        load.run(BEFORE);
        let (to, mut wanted, recovered) = back_up(&mut load, &why);
        assert!(recovered.damaged.is_empty() && recovered.lost.is_empty(), "{why}: {recovered:?}");
        assert!(recovered.orphans.is_empty() && recovered.cut_records == 0, "{why}: {recovered:?}");
        // Case: the power goes when the copy is done.
        let to = to.crash(Crash::Power(seed));
        let report = index::inspect::inspect(Arc::new(to.clone()), clock(), |_, _| ());
        assert!(report.unwrap_or_else(|e| panic!("{why}: {e}")).is_sound(), "{why}");
        let (data, recovered) = DataDir::open(Arc::new(to.clone()), clock(), load::options())
            .unwrap_or_else(|e| panic!("{why}: {e}"));
        assert!(recovered.is_clean, "{why}: {recovered:?}");
        assert_eq!(data.replicas().len(), wanted.journals.len(), "{why}");
        check(&mut wanted, &data, false, &why);
        drop(data);
        go_on(&to, &wanted).unwrap_or_else(|e| panic!("{why}: {e}"));
        // Case: the original, after a kill.
        let from = load.disk.crash(Crash::Kill);
        let (data, _) = DataDir::open(Arc::new(from), clock(), load::options())
            .unwrap_or_else(|e| panic!("{why}: {e}"));
        check(&mut load.model, &data, false, &format!("{why}, the original"));
    }
}

#[test]
fn a_hold_keeps_the_files_and_gives_them_back() {
    for seed in SEEDS {
        let why = format!("seed {seed}");
        let mut load = Load::begin(ForgetfulDisk::new(), Model::default(), seed).expect("it opens");
        load.run(BEFORE);
        let mirrors = |load: &Load| {
            let mirrors = load.disk.list(Path::new("mirror")).expect("memory");
            mirrors.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        let before = mirrors(&load);
        let freed = load.disk.operations_of("punch");
        let hold = load.data.hold().expect("nobody else holds it");
        assert!(matches!(load.data.hold(), Err(Error::Held)), "{why}");
        load.run(4 * BETWEEN);
        let during = mirrors(&load);
        assert!(before.iter().all(|name| during.contains(name)), "{why}: a mirror was removed");
        assert_eq!(load.disk.operations_of("punch"), freed, "{why}: a block was freed");
        // Case: the checkpoint and the log behind it stay between the moment and the copy.
        let Moment { checkpoint_crc, start, .. } = hold.moment().expect("memory");
        load.run(BETWEEN);
        load.data.checkpoint().expect("memory");
        let checkpoint = load.disk.open(Path::new("checkpoint"), Open::Read).expect("it is there");
        let mut bytes = vec![0; checkpoint.len().expect("memory") as usize];
        read_exact_at(&*checkpoint, &mut bytes, 0).expect("memory");
        assert_eq!(crc32c::crc32c(&bytes), checkpoint_crc, "{why}");
        let first = load.disk.stat(&log::path_of(start.segment())).expect("memory");
        assert!(first.is_some(), "{why}: a segment was freed");
        drop(hold);
        let lives: Vec<String> = load.model.journals.keys().map(ToString::to_string).collect();
        let is_known = |name: &String| lives.iter().any(|life| name.starts_with(life.as_str()));
        assert!(mirrors(&load).iter().all(is_known), "{why}: files of deleted journals stay");
        load.data.hold().expect("it was given back");
    }
}

#[test]
fn a_directory_at_rest_is_copied_as_it_is() {
    for seed in SEEDS {
        for is_clean in [true, false] {
            let why = format!("seed {seed}, {is_clean}");
            let mut load =
                Load::begin(ForgetfulDisk::new(), Model::default(), seed).expect("it opens");
            load.run(BEFORE);
            if is_clean {
                load.close();
            }
            let from = load.disk.crash(Crash::Kill);
            let to = ForgetfulDisk::new();
            let mut progress = |_| ();
            let mut copy = Backup::new(&from, Arc::new(to.clone()), &mut progress);
            let lock = backup::lock(&from).expect("nobody runs on it");
            copy.begin().and_then(|()| copy.whole_log()).expect("memory");
            copy.mirrors().expect("memory");
            drop(lock);
            copy.finish(clock(), None).unwrap_or_else(|e| panic!("{why}: {e}"));
            let to = to.crash(Crash::Power(seed));
            let (data, _) = DataDir::open(Arc::new(to.clone()), clock(), load::options())
                .unwrap_or_else(|e| panic!("{why}: {e}"));
            check(&mut load.model, &data, false, &why);
        }
    }
}

#[test]
fn a_backup_of_another_directory_is_refused() {
    let [mut one, mut other] = [3, 4]
        .map(|seed| Load::begin(ForgetfulDisk::new(), Model::default(), seed).expect("it opens"));
    one.run(BEFORE);
    other.run(BEFORE);
    let (hold, mut progress) = (one.data.hold().expect("it is free"), |_| ());
    let moment = hold.moment().expect("memory");
    let from = other.disk.clone();
    let mut copy = Backup::new(&from, Arc::new(ForgetfulDisk::new()), &mut progress);
    copy.begin().expect("memory");
    assert!(matches!(copy.log_of(moment), Err(Error::OtherCheckpoint)));
}
