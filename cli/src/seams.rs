//! What `main` makes of the world and hands in: the clock, the limits of the process.

use index::{Clock, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;

/// The system's clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// Allows as many open files as the system lets us have: each journal keeps its mirror open, each
/// connection and each mount's handle takes a descriptor.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = ?limit.current, "the limit of open files stays");
    }
}
