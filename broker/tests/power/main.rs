//! Power cuts and kills under the whole broker (case T13): a load on several journals is stopped at
//! random operations of its one disk, which has the log, the mirrors, the key space and the store
//! on it; the broker is opened again, and what was promised must be there.

mod load;
mod model;
#[path = "../world/mod.rs"]
mod world;

use index::disk::{Crash, ForgetfulDisk, Trouble};
use load::{Dice, Load};
use model::Model;

/// Disks that are tried, unless the environment says otherwise, and stops that each goes through.
const DISKS: u64 = 25;
const LIVES: u64 = 4;
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Seeds are independent of each other: `SEED=n` runs that of a failure alone.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TRIAL_SEEDS").unwrap_or(DISKS),
    }
}

/// How many operations the load takes where nothing happens.
async fn operations() -> u64 {
    let disk = ForgetfulDisk::new();
    load::run(&disk, &Model::default(), u64::MAX).await;
    let operations = disk.operations();
    assert!(operations > 1_000, "the load is too small: {operations} operations");
    operations
}

fn crash(dice: &mut Dice, seed: u64) -> Crash {
    if dice.roll(2) == 0 { Crash::Kill } else { Crash::Power(seed) }
}

/// Opens the broker on what a crash left, and checks it; first by a recovery that is cut short.
async fn recover(
    disk: &ForgetfulDisk,
    model: &Model,
    dice: &mut Dice,
    crash: Crash,
    why: &str,
) -> ForgetfulDisk {
    let disk = disk.crash(crash);
    disk.stop_at(dice.roll(60));
    if let Ok(load) = Load::open(&disk).await {
        load.end().await;
    }
    let disk = disk.crash(crash);
    let load = Load::open(&disk).await.unwrap_or_else(|e| panic!("{why}: does not open: {e}"));
    model.check(&load.broker, crash != Crash::Kill, why).await;
    model.ask_again(&load.broker, why).await;
    load.end().await;
    disk.crash(Crash::Kill)
}

#[tokio::test(start_paused = true)]
async fn what_was_promised_is_there_after_a_hundred_stops() {
    let operations = operations().await;
    for seed in seeds() {
        let (mut disk, model) = (ForgetfulDisk::new(), Model::default());
        for seed in seed * LIVES..(seed + 1) * LIVES {
            let mut dice = Dice::new(seed);
            let crash = crash(&mut dice, seed);
            let at = dice.roll(operations);
            let why = format!("seed {}, stopped at operation {at}, {crash:?}", seed / LIVES);
            disk.stop_at(at);
            load::run(&disk, &model, seed).await;
            disk = recover(&disk, &model, &mut dice, crash, &why).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_promised_is_there_though_operations_fail() {
    let operations = operations().await;
    for seed in seeds() {
        let (disk, model) = (ForgetfulDisk::new(), Model::default());
        let mut dice = Dice::new(!seed);
        let crash = crash(&mut dice, seed);
        let mut failing = Vec::new();
        for errno in [EIO, ENOSPC, EIO] {
            // The first operations open the broker, which may refuse to.
            let nth = 200 + dice.roll(operations - 200);
            failing.push((nth, errno));
            disk.fail(Trouble { operation: None, nth, errno });
        }
        load::run(&disk, &model, seed).await;
        let why = format!("seed {seed}, failing {failing:?}, {crash:?}");
        recover(&disk, &model, &mut dice, crash, &why).await;
    }
}
