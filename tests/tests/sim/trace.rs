//! What happened, line by line: the same seed writes the same lines.

use index::Clock;
use std::collections::VecDeque;
use std::fmt::{Arguments, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Lines that are kept for who looks at a failure.
const LAST: usize = 400;

/// The time of day at which every simulation begins, in seconds since 1970.
const BEGIN: u64 = 1_795_910_400;

/// See the module. Clones share the lines.
#[derive(Debug, Clone)]
pub struct Trace(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    begun: Instant,
    hash: u64,
    count: u64,
    keeps_all: bool,
    is_ended: bool,
    kept: VecDeque<String>,
}

/// All of a run in short, or in full.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub hash: u64,
    pub count: u64,
    /// The last lines, or all.
    pub lines: Vec<String>,
}

impl Trace {
    /// Begins at this moment of the runtime's time, which is paused.
    pub fn begin(keeps_all: bool) -> Self {
        let kept = VecDeque::new();
        let hash = 0xcbf2_9ce4_8422_2325;
        let (begun, is_ended) = (Instant::now(), false);
        Trace(Arc::new(Mutex::new(Lines { begun, hash, count: 0, keeps_all, is_ended, kept })))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().expect("no holder panics")
    }

    pub fn line(&self, text: Arguments) {
        let mut lines = self.lines();
        if lines.is_ended {
            return;
        }
        let at = lines.begun.elapsed().as_millis();
        let mut line = match lines.kept.len() >= LAST && !lines.keeps_all {
            true => lines.kept.pop_front().unwrap_or_default(),
            false => String::new(),
        };
        line.clear();
        write!(line, "{at:>7} {text}").expect("a string takes every byte");
        for byte in line.bytes() {
            lines.hash = (lines.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        lines.count += 1;
        lines.kept.push_back(line);
    }

    /// Nothing is added any more: what follows a complaint says nothing.
    pub fn end(&self) {
        self.lines().is_ended = true;
    }

    pub fn told(&self) -> Told {
        let lines = self.lines();
        let kept = lines.kept.iter().cloned().collect();
        Told { hash: lines.hash, count: lines.count, lines: kept }
    }

    /// The time of day in the simulation.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(Simulated { begun: self.lines().begun })
    }
}

/// A fixed begin, and the runtime's time since.
#[derive(Debug)]
struct Simulated {
    begun: Instant,
}

impl Clock for Simulated {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(BEGIN) + self.begun.elapsed()
    }
}
