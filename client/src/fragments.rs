//! Stored fragments, read by a client itself: by a signed URL, else with its own credentials, and
//! where neither works through the broker.
//!
//! [`Fragments`] remembers which way works: one that fails rests, longer each time, so that a
//! store that can't be reached from here costs a try now and then and no more. The rooms: `fetch`
//! is a signed URL, `flow` a fragment that is read ahead, `rests` what failed, `passage` a Read
//! that goes by all three ways, [`audit`] what is wrong with a journal's fragments.

pub mod audit;
mod fetch;
pub(crate) mod flow;
pub(crate) mod passage;
mod rests;

use crate::Error;
use crate::limits::PARTED_FLOWS;
use index::disk::{Disk, ForgetfulDisk};
use index::name;
use index::store::{Content, Places, Store, StoreError, Wish};
use protocol::{Fragment, Journal, Offset};
use reqwest::Client;
use rests::{Resting, Rests};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The ways of one client to stored fragments.
pub struct Fragments {
    /// The root of `file` stores, where it is known.
    files: Option<Arc<dyn Disk>>,
    http: OnceLock<Result<Client, String>>,
    /// By URL. A broker names few.
    stores: Mutex<BTreeMap<String, Store>>,
    rests: Mutex<Rests>,
    places: Places,
}

/// A way to the bytes of a stored fragment, without the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The URL that a broker signed.
    Url,
    /// The client's own credentials, or its `--file-root`.
    Store,
}

impl Fragments {
    /// `files` is the root of `file` stores, where there is one: URLs of such leave it out.
    pub fn new(files: Option<Arc<dyn Disk>>) -> Self {
        let (http, stores, rests) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Fragments { files, http, stores, rests, places: Places::new(PARTED_FLOWS) }
    }

    /// The bytes of a fragment from `from` on, checked, by the first way that works, and which that
    /// is. `url` is the one that the broker gave, or empty. An error is that of the last way; there
    /// may be none to try.
    pub(crate) async fn open(
        &self,
        fragment: &Fragment,
        url: &str,
        from: Offset,
        wish: Wish,
    ) -> Result<(Content, Way), StoreError> {
        let mut last = None;
        for way in [Way::Url, Way::Store] {
            if self.is_resting(&Resting::Way(way, fragment.backing_store.clone())) {
                continue;
            }
            let opened = match way {
                // A URL of files has no server, and leads to what the store has.
                Way::Url if url.is_empty() || url.starts_with("file:") => continue,
                Way::Url => self.fetch(fragment, url, from, wish).await,
                Way::Store => match self.store(&fragment.backing_store) {
                    Some(Ok(store)) => self.places.open(&store, fragment, from, wish).await,
                    Some(Err(error)) => Err(error),
                    None => continue,
                },
            };
            match opened {
                Ok(content) => return Ok((content, way)),
                Err(error) => {
                    self.failed(way, fragment, &error);
                    last = Some(error);
                }
            }
        }
        let detail = "there is no way to it from here (for files, give --file-root)".to_owned();
        let none = || StoreError::Unfetched { name: name::path(fragment), detail };
        Err(last.unwrap_or_else(none))
    }

    async fn fetch(
        &self,
        fragment: &Fragment,
        url: &str,
        from: Offset,
        wish: Wish,
    ) -> Result<Content, StoreError> {
        let http = self.http.get_or_init(index::cloud::http_client).as_ref();
        let unusable = |detail: &String| StoreError::Unfetched {
            name: name::path(fragment),
            detail: detail.clone(),
        };
        let parts = self.places.take(wish);
        fetch::fetch(http.map_err(unusable)?, url, fragment, from, parts).await
    }

    /// The store of a URL, with this client's credentials. `None` where that is one of files whose
    /// root is not known, or none at all.
    pub fn store(&self, url: &str) -> Option<Result<Store, StoreError>> {
        if url.is_empty() || url.starts_with("file:") && self.files.is_none() {
            return None;
        }
        let mut stores = self.stores.lock().expect("no holder panics");
        if let Some(store) = stores.get(url) {
            return Some(Ok(store.clone()));
        }
        // A cloud's store asks nothing of a disk.
        let files = self.files.clone().unwrap_or_else(|| Arc::new(ForgetfulDisk::new()));
        let store = Store::new(url, files);
        if let Ok(store) = &store {
            stores.insert(url.to_owned(), store.clone());
        }
        Some(store)
    }

    /// The store of a URL that somebody gave, which has to be one.
    pub fn given(&self, url: &str) -> Result<Store, Error> {
        let missing = || Error::Unsupported(format!("{url}: give the root of files, --file-root"));
        let store = self.store(url).ok_or_else(missing)?;
        store.map_err(|error| Error::Unsupported(error.to_string()))
    }

    /// A way failed for a fragment: it rests for all of its store, unless it is the object that is
    /// at fault.
    pub(crate) fn failed(&self, way: Way, fragment: &Fragment, error: &StoreError) {
        tracing::debug!(%error, ?way, "a fragment is read another way");
        match error {
            StoreError::Missing { .. } | StoreError::Damaged { .. } => {}
            _ => self.rest(Resting::Way(way, fragment.backing_store.clone())),
        }
    }

    /// A way led to the end of a fragment.
    pub(crate) fn worked(&self, way: Way, fragment: &Fragment) {
        self.rests().forget(&Resting::Way(way, fragment.backing_store.clone()));
        self.rests().forget(&Resting::Journal(fragment.journal.clone()));
    }

    /// Whether a journal's fragments may be asked for, instead of their content.
    pub(crate) fn may_ask(&self, journal: &Journal) -> bool {
        !self.is_resting(&Resting::Journal(journal.clone()))
    }

    /// No way led to a fragment of the journal but the broker.
    pub(crate) fn leave_to_broker(&self, journal: &Journal) {
        self.rest(Resting::Journal(journal.clone()));
    }

    fn is_resting(&self, what: &Resting) -> bool {
        self.rests().is_resting(what)
    }

    fn rest(&self, what: Resting) {
        self.rests().rest(what);
    }

    fn rests(&self) -> std::sync::MutexGuard<'_, Rests> {
        self.rests.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests;
