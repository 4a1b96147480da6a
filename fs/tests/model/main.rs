//! Random operations by several handles on two mounts, against the model of `fs::model`.
//!
//! Seeds are independent of each other: `SEED=n` runs that of a failure alone.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod kernel;
#[path = "../world/mod.rs"]
mod world;

use fs::double::Double;
use fs::model::chance::Chance;
use fs::model::{MOUNTS, Model};
use kernel::Kernel;
use world::World;

/// How many seeds run for each kind of node, and how many operations each.
const SEEDS: u64 = 1_000;
const OPERATIONS: usize = 120;

/// Runs a seed to its first answer that the model does not give.
async fn run(seed: u64, first: World) {
    let mut model = Model::default();
    let second = first.other_with(|options| options.allow_delete = false);
    let mut mounts: [Kernel; MOUNTS] = [Kernel::new(first), Kernel::new(second)];
    let mut chance = Chance::new(seed);
    let mut done = Vec::new();
    for _ in 0..OPERATIONS {
        let op = chance.op(&model);
        let allowed = model.apply(&op);
        let got = kernel::answer(&mut mounts, &op).await;
        done.push(format!("{op} -> {got}"));
        assert!(
            allowed.contains(&got),
            "SEED={seed}: after\n  {}\nthe model says {}",
            done.join("\n  "),
            allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
        );
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => {
            let asked = std::env::var("SEEDS").map(|seeds| seeds.parse().expect("a number"));
            (0..asked.unwrap_or(0).max(SEEDS)).collect()
        }
    }
}

fn world(double: Double) -> World {
    World::with(double, |options| options.allow_delete = true)
}

#[tokio::test]
async fn two_mounts_answer_as_the_model_through_direct_nodes() {
    for seed in seeds() {
        run(seed, world(Double::new())).await;
    }
}

#[tokio::test]
async fn two_mounts_answer_as_the_model_through_mirrors() {
    for seed in seeds() {
        let mirrors = tempfile::tempdir().unwrap();
        run(seed, world(Double::with_mirrors(mirrors.path().to_owned()))).await;
    }
}
