//! Row 15: small appends to one journal, while fragments of another are compressed, put and freed,
//! against the same while nothing else happens.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::Samples;
use crate::storing;
use crate::syncing::quantile;
use crate::wire::{Appends, Wire};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tests::patience;
use tests::world::{self, Up};

/// Bytes of an append that is measured, and of one that makes work.
const LEN: usize = 100;
const LOAD: usize = 1 << 20;

/// Local bytes beyond which what is stored is freed, and those of a fragment.
const BUDGET: &str = "64M";
const FRAGMENT: usize = 16 << 20;

/// Between two appends of the load: some 25 MB a second, so that it is the work behind them that is
/// measured, and not that a disk is full.
const PACE: Duration = Duration::from_millis(40);

/// How long the load runs before anything is measured: several fragments are on their way.
const WARMING: Duration = Duration::from_secs(3);

/// Appends of a sample are so many times those of a measured latency: the slowest hundredth shall
/// be more than a few.
const TIMES: usize = 20;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut up = Up::with(&["--durability", "memory", "--local-budget", BUDGET]);
    up.bash("echo begin >> log", &[]).ok();
    world::apply(&up, "busy", FRAGMENT, "ZSTANDARD");
    let wire = Wire::new();
    let mut appends = wire.appends(&up.url(), "local/log", &Bytes::from(vec![b'x'; LEN]));
    let mut load = wire.appends(&up.url(), "local/busy", &Bytes::from(storing::noise(LOAD)));
    let (mut middle, mut slow) = (Samples::default(), Samples::default());
    for _ in 0..scale.repeats.min(TURNS) {
        machine::until_idle(up.daemon().id());
        let idle = latencies(&wire, &mut appends, scale.requests * TIMES);
        let busy = under_load(&mut load, || latencies(&wire, &mut appends, scale.requests * TIMES));
        for (samples, part) in [(&mut middle, 0.5), (&mut slow, 0.99)] {
            samples.ours.push(quantile(&busy, part));
            samples.theirs.push(quantile(&idle, part));
        }
    }
    let case = |name, samples, wanted| Case {
        row: 15,
        what: format!("{LEN}-byte Append while fragments are stored, {name}"),
        against: "the same while nothing else happens",
        unit: "us",
        samples,
        wanted,
    };
    vec![case("p50", middle, Wanted::Told), case("p99", slow, Wanted::AtMost(3.0))]
}

/// A turn waits for all that is to be stored.
const TURNS: usize = 5;

/// Microseconds, ascending.
fn latencies(wire: &Wire, appends: &mut Appends, count: usize) -> Vec<f64> {
    let [mut all] = wire.rounds(count, async || [appends.timed().await * 1e6]);
    all.sort_by(f64::total_cmp);
    all
}

fn under_load<T>(load: &mut Appends, measure: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    // Threads of its own, as another machine's client would have.
    let wire = Wire::new();
    thread::scope(|scope| {
        let loading = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                wire.run_one(load.timed());
                patience::pause(PACE);
            }
        });
        patience::pause(WARMING);
        let measured = measure();
        stop.store(true, Ordering::Relaxed);
        loading.join().unwrap();
        measured
    })
}
