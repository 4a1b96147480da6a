//! Who asks: one connection, whichever service its requests are for.

use crate::{Broker, Connection, Error, limits};
use std::sync::Arc;
use tokio::sync::watch;

/// A connection to the broker, as its services see it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    pub broker: Broker,
    /// What it may stage.
    pub connection: Arc<Connection>,
    /// What waits for a journal to grow ends when the port stops.
    pub stop: Stop,
}

impl Caller {
    pub fn new(broker: Broker, stop: Stop) -> Self {
        let connection = broker.connection();
        Caller { broker, connection, stop }
    }
}

/// Whether the port stops. It never goes on again.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// The other end tells it, with true or by being dropped.
    pub fn new() -> (watch::Sender<bool>, Stop) {
        let (sender, receiver) = watch::channel(false);
        (sender, Stop(receiver))
    }

    pub fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is told.
    pub async fn told(&mut self) {
        let _ = self.0.wait_for(|is_told| *is_told).await;
    }
}

/// Waits for what a client says next, but not for ever.
pub async fn patient<T>(words: impl Future<Output = T>) -> Result<T, Error> {
    let seconds = limits::IDLE_MAX.as_secs();
    tokio::time::timeout(limits::IDLE_MAX, words).await.map_err(|_elapsed| Error::Idle { seconds })
}
