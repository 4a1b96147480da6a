//! Broker, clients, mounts and mirrors in one process, on one thread, on a seed: the clock, the
//! disk, the store, the network and chance come through the seams, and all of them fail.
//!
//! `SEED=n` runs one seed alone, `SEEDS=n` so many, from `FROM`; with `TRACE=FILE` all that
//! happened is written there. docs/RELIABILITY.md says what is
//! promised and tested.

mod actors;
mod chance;
mod disk;
mod entropy;
mod model;
mod network;
mod plan;
mod run;
mod store;
mod trace;
mod weather;
mod world;

use run::{Outcome, run};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that are run unless the environment says otherwise.
const SEEDS: u64 = 300;
/// Seeds that are run twice.
const TWICE: u64 = 12;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("SEED, SEEDS and FROM are numbers"))
}

fn seeds(most: u64) -> Range<u64> {
    let from = number("FROM").unwrap_or(0);
    from..from + number("SEEDS").unwrap_or(most)
}

/// A process that runs one seed: what is global to a process, such as tokio's own chance, begins
/// anew with each.
fn process(seed: u64, trace: Option<&Path>) -> Output {
    let program = std::env::current_exe().expect("the system knows what it runs");
    let mut command = Command::new(program);
    command.args(["--exact", "--nocapture", "what_was_promised_holds_on_every_seed"]);
    command.env("SEED", seed.to_string()).env("RUST_BACKTRACE", "0");
    if let Some(trace) = trace {
        command.env("TRACE", trace);
    }
    command.output().expect("this program starts once more")
}

/// Judges seeds on all processors. The failure of the lowest seed that was seen to fail ends it.
fn each(seeds: Range<u64>, judge: impl Fn(u64) -> Result<(), String> + Sync) {
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(None::<(u64, String)>);
    let judge_all = || {
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
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(judge_all))));
    if let Some((_, text)) = failed.into_inner().expect("no holder panics") {
        panic!("{text}");
    }
}

/// Runs one seed in this process, on a thread that nothing ran on before.
fn run_here(seed: u64) {
    let trace = std::env::var_os("TRACE");
    let keeps_all = trace.is_some();
    run::note_panics();
    let outcome = std::thread::spawn(move || run(seed, keeps_all)).join();
    let _ = std::panic::take_hook();
    let outcome = outcome.expect("panics are noted");
    if let Some(trace) = trace {
        let lines = outcome.told.lines.join("\n");
        fs::write(trace, lines).expect("the file of TRACE can be written");
    }
    assert!(outcome.complaint.is_none(), "{}", failure(seed, &outcome));
}

/// What a failed seed says: the last of what happened, what the seed decided, the complaint, and
/// how to run it again.
fn failure(seed: u64, outcome: &Outcome) -> String {
    let Outcome { plan, complaint, told } = outcome;
    let last = told.lines.len().saturating_sub(60);
    let lines = told.lines[last..].join("\n");
    let complaint = complaint.as_deref().unwrap_or("none");
    format!(
        "\n{lines}\n{plan:#?}\nseed {seed}: {complaint}\nagain: scripts/simulate --seed {seed}\n"
    )
}

#[test]
fn what_was_promised_holds_on_every_seed() {
    if let Some(seed) = number("SEED") {
        return run_here(seed);
    }
    each(seeds(SEEDS), |seed| {
        let ran = process(seed, None);
        match ran.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
        }
    });
}

#[test]
fn one_seed_is_one_trace() {
    let dir = tempfile::tempdir().expect("a directory for traces");
    let few = seeds(TWICE);
    each(few.start..few.end.min(few.start + TWICE), |seed| {
        let trace = |nth: u32| {
            let path = dir.path().join(format!("{seed}-{nth}"));
            // Whether it fails is the other test's business.
            process(seed, Some(&path));
            fs::read_to_string(path).expect("it was written")
        };
        let (first, second) = (trace(1), trace(2));
        if first == second {
            return Ok(());
        }
        let equal = first.lines().zip(second.lines()).take_while(|(one, other)| one == other);
        let nth = equal.count();
        let told = |trace: &str| trace.lines().nth(nth).unwrap_or("its end").to_owned();
        let before: Vec<&str> = first.lines().take(nth).skip(nth.saturating_sub(20)).collect();
        Err(format!(
            "{}\nseed {seed}: line {nth} is\n{}\nand then\n{}",
            before.join("\n"),
            told(&first),
            told(&second),
        ))
    });
}
