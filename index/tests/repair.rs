//! Repairs of directories that a start refuses, or whose bytes are wrong: they open again, what is
//! read then is right or named, a head never goes below one that was shown, what was taken out is
//! kept, and an interruption at any operation is made good by the next repair.

#[allow(dead_code, reason = "the trial takes the rest")]
#[path = "trial/shared.rs"]
mod trial;

use index::clock::ManualClock;
use index::disk::{Crash, Disk, DryDisk, ForgetfulDisk};
use index::repair::{self, Repair, Step};
use index::{Error, inspect};
use protocol::{Journal, Life};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use trial::left::{Left, content, contents, find, go_on, lefts, open, places, walk};
use trial::model::Model;

const CHECKPOINT: &str = "checkpoint";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_us(1_800_000_000_000_000))
}

/// What the key space would say.
fn names(model: &Model) -> BTreeMap<Life, Journal> {
    let certain = model.journals.iter().filter(|(_, journal)| journal.is_certain);
    let name = |life: &Life| Journal::new(&format!("trial/{life}")).expect("a valid name");
    certain.map(|(life, _)| (*life, name(life))).collect()
}

fn repair(disk: Arc<dyn Disk>, model: &Model) -> Result<Vec<Step>, Error> {
    let mut steps = Vec::new();
    let mut tell = |step| steps.push(step);
    Repair::new(disk, clock(), "repair", &mut tell).run(&names(model))?;
    Ok(steps)
}

fn is_needed(disk: &ForgetfulDisk, model: &Model) -> bool {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    repair::is_needed(&disk, clock(), &names(model)).expect("it can be read")
}

/// All that has to hold of a directory that was repaired.
fn check(disk: &ForgetfulDisk, model: &Model, may_lose: bool, why: &str) {
    let report = inspect::inspect(Arc::new(disk.clone()), clock(), |_, _| ());
    let report = report.unwrap_or_else(|e| panic!("{why}: {e}"));
    for journal in &report.journals {
        assert!(journal.wrong.is_empty(), "{why}: {:?} are wrong still", journal.wrong);
    }
    let (data, recovered) = open(disk).unwrap_or_else(|e| panic!("{why}: {e}"));
    assert!(recovered.is_clean, "{why}: {recovered:?}");
    for (life, journal) in model.journals.iter().filter(|(_, journal)| journal.is_certain) {
        let why = format!("{why}: {life}");
        let replica = find(&data, *life, &why);
        walk(&replica, model, journal, may_lose, &why);
        go_on(&data, &replica, journal.shown, &why);
    }
}

fn is_aside(disk: &ForgetfulDisk, name: &str) -> bool {
    disk.stat(&Path::new("aside/repair").join(name)).expect("memory").is_some()
}

#[test]
fn a_directory_with_a_damaged_checkpoint_opens_again() {
    for Left { disk, model, why } in lefts() {
        for crash in [Crash::Kill, Crash::Power(7)] {
            for at in (0..content(&disk, Path::new(CHECKPOINT)).len() as u64).step_by(397) {
                let why = format!("{why}, {crash:?}, at {at}");
                let disk = disk.crash(crash);
                disk.flip(Path::new(CHECKPOINT), at);
                let damaged = content(&disk, Path::new(CHECKPOINT));
                assert!(matches!(open(&disk), Err(Error::Damaged(..))), "{why}");
                let before: Vec<_> = disk.list(Path::new("mirror")).expect("memory");
                repair(Arc::new(disk.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
                assert_eq!(content(&disk, Path::new("aside/repair/checkpoint")), damaged, "{why}");
                for mirror in before {
                    assert!(is_aside(&disk, &mirror.name), "{why}: {} is gone", mirror.name);
                }
                check(&disk, &model, matches!(crash, Crash::Power(_)), &why);
            }
        }
    }
}

#[test]
fn wrong_bytes_of_a_mirror_are_named_and_kept() {
    for Left { disk, model, why } in lefts() {
        for (path, at) in places(&disk, "mirror") {
            let why = format!("{why}, {} at {at}", path.display());
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let found = inspect::inspect(Arc::new(disk.clone()), clock(), |_, _| ());
            let found = found.unwrap_or_else(|e| panic!("{why}: {e}")).journals;
            let wrong = found.iter().map(|journal| journal.wrong.len()).sum::<usize>();
            let steps = repair(Arc::new(disk.clone()), &model);
            let steps = steps.unwrap_or_else(|e| panic!("{why}: {e}"));
            assert_eq!(steps.len(), wrong, "{why}: {steps:?}");
            for step in steps {
                let (Step::Damaged { span, at, .. } | Step::GivenUp { span, at, .. }) = &step
                else {
                    panic!("{why}: {step}")
                };
                assert_eq!(content(&disk, at).len() as u64, span.len(), "{why}: {step}");
            }
            // The rest of a fragment of which a part was freed has no sum: it is read as it is.
            if wrong > 0 {
                check(&disk, &model, false, &why);
            }
        }
    }
}

#[test]
fn an_interrupted_repair_is_made_good_by_the_next() {
    for Left { disk, model, why } in lefts() {
        let mirror = places(&disk, "mirror").into_iter().next_back();
        // Case: what is damaged
        for path in [Some((Path::new(CHECKPOINT).to_owned(), 9)), mirror].into_iter().flatten() {
            let damaged = disk.crash(Crash::Kill);
            damaged.flip(&path.0, path.1);
            let whole = damaged.crash(Crash::Kill);
            repair(Arc::new(whole.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
            for at in 0..whole.operations() {
                let crash = if at % 2 == 0 { Crash::Kill } else { Crash::Power(at) };
                let why = format!("{why}, {} stopped at {at}, {crash:?}", path.0.display());
                let disk = damaged.crash(Crash::Kill);
                disk.stop_at(at);
                assert!(repair(Arc::new(disk.clone()), &model).is_err(), "{why}");
                let disk = disk.crash(crash);
                repair(Arc::new(disk.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
                check(&disk, &model, matches!(crash, Crash::Power(_)), &why);
            }
        }
    }
}

#[test]
fn a_dry_run_changes_nothing_and_says_the_same() {
    for Left { disk, model, why } in lefts() {
        disk.flip(Path::new(CHECKPOINT), 50);
        let dry = DryDisk::new(Arc::new(disk.clone()));
        let before: Vec<_> =
            ["write", "remove", "rename", "sync"].map(|of| disk.operations_of(of)).into();
        let would = repair(Arc::new(dry), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
        let after: Vec<_> =
            ["write", "remove", "rename", "sync"].map(|of| disk.operations_of(of)).into();
        assert_eq!(before, after, "{why}");
        let steps = repair(Arc::new(disk.clone()), &model);
        assert_eq!(steps.unwrap_or_else(|e| panic!("{why}: {e}")), would, "{why}");
        // Case: nothing is left to repair
        assert!(!is_needed(&disk, &model), "{why}");
        let again = repair(Arc::new(disk.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert!(again.is_empty(), "{why}: {again:?}");
    }
}

#[test]
fn a_sound_directory_needs_no_repair_and_is_looked_at_alone() {
    const CHANGES: [&str; 5] = ["write", "remove", "rename", "sync", "create"];
    for Left { disk, model, why } in lefts() {
        let before = CHANGES.map(|of| disk.operations_of(of));
        assert!(!is_needed(&disk, &model), "{why}");
        assert_eq!(CHANGES.map(|of| disk.operations_of(of)), before, "{why}");
        // Case: its mark is missing; a repair says so
        disk.remove(Path::new("format")).expect("it is there");
        assert!(is_needed(&disk, &model), "{why}");
        let steps = repair(Arc::new(disk.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert_eq!(steps, [Step::Marked], "{why}");
        assert!(!is_needed(&disk, &model), "{why}");
    }
}

#[test]
fn a_directory_whose_mark_cannot_be_read_gets_another() {
    for Left { disk, model, why } in lefts() {
        disk.flip(Path::new("format"), 3);
        assert!(matches!(open(&disk), Err(Error::Damaged(..))), "{why}");
        repair(Arc::new(disk.clone()), &model).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert!(is_aside(&disk, "format"), "{why}");
        check(&disk, &model, false, &why);
    }
}

/// The lives that a key space would give that was made anew.
fn others(model: &Model, by: u64) -> BTreeMap<Journal, Life> {
    names(model).into_iter().map(|(life, name)| (name, Life::new(life.get() + by))).collect()
}

fn rekey(disk: &ForgetfulDisk, model: &Model, by: u64) -> Result<(), Error> {
    let mut tell = |_step| ();
    let mut repair = Repair::new(Arc::new(disk.clone()), clock(), "repair", &mut tell);
    repair.run(&names(model))?;
    repair.rekey(&others(model, by))
}

#[test]
fn journals_get_other_lives_and_keep_their_bytes() {
    for Left { disk, model, why } in lefts() {
        let wanted = contents(&disk.crash(Crash::Kill));
        let whole = disk.crash(Crash::Kill);
        rekey(&whole, &model, 1000).unwrap_or_else(|e| panic!("{why}: {e}"));
        // A repair ends as a broker does.
        let (_, recovered) = open(&whole.crash(Crash::Kill)).expect("it opens");
        assert!(recovered.is_clean, "{why}: {recovered:?}");
        assert_eq!(contents(&whole), wanted, "{why}");
        let (data, _) = open(&whole).expect("it opens");
        for (name, life) in others(&model, 1000) {
            assert!(data.replica(life).is_some_and(|found| *found.name() == name), "{why}: {name}");
        }
        drop(data);
        // Case: it is interrupted, and done again with lives of yet another key space
        for at in (0..whole.operations()).step_by(7) {
            let why = format!("{why}, stopped at {at}");
            let disk = disk.crash(Crash::Kill);
            disk.stop_at(at);
            if rekey(&disk, &model, 1000).is_ok() {
                continue;
            }
            let disk = disk.crash(Crash::Kill);
            rekey(&disk, &model, 2000).unwrap_or_else(|e| panic!("{why}: {e}"));
            assert_eq!(contents(&disk), wanted, "{why}");
        }
    }
}
