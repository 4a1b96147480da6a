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
    keeps_all: bool,
    is_ended: bool,
    kept: VecDeque<String>,
}

/// The last lines of a run, or all.
#[derive(Debug, Default)]
pub struct Told {
    pub lines: Vec<String>,
}

impl Trace {
    /// Begins at this moment of the runtime's time, which is paused.
    pub fn begin(keeps_all: bool) -> Self {
        let kept = VecDeque::new();
        let (begun, is_ended) = (Instant::now(), false);
        Trace(Arc::new(Mutex::new(Lines { begun, keeps_all, is_ended, kept })))
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
        lines.kept.push_back(line);
    }

    /// Nothing is added any more: what follows a complaint says nothing.
    pub fn end(&self) {
        self.lines().is_ended = true;
    }

    pub fn told(&self) -> Told {
        Told { lines: self.lines().kept.iter().cloned().collect() }
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
