//! Random operations by several handles on two mounts, against the model of `fs::model`.
//!
//! Seeds are independent of each other: `SEED=n` runs that of a failure alone.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod kernel;
#[path = "../world/mod.rs"]
mod world;

use fs::double::Double;
use fs::model::MOUNTS;
use fs::model::trial::{Trial, seeds};
use kernel::Kernel;
use world::World;

/// How many seeds run for each kind of node, and how many operations each.
const SEEDS: u64 = 1_000;
const OPERATIONS: usize = 120;

/// Runs a seed to its first answer that the model does not give.
async fn run(seed: u64, first: World) {
    let second = first.other_with(|options| options.allow_delete = false);
    let mut mounts: [Kernel; MOUNTS] = [Kernel::new(first), Kernel::new(second)];
    let mut trial = Trial::new(seed);
    for _ in 0..OPERATIONS {
        let op = trial.op();
        let got = kernel::answer(&mut mounts, &op).await;
        trial.judge(&op, &got);
    }
}

fn world(double: Double) -> World {
    World::with(double, |options| options.allow_delete = true)
}

#[tokio::test]
async fn two_mounts_answer_as_the_model_through_direct_nodes() {
    for seed in seeds(SEEDS) {
        run(seed, world(Double::new())).await;
    }
}

#[tokio::test]
async fn two_mounts_answer_as_the_model_through_mirrors() {
    for seed in seeds(SEEDS) {
        let mirrors = tempfile::tempdir().unwrap();
        run(seed, world(Double::with_mirrors(mirrors.path().to_owned()))).await;
    }
}
