//! Which stores are listed ahead of their turn: those of a journal that somebody waits for.
//!
//! At a start every journal is to be listed, and one of ten thousand must not wait for the others.

use crate::stored::refresh;
use crate::{Broker, Error, Served, limits};
use protocol::{Journal, Remedy};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// How often it is looked whether a listing that is under way is over.
const LOOK: Duration = Duration::from_millis(50);

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

    /// Looks at a journal's stores once more, for who asks where they end at this moment: what is
    /// known may be older than what happened to them.
    pub(crate) async fn list_again(&self, served: &Served) -> Result<(), Error> {
        let unlisted = |detail: String, remedy| Error::Unlisted {
            journal: served.journal().clone(),
            detail,
            remedy,
        };
        let listed = async {
            // A listing that somebody else makes may have begun too early.
            while !self.list_now(served).await? {
                sleep(LOOK).await;
            }
            Ok::<(), Error>(())
        };
        match timeout(limits::LISTING_WAIT, listed).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(unlisted(error.to_string(), error.remedy())),
            Err(_elapsed) => Err(unlisted("the listing takes long".to_owned(), Remedy::Later)),
        }
    }

    /// Whether the stores were listed: not while somebody else asks them.
    async fn list_now(&self, served: &Served) -> Result<bool, Error> {
        let stores = &self.shared.stores;
        let entry = served.entry();
        let urls = entry.spec.fragment.stores.iter();
        let permits: Option<Vec<_>> = urls.map(|url| stores.ask_now(url)).collect();
        match permits {
            Some(_held) => refresh(served, stores, self.spread(served.life())).await,
            None => Ok(false),
        }
    }
}
