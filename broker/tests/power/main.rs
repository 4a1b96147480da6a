//! Power cuts and kills under the whole broker (case T13): a load on several journals is stopped at
//! random operations of its one disk, which has the log, the mirrors, the key space and the store on
//! it; the broker is opened again, and what was promised must be there.

mod load;
mod model;
#[path = "../world/mod.rs"]
mod world;

use index::disk::{Crash, ForgetfulDisk};
use load::{Dice, Load};
use model::Model;

/// Stops, each with a crash and a recovery after it.
const STOPS: u64 = 100;
/// Crashes that one disk goes through, one after the other.
const LIVES: u64 = 4;

/// Runs one life: a load that is stopped at one of the first `operations`, a crash, and all checks.
async fn live(disk: ForgetfulDisk, model: Model, seed: u64, operations: u64) -> ForgetfulDisk {
    let mut dice = Dice::new(seed);
    let crash = if dice.roll(2) == 0 { Crash::Kill } else { Crash::Power(seed) };
    let at = dice.roll(operations);
    let why = format!("seed {seed}, stopped at operation {at}, {crash:?}");
    disk.stop_at(at);
    load::run(&disk, &model, seed).await;
    let disk = disk.crash(crash);
    // A recovery that is cut short as well.
    disk.stop_at(dice.roll(60));
    let again = load::try_to_open(&disk).await.crash(crash);
    let load = Load::open(&again).await.unwrap_or_else(|e| panic!("{why}: does not open: {e}"));
    model.check(&load.broker, crash != Crash::Kill, &why).await;
    model.ask_again(&load.broker, &why).await;
    load.end().await;
    again.crash(Crash::Kill)
}

/// Seeds are independent of each other: `SEED=n` runs that of a failure alone.
fn seeds() -> std::ops::Range<u64> {
    let text = std::env::var("SEED").ok();
    match text.and_then(|text| text.parse::<u64>().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..STOPS / LIVES,
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_promised_is_there_after_a_hundred_stops() {
    let disk = ForgetfulDisk::new();
    load::run(&disk, &Model::default(), u64::MAX).await;
    let operations = disk.operations();
    assert!(operations > 1_000, "the load is too small: {operations} operations");
    for seed in seeds() {
        let (mut disk, model) = (ForgetfulDisk::new(), Model::default());
        for life in 0..LIVES {
            disk = live(disk, model.clone(), seed * LIVES + life, operations).await;
        }
    }
}
