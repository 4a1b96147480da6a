//! The fragment stores in use, by URL, and how often one that fails is asked.

use crate::limits;
use index::disk::Disk;
use index::store::{Store, StoreError};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub struct Stores {
    files: Arc<dyn Disk>,
    opened: Mutex<BTreeMap<String, Opened>>,
}

#[derive(Debug)]
struct Opened {
    store: Store,
    /// Failures since the last success.
    failures: u32,
    /// It failed, and is not asked before then.
    rests_until: Option<Instant>,
}

/// The pause after so many failures in a row: doubling, up to a bound.
pub(crate) fn pause(failures: u32) -> Duration {
    let doubled = limits::RETRY_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(limits::RETRY_MAX)
}

impl Stores {
    /// No stores yet but those `given`; others are opened by their URLs when a spec names them.
    pub(crate) fn new(files: Arc<dyn Disk>, given: &[Store]) -> Self {
        let opened = given.iter().map(|store| {
            let opened = Opened { store: store.clone(), failures: 0, rests_until: None };
            (store.url().to_owned(), opened)
        });
        Stores { files, opened: Mutex::new(opened.collect()) }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Opened>> {
        self.opened.lock().expect("no holder of the stores panics")
    }

    /// The store of a spec's URL, opened when it is first named.
    pub fn get(&self, url: &str) -> Result<Store, StoreError> {
        let mut opened = self.opened();
        if let Some(known) = opened.get(url) {
            return Ok(known.store.clone());
        }
        let store = Store::new(url, self.files.clone())?;
        let new = Opened { store: store.clone(), failures: 0, rests_until: None };
        opened.insert(url.to_owned(), new);
        Ok(store)
    }

    /// Whether the store may be asked: it did not fail, or has rested.
    pub(crate) fn may_ask(&self, url: &str) -> bool {
        let rests_until = self.opened().get(url).and_then(|known| known.rests_until);
        rests_until.is_none_or(|until| Instant::now() >= until)
    }

    /// The store answered.
    pub(crate) fn succeeded(&self, url: &str) {
        if let Some(known) = self.opened().get_mut(url)
            && known.failures > 0
        {
            tracing::info!(store = url, failures = known.failures, "the store works again");
            (known.failures, known.rests_until) = (0, None);
        }
    }

    /// The store failed: it rests, longer each time. Says so at the first failure only.
    pub(crate) fn failed(&self, url: &str, error: &StoreError) {
        let mut opened = self.opened();
        let Some(known) = opened.get_mut(url) else { return };
        // Several requests that were under way together fail together, and count once.
        if known.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        known.failures = known.failures.saturating_add(1);
        known.rests_until = Some(Instant::now() + pause(known.failures));
        if known.failures == 1 {
            tracing::warn!(store = url, %error, "the store fails; bytes wait for it locally");
        }
    }

    /// The stores in use, and how often each failed since it last worked.
    pub fn health(&self) -> Vec<(String, u32)> {
        self.opened().iter().map(|(url, known)| (url.clone(), known.failures)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::disk::ForgetfulDisk;

    #[test]
    fn pauses_double_up_to_a_bound() {
        // Case: failures in a row, pause in milliseconds
        for (failures, expected) in [(1, 250), (2, 500), (5, 4000), (9, 60_000), (1000, 60_000)] {
            assert_eq!(pause(failures), Duration::from_millis(expected), "{failures}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_rests() {
        let stores = Stores::new(Arc::new(ForgetfulDisk::new()), &[]);
        let url = "file:///";
        stores.get(url).expect("a file store needs nothing");
        let error = StoreError::Missing { store: url.to_owned(), name: "x".to_owned() };
        assert!(stores.may_ask(url));
        stores.failed(url, &error);
        stores.failed(url, &error);
        assert_eq!(stores.health(), [(url.to_owned(), 1)], "failures together count once");
        assert!(!stores.may_ask(url));
        tokio::time::advance(pause(1)).await;
        assert!(stores.may_ask(url));
        stores.succeeded(url);
        assert_eq!(stores.health(), [(url.to_owned(), 0)]);
    }
}
