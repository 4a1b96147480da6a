//! Signals that end a daemon: the first one kindly, the second one at once.

use crate::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT and SIGTERM.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From here on these signals no longer end the process by themselves.
    pub fn take() -> Result<Self, Error> {
        let take = |kind| signal(kind).map_err(Error::io("take signals"));
        Ok(Signals {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// The name of the next signal.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
