//! Watching callers that wait for signals, so that they can be killed.
//!
//! fuser has no hook for the kernel's INTERRUPT: without this a caller that waits for an answer
//! ignores even SIGKILL.

use crate::proc::SignalWatch;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The shortest time between two looks at everyone.
const PACE_MIN: Duration = Duration::from_millis(15);

/// A look may take one part in this many of the time: 5 % of a core, however many are held.
const SHARE: u32 = 20;

/// The callers that are watched at this moment.
#[derive(Debug, Default)]
pub struct Watches {
    held: Mutex<Held>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Held {
    callers: BTreeMap<u64, Caller>,
    watched: u64,
}

/// For which signals a caller is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Any that it will see: for requests that a program expects to be interrupted in.
    Signalled,
    /// Only one that ends it: a write to a file never fails with `EINTR` elsewhere either.
    Dying,
}

#[derive(Debug, Clone)]
struct Signals {
    watch: Arc<SignalWatch>,
    until: Until,
}

impl Signals {
    fn let_go(&self) -> bool {
        match self.until {
            Until::Signalled => self.watch.signal_waits(),
            Until::Dying => self.watch.is_dying(),
        }
    }
}

#[derive(Debug)]
struct Caller {
    signals: Signals,
    tell: oneshot::Sender<()>,
}

impl Watches {
    /// Watches a thread until the guard is dropped.
    pub fn watch(self: &Arc<Self>, thread: u32, until: Until) -> Watched {
        let signals = Signals { watch: Arc::new(SignalWatch::of(thread)), until };
        let (tell, told) = oneshot::channel();
        let mut held = self.held();
        held.watched += 1;
        let ticket = held.watched;
        held.callers.insert(ticket, Caller { signals, tell });
        drop(held);
        self.arrived.notify_one();
        Watched { watches: self.clone(), ticket, told }
    }

    /// How many callers are watched.
    pub fn len(&self) -> usize {
        self.held().callers.len()
    }

    /// Looks at the held callers again and again. It ends only by being dropped.
    pub async fn run(self: Arc<Self>) {
        loop {
            if self.len() == 0 {
                self.arrived.notified().await;
            }
            let began = Instant::now();
            let watches = self.clone();
            // Each look is a system call or two for each caller: too long for an async thread.
            let looked = tokio::task::spawn_blocking(move || watches.look()).await;
            if let Err(error) = looked {
                tracing::error!(%error, "a look at held callers panicked");
            }
            tokio::time::sleep(PACE_MIN.max(began.elapsed() * (SHARE - 1))).await;
        }
    }

    /// Tells those who have a signal. The lock is not held while /proc is read.
    fn look(&self) {
        let callers = || -> Vec<(u64, Signals)> {
            let held = self.held();
            held.callers.iter().map(|(ticket, caller)| (*ticket, caller.signals.clone())).collect()
        };
        for (ticket, signals) in callers() {
            if signals.let_go()
                && let Some(caller) = self.held().callers.remove(&ticket)
            {
                // Whoever is let go for another reason meanwhile does not listen.
                let _ = caller.tell.send(());
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("no holder panics")
    }
}

/// One caller that is watched.
#[derive(Debug)]
pub struct Watched {
    watches: Arc<Watches>,
    ticket: u64,
    told: oneshot::Receiver<()>,
}

impl Watched {
    /// Waits until the caller has such a signal.
    pub async fn signalled(&mut self) {
        // The sender is dropped only with `self`, or after it has told.
        let _told = (&mut self.told).await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watches.held().callers.remove(&self.ticket);
    }
}
