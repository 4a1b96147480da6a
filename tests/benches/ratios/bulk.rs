//! Rows 8 and 9: much content through the API, in and out, against a service that does the least
//! with it. Row 28: what of a core a megabyte costs.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::rivals::NullBroker;
use crate::samples::{Samples, since};
use crate::storing;
use crate::wire::{Appends, Wire};
use bytes::Bytes;
use tests::shell;
use tests::world::Up;
use tokio::time::Instant;

/// Appends of a MiB that are in flight.
const IN_FLIGHT: usize = 4;

/// Content and a name for it.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    durability: &'static str,
    len: usize,
    in_flight: usize,
}

/// Rows 8 and 28.
pub fn measure_appends(scale: Scale, is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let all = usize::try_from(scale.file_len).unwrap();
    let (wire, null) = (Wire::new(), NullBroker::start());
    let one = Load { name: "one append", durability: "memory", len: all, in_flight: 1 };
    let many = Load { name: "1 MiB each", len: 1 << 20, in_flight: IN_FLIGHT, ..one };
    let loads =
        [one, many, Load { durability: "disk", ..one }, Load { durability: "disk", ..many }];
    let (mut cases, mut costs) = (Vec::new(), Vec::new());
    for load in loads {
        // A data directory each: what the one leaves to be done is not done by the other.
        let mut up = Up::with(&["--durability", load.durability]);
        storing::create_without_store(&up);
        let content = Bytes::from(storing::noise(load.len));
        let ours = wire.appends(&up.url(), "local/log", &content);
        let theirs = wire.appends(&null.url(), "kept/log", &content);
        let count = all / load.len;
        let rate = |appends: &Appends| {
            let begun = Instant::now();
            wire.make(appends, load.in_flight, count);
            all as f64 / 1e6 / since(begun)
        };
        let mut cost = Vec::new();
        let process = up.daemon().id();
        let samples = Samples::by_turns(
            scale.repeats.min(TURNS),
            || {
                let before = machine::ticks(process);
                let rate = rate(&ours);
                cost.push((machine::ticks(process) - before) as f64 * 10.0 / (all as f64 / 1e6));
                rate
            },
            || rate(&theirs),
        );
        cases.push(Case {
            row: 8,
            what: format!("{} MiB appended, {}, {}", all >> 20, load.name, load.durability),
            against: "a service that hashes and writes them",
            unit: "MB/s",
            samples,
            // The service syncs nothing.
            wanted: match load.durability {
                "memory" => Wanted::AtLeast(0.7),
                _ => Wanted::Told,
            },
        });
        costs.push(Case {
            row: 28,
            what: format!("core time a MB appended, {}, {}", load.name, load.durability),
            against: "",
            unit: "ms",
            samples: Samples { ours: cost, theirs: Vec::new() },
            wanted: Wanted::Told,
        });
    }
    let both = [(8, cases), (28, costs)];
    both.into_iter().filter(|(row, _)| is_wanted(*row)).flat_map(|(_, cases)| cases).collect()
}

/// A turn writes a GiB each: a few tell it.
const TURNS: usize = 5;

/// Row 9.
pub fn measure_reads(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut up = Up::start();
    let (wire, null) = (Wire::new(), NullBroker::start());
    let len = i64::try_from(scale.file_len).unwrap();
    let line = "head -c $1 /dev/zero | tr '\\0' x >> \"$2\"";
    let file = up.file("log");
    shell::bash(up.data(), line, &[&len.to_string(), file.to_str().unwrap()]).ok();
    machine::until_idle(up.daemon().id());
    let (mut ours, mut theirs) = (wire.asking(&up.url()), wire.asking(&null.url()));
    let mut samples = Samples::default();
    for _ in 0..scale.repeats {
        for (rates, asking) in [(&mut samples.ours, &mut ours), (&mut samples.theirs, &mut theirs)]
        {
            let read = async || {
                let begun = Instant::now();
                assert_eq!(asking.read_all("local/log", 0, len).await, scale.file_len);
                [since(begun)]
            };
            let [seconds] = wire.rounds(1, read);
            rates.push(scale.file_len as f64 / 1e6 / seconds[0]);
        }
    }
    vec![Case {
        row: 9,
        what: format!("{} MiB read by the API, local", len >> 20),
        against: "a server-streaming RPC of as many bytes",
        unit: "MB/s",
        samples,
        wanted: Wanted::AtLeast(0.8),
    }]
}
