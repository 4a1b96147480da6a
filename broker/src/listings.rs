//! Which stores are listed ahead of their turn: those of a journal that somebody waits for.
//!
//! At a start every journal is to be listed, and one of ten thousand must not wait for the others.

use crate::{Broker, Error, Served};
use protocol::Journal;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// What the driver of listings is told.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    /// Bounded by the journals there are.
    wanted: Mutex<BTreeSet<Journal>>,
    told: Notify,
}

impl Listings {
    fn wanted(&self) -> MutexGuard<'_, BTreeSet<Journal>> {
        self.wanted.lock().expect("no holder of the wanted listings panics")
    }

    /// A journal was created: there is something to list.
    pub fn look(&self) {
        self.told.notify_one();
    }

    /// Somebody waits for this journal's first listing.
    fn want(&self, journal: Journal) {
        self.wanted().insert(journal);
        self.told.notify_one();
    }

    /// A journal that somebody waits for.
    pub fn next_wanted(&self) -> Option<Journal> {
        self.wanted().pop_first()
    }

    /// Waits until something is told.
    pub async fn told(&self) {
        self.told.notified().await;
    }
}

impl Broker {
    /// Waits for the first listing of a journal's stores, which is made before those that nobody
    /// waits for.
    pub(crate) async fn wait_listed(&self, served: &Served) -> Result<(), Error> {
        if served.stored().is_listed() {
            return Ok(());
        }
        self.shared.listings.want(served.journal().clone());
        served.stored().wait_listed(served).await
    }
}
