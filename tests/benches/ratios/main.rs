//! The ratios of docs/PERFORMANCE.md: what Courant does, each beside what it can't beat, in the
//! same run and by turns. `scripts/bench` builds what this needs and runs it; nothing here passes
//! or fails by a time.

#![expect(clippy::unwrap_used, reason = "a bench may end where it stands")]

mod blocked;
mod bucket;
mod bulk;
mod busy;
mod calls;
mod compare;
mod daemon;
mod fetching;
mod following;
mod machine;
mod many;
mod reading;
mod recovering;
mod report;
mod rivals;
mod samples;
mod scaling;
mod sessions;
mod storing;
mod syncing;
mod waking;
mod wire;
mod writing;

use compare::Earlier;
use report::{Case, Report};
use std::process::ExitCode;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// How often each of two is measured, by turns: many short ones, since a machine's other work
    /// comes in bursts.
    pub repeats: usize,
    /// How long one measurement of a rate takes, in seconds.
    pub seconds: f64,
    /// Bytes of the file that is read.
    pub file_len: u64,
    /// Requests of one measurement of a latency.
    pub requests: usize,
    /// Appends that are followed in one measurement.
    pub followed: usize,
    /// Small appends whose bytes on disk are counted, and such of 1 MiB.
    pub small: usize,
    pub large: usize,
}

impl Scale {
    /// Whether what takes long is measured as the design has it.
    pub fn is_full(self) -> bool {
        self.file_len == FULL.file_len
    }
}

const FULL: Scale = Scale {
    repeats: 15,
    seconds: 0.6,
    file_len: 1 << 30,
    requests: 200,
    followed: 100,
    small: 200_000,
    large: 512,
};

const QUICK: Scale = Scale {
    repeats: 5,
    seconds: 0.4,
    file_len: 256 << 20,
    requests: 100,
    followed: 30,
    small: 40_000,
    large: 64,
};

/// Measures rows that share what they need.
type Measure = fn(Scale, &dyn Fn(u32) -> bool) -> Vec<Case>;

/// The rows that can be asked for, by what measures them.
const ROWS: [(&[u32], Measure); 23] = [
    (&[1, 2], reading::measure),
    (&[3], writing::measure),
    (&[4, 5, 6], calls::measure),
    (&[7, 25], many::measure),
    (&[8, 28], bulk::measure_appends),
    (&[9], bulk::measure_reads),
    (&[10], waking::measure),
    (&[11], following::measure),
    (&[12], syncing::measure),
    (&[13], daemon::measure),
    (&[14], fetching::measure),
    (&[15], busy::measure),
    (&[16], recovering::measure),
    (&[17], scaling::measure_idle),
    (&[18], storing::measure),
    (&[19], scaling::measure),
    (&[20], daemon::measure_random),
    (&[21], scaling::measure_walk),
    (&[22], syncing::measure_queued),
    (&[23], blocked::measure),
    (&[24], sessions::measure),
    (&[26], scaling::measure_fragments),
    (&[27], waking::measure_memory),
];

const USAGE: &str = "usage: scripts/bench [--quick] [--compare FILE] [ROW ...], with rows 1 to \
                     28, and a bench.json of an earlier run";

/// What the command line asks for.
struct Asked {
    scale: Scale,
    is_quick: bool,
    /// Empty: all of them.
    rows: Vec<u32>,
    /// What an earlier run wrote.
    earlier: Option<Earlier>,
}

impl Asked {
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Asked> {
        let mut asked = Asked { scale: FULL, is_quick: false, rows: vec![], earlier: None };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // What cargo bench says to every bench.
                "--bench" => {}
                "--quick" => {
                    asked.scale = QUICK;
                    asked.is_quick = true;
                }
                "--compare" => asked.earlier = Some(Earlier::read(arguments.next()?.as_ref())?),
                row => asked.rows.push(known(row.parse().ok()?)?),
            }
        }
        Some(asked)
    }

    fn is_wanted(&self, row: u32) -> bool {
        self.rows.is_empty() || self.rows.contains(&row)
    }
}

fn known(row: u32) -> Option<u32> {
    ROWS.iter().any(|(rows, _)| rows.contains(&row)).then_some(row)
}

fn main() -> ExitCode {
    let Some(asked) = Asked::read(std::env::args().skip(1)) else {
        report::complain(USAGE);
        return ExitCode::from(2);
    };
    let mut report = Report::begin(machine::facts(), asked.is_quick);
    for (rows, measure) in ROWS {
        if rows.iter().any(|row| asked.is_wanted(*row)) {
            report.add(measure(asked.scale, &|row| asked.is_wanted(row)));
        }
    }
    let cases = report.end();
    match asked.earlier.is_none_or(|earlier| earlier.is_kept_by(&cases)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
