//! Appends that are pushed, and go over a session to the broker: joined in groups by their
//! journals, several of them under way, each made once.
//!
//! [`Lanes`] are what was pushed and is not answered, by journals; they know nothing of networks.
//! One task ([`driver`]) sees them through: over a session where the broker has them, else group by
//! group with Append. What was sent and not answered when a connection broke is sent again as it
//! was, in the same groups, so that the broker knows them.

mod driver;
mod lane;
mod lanes;
mod outgoing;
mod plain;
mod receipt;
#[cfg(test)]
mod tests;

pub use receipt::Receipt;

use crate::{Append, Durability, Error, Remote};
use lanes::{Lanes, Pushed};
use protocol::{Journal, Life};
use receipt::Done;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What all groups of a lane are appended by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Terms {
    durability: Option<Durability>,
    life: Option<Life>,
    rate_wait: Option<Duration>,
}

impl Terms {
    fn of(append: &Append) -> Self {
        let Append { durability, life, rate_wait, .. } = append;
        Terms { durability: *durability, life: *life, rate_wait: *rate_wait }
    }
}

/// What the task of a session and those who push share.
struct Shared {
    remote: Arc<Remote>,
    id: [u8; 16],
    patience: Duration,
    lanes: Mutex<Lanes>,
    /// Something is unanswered, after nothing was.
    begun: Notify,
    /// A time to look at has come nearer.
    turned: Notify,
    /// What is under way on this connection was given up.
    cut: Notify,
    /// There is room again.
    freed: Notify,
}

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().expect("no holder of the lanes panics")
    }

    /// Lets those go on who wait for room.
    fn freed(&self, bytes: usize) {
        if bytes > 0 {
            self.freed.notify_waiters();
        }
    }
}

/// One writer's appends under way. Dropping it gives up what is not answered.
pub(crate) struct Session {
    shared: Arc<Shared>,
    task: Mutex<Option<AbortHandle>>,
}

impl Session {
    pub fn new(remote: Arc<Remote>, id: [u8; 16], patience: Duration) -> Self {
        let shared = Shared {
            remote,
            id,
            patience,
            lanes: Mutex::default(),
            begun: Notify::new(),
            turned: Notify::new(),
            cut: Notify::new(),
            freed: Notify::new(),
        };
        Session { shared: Arc::new(shared), task: Mutex::default() }
    }

    /// Takes an append that [`may be joined`](Session::takes) with others, when there is room for
    /// it; `None` where there are too many journals. Needs a tokio runtime around it.
    pub async fn push(&self, append: &Append) -> Option<Receipt> {
        loop {
            // Made before the look, it hears of all that is freed after it.
            let freed = self.shared.freed.notified();
            match self.try_push(append) {
                Pushed::Taken(receipt) => return Some(receipt),
                Pushed::Behind(last) => drop(last.await),
                Pushed::Full => freed.await,
                Pushed::TooMany => return None,
            }
        }
    }

    fn try_push(&self, append: &Append) -> Pushed {
        let mut lanes = self.shared.lanes();
        let was_idle = lanes.is_idle();
        let pushed = lanes.push(append, Instant::now);
        if was_idle && !lanes.is_idle() {
            drop(lanes);
            self.start();
            self.shared.begun.notify_one();
            self.shared.turned.notify_one();
        }
        pushed
    }

    /// The task begins with the first append.
    fn start(&self) {
        let mut task = self.task.lock().expect("no holder of the task panics");
        task.get_or_insert_with(|| tokio::spawn(driver::run(self.shared.clone())).abort_handle());
    }

    /// Waits until all that was pushed to a journal is answered. Fails where it takes no appends
    /// since one was refused.
    pub async fn settled(&self, journal: &Journal) -> Result<(), Error> {
        let last = self.shared.lanes().last_of(journal);
        if let Some(last) = last {
            drop(last.await);
        }
        self.shared.lanes().failed(journal).map_or(Ok(()), Err)
    }

    /// Waits until all that was pushed is answered, and lets journals take appends again after one
    /// was refused. Fails with the first refusal, by the order of the journals.
    pub async fn flush(&self) -> Result<(), Error> {
        let last: Vec<Done> = self.shared.lanes().all_last();
        for done in last {
            drop(done.await);
        }
        self.shared.lanes().forgive()
    }

    /// Lets a journal take appends again, if nothing that was pushed to it is unanswered.
    pub fn forgive(&self, journal: &Journal) {
        self.shared.lanes().forgive_one(journal);
    }

    /// Whether an append may be joined with others: it is short, and depends on nothing.
    pub fn takes(append: &Append) -> bool {
        append.staged.is_none()
            && append.offset.is_none()
            && append.writer.is_none()
            && append.check_registers.is_none()
            && append.union_registers.is_empty()
            && append.subtract_registers.is_empty()
            && (1..=crate::limits::GROUP_LEN).contains(&append.content.len())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let task = self.task.lock().expect("no holder of the task panics");
        if let Some(task) = &*task {
            task.abort();
        }
        // What sends ends too: it would keep the connection for ever.
        self.shared.lanes().disconnect(&Error::Unknown);
    }
}
