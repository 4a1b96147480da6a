//! The journals of a store, read straight from its listing: no broker, no specs, no writing.
//!
//! [`naming`] tells which journals there are, `catalog` what is known of them, and a task
//! lists the store again, often where somebody follows. Heads are where the stored fragments end.

mod catalog;
pub mod naming;
mod reading;
mod refresh;
#[cfg(test)]
mod tests;

use crate::journals::{Append, Appended, Journals, Loan, Read, Space, Stat, Wait};
use crate::limits::{BUCKET_INTERVAL, OPEN_FLOWS, PARTED_FLOWS};
use crate::shelf::Shelf;
use crate::{Error, Postfix};
use bytes::Bytes;
use catalog::Catalog;
use index::store::{Places, Store, StoreError};
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, Life, Offset};
use reading::Cursor;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// The journals of one store. It is read-only, and holds them as its last listing has them.
pub struct Bucket {
    shared: Arc<Shared>,
    shelf: Shelf<Cursor>,
    places: Places,
    /// Lists the store again. Ended when the bucket is dropped.
    _refreshing: JoinSet<()>,
}

/// What the refreshing task and readers have in common.
struct Shared {
    store: Store,
    postfix: Postfix,
    catalog: Mutex<Catalog>,
    /// Counts what changed any journal.
    changes: watch::Sender<u64>,
    /// Counts journals that came or went.
    census: watch::Sender<u64>,
    /// Who waits for which journal to grow.
    followed: Mutex<BTreeMap<Journal, usize>>,
    /// The listing is wanted before its time.
    is_wanted: Notify,
}

impl Bucket {
    /// The journals of a store, listed once before this returns and then each `BUCKET_INTERVAL`.
    /// Needs a tokio runtime around it.
    pub async fn open(store: Store, postfix: Postfix) -> Result<Self, Error> {
        Bucket::open_with(store, postfix, BUCKET_INTERVAL).await
    }

    /// As [`open`](Self::open), listed again after each `interval`.
    pub async fn open_with(
        store: Store,
        postfix: Postfix,
        interval: Duration,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            store,
            postfix,
            catalog: Mutex::default(),
            changes: watch::Sender::new(0),
            census: watch::Sender::new(0),
            followed: Mutex::default(),
            is_wanted: Notify::new(),
        });
        shared.refresh().await.map_err(|error| unlisted(&error))?;
        let mut refreshing = JoinSet::new();
        refreshing.spawn(refresh::keep_fresh(shared.clone(), interval));
        let (shelf, places) = (Shelf::new(OPEN_FLOWS), Places::new(PARTED_FLOWS));
        Ok(Bucket { shared, shelf, places, _refreshing: refreshing })
    }

    /// Lists the store again, at once.
    pub async fn refresh(&self) -> Result<(), Error> {
        self.shared.refresh().await.map_err(|error| unlisted(&error))
    }

    /// The URL of the store.
    pub fn url(&self) -> &str {
        self.shared.store.url()
    }

    fn read_only<T: Send + 'static>(&self, journal: &Journal) -> Wait<'static, T> {
        let detail = format!("it is read from its store {}, which takes no writes", self.url());
        let refused = Error::NotAllowed { journal: journal.clone(), detail };
        Box::pin(std::future::ready(Err(refused)))
    }
}

impl Shared {
    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().expect("no holder panics")
    }
}

/// The error of a listing: what a change of the set-up needs is no `Later`.
fn unlisted(error: &StoreError) -> Error {
    match error.remedy() {
        protocol::Remedy::Later | protocol::Remedy::Reroute => Error::Later(error.to_string()),
        protocol::Remedy::Fix | protocol::Remedy::Lost => Error::Unsupported(error.to_string()),
    }
}

impl Journals for Bucket {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        Box::pin(std::future::ready(Ok(self.shared.catalog().list(prefix))))
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(std::future::ready(self.shared.catalog().stat(journal)))
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        self.read_only(&append.journal)
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(self.read_at(read))
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            let mut changes = self.shared.changes.subscribe();
            let _follower = self.shared.follow(journal);
            loop {
                let stat = self.shared.catalog().stat(journal)?;
                if stat.life != life || stat.head > beyond {
                    return Ok(stat);
                }
                let closed = |_| Error::Later("the bucket is closed".to_owned());
                changes.changed().await.map_err(closed)?;
            }
        })
    }

    fn census(&self) -> watch::Receiver<u64> {
        self.shared.census.subscribe()
    }

    /// All that there is comes from the store.
    fn sync<'a>(&'a self, _journal: &'a Journal, _below: Offset) -> Wait<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        self.read_only(journal)
    }

    fn may_create(&self, journal: &Journal) -> Result<(), Error> {
        let detail = "a store that is mounted takes no writes".to_owned();
        Err(Error::NotAllowed { journal: journal.clone(), detail })
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        self.read_only(journal)
    }

    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>> {
        Box::pin(std::future::ready(self.shared.catalog().stored(journal, from, max)))
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        let none = format!("{journal}: a store without a broker has no specs");
        Box::pin(std::future::ready(Err(Error::Unsupported(none))))
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        self.read_only(change.journal())
    }

    fn has_specs(&self) -> bool {
        false
    }

    /// Nothing of a store is local.
    fn lend(&self, _journal: &Journal) -> Option<Loan> {
        None
    }

    /// As large as what the store has, and full: there is no room for new bytes.
    fn space(&self) -> Space {
        Space { total: self.shared.catalog().bytes(), free: 0 }
    }
}
