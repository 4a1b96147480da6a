//! Signals that end a daemon: the first one kindly, a later one at once.

use crate::Error;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// A signal that comes so soon after the first is the same wish, told twice: `timeout` and some
/// supervisors signal their child and then its group, and the child is in it.
const ECHO_MAX: Duration = Duration::from_secs(1);

/// SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    first: Option<Instant>,
}

impl Signals {
    /// From here on these signals no longer end the process by themselves.
    pub fn take() -> Result<Self, Error> {
        let take = |kind| signal(kind).map_err(Error::io("take signals"));
        Ok(Signals {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
            first: None,
        })
    }

    /// The name of the next signal.
    pub async fn next(&mut self) -> &'static str {
        let name = tokio::select! {
            biased;
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        };
        self.first.get_or_insert_with(Instant::now);
        name
    }

    /// Waits for a signal of somebody who was patient: one that is neither the first nor its echo.
    pub async fn insistent(&mut self) {
        loop {
            self.next().await;
            if self.first.is_some_and(|first| first.elapsed() > ECHO_MAX) {
                return;
            }
        }
    }
}
