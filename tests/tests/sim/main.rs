//! Broker, clients, mounts and mirrors in one process, on one thread, on a seed: the clock, the
//! disk, the store, the network and chance come through the seams, and all of them fail.
//!
//! `SEED=n` runs one seed alone, `SEEDS=n` so many, from `FROM`; with `TRACE=FILE` all that happened
//! is written there. docs/RELIABILITY.md says what is
//! promised and tested.

mod actors;
mod chance;
mod disk;
mod model;
mod network;
mod plan;
mod run;
mod store;
mod trace;
mod weather;
mod world;

use run::{Outcome, run};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that are run unless the environment says otherwise.
const SEEDS: u64 = 300;
/// Seeds that are run twice.
const TWICE: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("SEED, SEEDS and FROM are numbers"))
}

fn seeds(most: u64) -> std::ops::Range<u64> {
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("FROM").unwrap_or(0);
            from..from + number("SEEDS").unwrap_or(most)
        }
    }
}

/// Runs seeds on all processors, each on a thread of its own, and calls `judge` with what came of
/// them. The first failure, of the lowest seed that was seen to fail, ends it.
fn each(seeds: std::ops::Range<u64>, judge: impl Fn(u64) -> Result<(), String> + Sync) {
    run::note_panics();
    let next = AtomicU64::new(seeds.start);
    let failed = std::sync::Mutex::new(None::<(u64, String)>);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let has_failed = failed.lock().expect("no holder panics").is_some();
                    if seed >= seeds.end || has_failed {
                        return;
                    }
                    if let Err(text) = judge(seed) {
                        let mut failed = failed.lock().expect("no holder panics");
                        if failed.as_ref().is_none_or(|(first, _)| seed < *first) {
                            *failed = Some((seed, text));
                        }
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    if let Some((_, text)) = failed.into_inner().expect("no holder panics") {
        panic!("{text}");
    }
}

/// What a failed seed says: the last of what happened, what the seed decided, the complaint, and how
/// to run it again.
fn failure(seed: u64, outcome: &Outcome) -> String {
    let Outcome { plan, complaint, told } = outcome;
    let last = told.lines.len().saturating_sub(60);
    let lines = told.lines[last..].join("\n");
    let complaint = complaint.as_deref().unwrap_or("none");
    format!(
        "{lines}\n{plan:#?}\nseed {seed}: {complaint}\n\
         again: scripts/simulate --seed {seed}"
    )
}

#[test]
fn what_was_promised_holds_on_every_seed() {
    each(seeds(SEEDS), |seed| {
        let file = std::env::var_os("TRACE");
        let outcome = run(seed, file.is_some());
        if let Some(file) = file {
            let lines = outcome.told.lines.join("\n");
            std::fs::write(file, lines).expect("the file of TRACE can be written");
        }
        match outcome.complaint {
            Some(_) => Err(failure(seed, &outcome)),
            None => Ok(()),
        }
    });
}

#[test]
fn one_seed_is_one_trace() {
    each(seeds(SEEDS.min(TWICE)), |seed| {
        let (first, second) = (run(seed, true).told, run(seed, true).told);
        if first == second {
            return Ok(());
        }
        let lines = first.lines.iter().zip(&second.lines);
        let nth = lines.take_while(|(one, other)| one == other).count();
        let from = nth.saturating_sub(20);
        let told = |told: &trace::Told| told.lines.get(nth).cloned().unwrap_or_default();
        Err(format!(
            "{}\nseed {seed}: line {nth} is\n{}\nand then\n{}",
            first.lines[from..nth].join("\n"),
            told(&first),
            told(&second),
        ))
    });
}
