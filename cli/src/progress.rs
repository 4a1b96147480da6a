//! Progress of long work, shown on a terminal and nowhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::fs::FileType;
use std::io::{self, IsTerminal};

const KNOWN: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const UNKNOWN: &str = "{msg} {spinner} {bytes} {bytes_per_sec}";
const STEPS: &str = "{msg} {wide_bar} {pos}/{len} {eta}";

/// How far some work is. Gone from the screen when dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Bytes of `total`, where that is known. `is_shown` says no where output would mix with it.
    pub fn bytes(what: &str, total: Option<u64>, is_shown: bool) -> Progress {
        let style = if total.is_some() { KNOWN } else { UNKNOWN };
        Progress::with(ProgressBar::with_draw_target(total, target(is_shown)), style, what)
    }

    /// Steps of `total`.
    pub fn steps(what: &str, total: u64) -> Progress {
        Progress::with(ProgressBar::with_draw_target(Some(total), target(true)), STEPS, what)
    }

    fn with(bar: ProgressBar, style: &str, what: &str) -> Progress {
        bar.set_style(ProgressStyle::with_template(style).expect("the templates above are valid"));
        bar.set_message(what.to_owned());
        Progress(bar)
    }

    pub fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    /// Does something that writes to the terminal, with the bar out of its way.
    pub fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.suspend(work)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn target(is_shown: bool) -> ProgressDrawTarget {
    match is_shown && io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// Whether standard output goes to a file, where it mixes with nothing on the terminal.
pub fn is_output_a_file() -> bool {
    let stat = rustix::fs::fstat(io::stdout());
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}
