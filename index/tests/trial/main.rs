//! The disk on trial: a mixed load is stopped after every single disk operation, as a kill and as a
//! power cut, and every operation fails once; whatever was promised must be there.

mod load;
mod model;

use index::disk::{Crash, Disk, ForgetfulDisk, Open, Trouble};
use load::Load;
use model::{Model, Promise, check};
use std::path::Path;

const STEPS: usize = 420;
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Runs the load to its end and says how many operations it makes.
fn operations(seed: u64) -> (u64, ForgetfulDisk, Model) {
    let disk = ForgetfulDisk::new();
    let mut load = Load::begin(disk.clone(), Model::default(), seed).expect("a healthy disk opens");
    load.run(STEPS);
    load.close();
    (disk.operations(), disk, load.model)
}

/// Recovers after `crash`, checks, goes on after a kill, and checks again after a power cut: what a
/// recovery found is durable, wherever it was found.
fn recover(disk: &ForgetfulDisk, model: &mut Model, crash: Crash, why: &str) {
    let disk = disk.crash(crash);
    let is_power = matches!(crash, Crash::Power(_));
    let load = Load::begin(disk.clone(), Model::default(), 1);
    let load = load.unwrap_or_else(|e| panic!("{why}: does not open: {e}"));
    check(model, &load.data, is_power, why);
    drop(load);
    let disk = disk.crash(Crash::Kill);
    let load =
        load::go_on(&disk, model).unwrap_or_else(|e| panic!("{why}: does not open again: {e}"));
    *model = load.model.clone();
    drop(load);
    let power = match crash {
        Crash::Kill => Crash::Power(disk.operations()),
        power @ Crash::Power(_) => power,
    };
    let disk = disk.crash(power);
    let load = Load::begin(disk, Model::default(), 1);
    let load = load.unwrap_or_else(|e| panic!("{why}: does not open the third time: {e}"));
    check(model, &load.data, true, &format!("{why}, after going on"));
}

fn stopped_at(seed: u64, at: u64, crash: Crash) {
    let disk = ForgetfulDisk::new();
    disk.stop_at(at);
    let why = format!("seed {seed}, stopped at operation {at}, {crash:?}");
    let mut model = match Load::begin(disk.clone(), Model::default(), seed) {
        Ok(mut load) => {
            load.run(STEPS);
            if !disk.is_stopped() {
                load.close();
            }
            load.model.clone()
        }
        Err(_) => Model::default(),
    };
    assert!(disk.is_stopped(), "{why}: the load ends before");
    recover(&disk, &mut model, crash, &why);
}

#[test]
fn a_clean_run_is_all_there() {
    for seed in 1..20 {
        let (operations, disk, model) = operations(seed);
        assert!(operations > 1_000, "the load is too small: {operations} operations");
        for crash in [Crash::Kill, Crash::Power(seed)] {
            recover(&disk, &mut model.clone(), crash, &format!("seed {seed}, clean, {crash:?}"));
        }
    }
}

/// So many seeds, where the environment does not say how many.
fn seeds(count: u64) -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("TRIAL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(count)
}

#[test]
fn stopped_after_every_operation_as_a_kill() {
    for seed in seeds(1) {
        let (operations, ..) = operations(seed);
        (0..operations).for_each(|at| stopped_at(seed, at, Crash::Kill));
    }
}

#[test]
fn stopped_after_every_operation_as_a_power_cut() {
    for seed in seeds(1) {
        let (operations, ..) = operations(seed);
        (0..operations).for_each(|at| stopped_at(seed, at, Crash::Power(seed * 7_919 + at)));
    }
}

/// A recovery that is stopped itself, after any operation, by a cut of the power.
#[test]
fn a_recovery_is_cut_after_every_operation() {
    for seed in seeds(6) {
        let disk = ForgetfulDisk::new();
        let mut load = Load::begin(disk.clone(), Model::default(), seed).expect("a healthy disk");
        load.run(STEPS - seed as usize);
        let killed = disk.crash(Crash::Kill);
        for at in 0.. {
            let why = format!("seed {seed}, its recovery is cut after operation {at}");
            let disk = killed.crash(Crash::Kill);
            disk.stop_at(at);
            drop(Load::begin(disk.clone(), Model::default(), 1));
            let is_over = !disk.is_stopped();
            let disk = disk.crash(Crash::Power(seed * 100_000 + at));
            let again = Load::begin(disk, Model::default(), 1);
            let again = again.unwrap_or_else(|error| panic!("{why}: {error}"));
            check(&mut load.model.clone(), &again.data, true, &why);
            if is_over {
                break;
            }
        }
    }
}

/// Fails the `nth` operation of a name, runs on, then stops.
fn failed_once(operation: &'static str, nth: u64, errno: i32, crash: Crash) {
    let disk = ForgetfulDisk::new();
    disk.fail(Trouble { operation: Some(operation), nth, errno });
    let why = format!("{operation} {nth} fails with {errno}, {crash:?}");
    // A directory that does not open for a failure opens the next time.
    let mut model = Model::default();
    if let Ok(mut load) = Load::begin(disk.clone(), Model::default(), 1) {
        load.run(STEPS);
        load.close();
        model = load.model.clone();
    }
    recover(&disk, &mut model, crash, &why);
}

#[test]
fn every_sync_and_every_write_fails_once() {
    let (_, disk, _) = operations(1);
    for operation in ["sync", "write", "reserve"] {
        for nth in 0..disk.operations_of(operation) {
            let errno = if operation == "sync" || nth % 2 == 0 { EIO } else { ENOSPC };
            failed_once(operation, nth, errno, Crash::Kill);
            failed_once(operation, nth, errno, Crash::Power(nth));
        }
    }
}

/// Takes all room of a disk but so much, for good.
fn fill(disk: &ForgetfulDisk, room: u64) {
    let file = disk.open(Path::new("filler"), Open::New).expect("memory");
    let free = disk.space().expect("memory").free;
    file.reserve(0, free - room).expect("there is room");
    file.sync().expect("memory");
    disk.sync_dir(Path::new("")).expect("memory");
}

/// What was full when it stopped starts again, without room from elsewhere.
#[test]
fn a_full_disk_starts_again() {
    let (mut full, mut failed) = (0, Vec::new());
    for seed in 1..=40 {
        for room in [30_000, 60_000, 90_000, 150_000, 300_000] {
            for crash in [Crash::Kill, Crash::Power(seed)] {
                let why = format!("seed {seed}, room {room}, {crash:?}");
                let disk = ForgetfulDisk::new();
                disk.set_capacity(Some(4 << 20));
                let load = Load::begin(disk.clone(), Model::default(), seed);
                let mut load = load.expect("there is room to begin");
                fill(&disk, room);
                load.run(STEPS);
                full += 1;
                let disk = disk.crash(crash);
                match Load::begin(disk, Model::default(), 1) {
                    Ok(again) => {
                        check(&mut load.model, &again.data, matches!(crash, Crash::Power(_)), &why)
                    }
                    Err(error) => failed.push(format!("{why}: {error}")),
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} of {full}: {failed:#?}", failed.len());
}

/// The same again and again, since what a start leaves is what the next one finds. A disk that has
/// no room for a start refuses it, and what is there is there when it has some.
#[test]
fn a_full_disk_is_cut_again_and_again() {
    const SMALL: u64 = 1 << 20;
    let (mut starts, mut refused) = (0, 0);
    for seed in seeds(16) {
        // Case: with room that is kept for a start, and without.
        for (capacity, room) in [(4 * SMALL, 60_000), (SMALL, 60_000), (SMALL, 400_000)] {
            let mut disk = ForgetfulDisk::new();
            let mut model = Model::default();
            for round in 0..12 {
                let why = format!("seed {seed}, {capacity}, {room}, round {round}");
                let dice = seed * 100 + round;
                disk.set_capacity(Some(2 * capacity));
                let load = Load::begin(disk.clone(), model, dice);
                let mut load = load.unwrap_or_else(|error| panic!("{why}: {error}"));
                disk.set_capacity(Some(capacity));
                if round == 0 {
                    fill(&disk, room);
                }
                load.run(STEPS);
                model = load.model;
                let is_power = dice % 3 > 0;
                disk = disk.crash(if is_power { Crash::Power(dice) } else { Crash::Kill });
                starts += 1;
                let mut again = Load::begin(disk.clone(), Model::default(), 1);
                if again.as_ref().is_err_and(index::Error::is_full) {
                    refused += 1;
                    disk = disk.crash(if is_power { Crash::Power(round) } else { Crash::Kill });
                    disk.set_capacity(Some(2 * capacity));
                    again = Load::begin(disk.clone(), Model::default(), 1);
                }
                let again = again.unwrap_or_else(|error| panic!("{why}: {error}"));
                check(&mut model, &again.data, is_power, &why);
                disk = disk.crash(Crash::Kill);
            }
        }
    }
    assert!(refused > 0 && refused < starts / 2, "{refused} of {starts} starts were refused");
}

/// A disk with little room: appends are refused whole, what was acknowledged stays.
#[test]
fn a_full_disk_refuses_whole_appends() {
    for capacity in [30_000, 60_000, 90_000, 150_000, 300_000] {
        for crash in [Crash::Kill, Crash::Power(capacity)] {
            let disk = ForgetfulDisk::new();
            disk.set_capacity(Some(capacity));
            let mut model = Model::default();
            if let Ok(mut load) = Load::begin(disk.clone(), Model::default(), 5) {
                load.run(STEPS);
                load.close();
                model = load.model.clone();
            }
            let refused = model.journals.values().flat_map(|journal| &journal.tried);
            let refused = refused.filter(|tried| tried.promise == Promise::Nothing).count();
            assert!(
                refused > 10,
                "capacity {capacity}: the disk is never full ({refused} refused)"
            );
            disk.set_capacity(None);
            recover(&disk, &mut model, crash, &format!("capacity {capacity}, {crash:?}"));
        }
    }
}
