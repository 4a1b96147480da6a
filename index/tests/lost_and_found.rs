//! Journals that the key space does not know go to `lost+found`, and come back whole when it knows
//! them again: by a start or by a repair, after a kill or a power cut, interrupted anywhere.

#[allow(dead_code, reason = "the trial and repairs take the rest")]
#[path = "trial/shared.rs"]
mod trial;

use index::Error;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk};
use index::repair::{self, Repair, Step};
use protocol::{Journal, Life};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use trial::left::{Left, contents, find, go_on, lefts, open, walk};
use trial::model::Model;

/// What the key space says that knows all journals.
fn names(model: &Model) -> BTreeMap<Life, Journal> {
    let certain = model.journals.iter().filter(|(_, journal)| journal.is_certain);
    let name = |life: &Life| Journal::new(&format!("trial/{life}")).expect("a valid name");
    certain.map(|(life, _)| (*life, name(life))).collect()
}

/// A start with a key space that knows no journal.
fn lose_all(disk: &ForgetfulDisk) -> Result<(), Error> {
    let (data, _) = open(disk)?;
    data.replicas().iter().try_for_each(|replica| data.set_aside(replica.life()))
}

/// A start with the key space that knows them.
fn find_all(disk: &ForgetfulDisk, model: &Model) -> Result<(), Error> {
    let (data, _) = open(disk)?;
    for (life, name) in names(model) {
        if data.replica(life).is_none() {
            data.create(life, &name)?;
        }
    }
    Ok(())
}

fn put_back(disk: &ForgetfulDisk, model: &Model) -> Result<Vec<Step>, Error> {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    let mut steps = Vec::new();
    let mut tell = |step| steps.push(step);
    Repair::new(Arc::new(disk.clone()), clock, "repair", &mut tell).run(&names(model))?;
    Ok(steps)
}

fn is_needed(disk: &ForgetfulDisk, model: &Model) -> bool {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    repair::is_needed(&disk, clock, &names(model)).expect("it can be read")
}

fn check(disk: &ForgetfulDisk, model: &Model, may_lose: bool, why: &str) {
    let (data, recovered) = open(disk).unwrap_or_else(|e| panic!("{why}: {e}"));
    assert!(recovered.found_damaged.is_empty(), "{why}: {recovered:?}");
    for (life, journal) in model.journals.iter().filter(|(_, journal)| journal.is_certain) {
        let why = format!("{why}: {life}");
        let replica = find(&data, *life, &why);
        walk(&replica, model, journal, may_lose, &why);
        go_on(&data, &replica, journal.shown, &why);
    }
}

fn lost(disk: &ForgetfulDisk) -> Vec<String> {
    let entries = disk.list(Path::new("lost+found")).expect("memory");
    entries.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn journals_come_back_whole() {
    for Left { disk, model, why } in lefts() {
        let wanted = contents(&disk.crash(Crash::Kill));
        lose_all(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert!(!lost(&disk).is_empty(), "{why}: nothing was set aside");
        // Case: how it stopped, and whether a start or a repair puts all back
        for (crash, by_start) in [
            (Crash::Kill, true),
            (Crash::Kill, false),
            (Crash::Power(3), true),
            (Crash::Power(4), false),
        ] {
            let why = format!("{why}, {crash:?}, by a start: {by_start}");
            let disk = disk.crash(crash);
            assert!(is_needed(&disk, &model), "{why}");
            if by_start {
                find_all(&disk, &model).unwrap_or_else(|e| panic!("{why}: {e}"));
            } else {
                let steps = put_back(&disk, &model).unwrap_or_else(|e| panic!("{why}: {e}"));
                let is_back = |step: &Step| matches!(step, Step::TakenBack { .. });
                assert!(steps.iter().all(is_back), "{why}: {steps:?}");
                assert_eq!(steps.len(), names(&model).len(), "{why}: {steps:?}");
                assert!(!is_needed(&disk, &model), "{why}");
            }
            // Journals of which it was not certain that they began stay there.
            let stay = lost(&disk.crash(Crash::Power(5)));
            let is_known = |name: &String| {
                names(&model).keys().any(|life| name.starts_with(&life.to_string()))
            };
            assert!(!stay.iter().any(is_known), "{why}: {stay:?}");
            let mut found = contents(&disk.crash(Crash::Power(6)));
            found.retain(|name, _| wanted.contains_key(name));
            for (name, content) in found {
                assert!(content == wanted[&name], "{why}: {name} differs");
            }
            check(&disk, &model, false, &why);
        }
    }
}

#[test]
fn an_interruption_of_the_way_there_loses_nothing() {
    for Left { disk, model, why } in lefts() {
        let whole = disk.crash(Crash::Kill);
        lose_all(&whole).unwrap_or_else(|e| panic!("{why}: {e}"));
        for at in (0..whole.operations()).step_by(3) {
            let crash = if at % 2 == 0 { Crash::Kill } else { Crash::Power(at) };
            let why = format!("{why}, stopped at {at}, {crash:?}");
            let disk = disk.crash(Crash::Kill);
            disk.stop_at(at);
            let _ = lose_all(&disk);
            let disk = disk.crash(crash);
            find_all(&disk, &model).unwrap_or_else(|e| panic!("{why}: {e}"));
            check(&disk, &model, matches!(crash, Crash::Power(_)), &why);
        }
    }
}

#[test]
fn an_interruption_of_the_way_back_loses_nothing() {
    for Left { disk, model, why } in lefts() {
        lose_all(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
        let whole = disk.crash(Crash::Kill);
        find_all(&whole, &model).unwrap_or_else(|e| panic!("{why}: {e}"));
        for at in (0..whole.operations()).step_by(3) {
            let crash = if at % 2 == 0 { Crash::Kill } else { Crash::Power(at) };
            let why = format!("{why}, stopped at {at}, {crash:?}");
            let disk = disk.crash(Crash::Kill);
            disk.stop_at(at);
            // What fails behind the last step that matters changes nothing.
            let _ = find_all(&disk, &model);
            let disk = disk.crash(crash);
            find_all(&disk, &model).unwrap_or_else(|e| panic!("{why}: {e}"));
            check(&disk, &model, false, &why);
        }
    }
}
