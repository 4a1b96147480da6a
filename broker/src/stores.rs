//! The fragment stores in use, by URL, and how often one that fails is asked.
//!
//! Each put and each listing is a check of the store's health, so there are no others (Gazette
//! writes a probe every half hour, and has appends wait for it). A store that fails rests, and then
//! one alone asks it: when it works again, everything that waits goes on at once.

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
    /// Keeps the pauses of many brokers apart.
    entropy: u64,
    opened: Mutex<BTreeMap<String, Opened>>,
}

#[derive(Debug)]
struct Opened {
    store: Store,
    /// Failures since the last success.
    failures: u32,
    /// It failed, and is not asked before then.
    rests_until: Option<Instant>,
    /// Somebody asks it after its rest.
    is_asked: bool,
}

impl Opened {
    fn new(store: Store) -> Self {
        Opened { store, failures: 0, rests_until: None, is_asked: false }
    }

    fn may_be_asked(&self) -> bool {
        !self.is_asked && self.rests_until.is_none_or(|until| Instant::now() >= until)
    }
}

/// The right to ask a store. While one that failed is asked, nobody else has it.
#[derive(Debug)]
pub(crate) struct Permit<'s> {
    stores: &'s Stores,
    /// Of a store that failed.
    url: Option<String>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(url) = &self.url
            && let Some(known) = self.stores.opened().get_mut(url)
        {
            known.is_asked = false;
        }
    }
}

/// A number in 0..=1023 that is as good as chance, and the same for the same seed.
pub(crate) fn spread(seed: u64) -> u32 {
    u32::try_from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54).expect("ten bits are left")
}

/// The pause after so many failures in a row: doubling, up to a bound.
pub(crate) fn pause(failures: u32) -> Duration {
    let doubled = limits::RETRY_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(limits::RETRY_MAX)
}

impl Stores {
    /// No stores yet but those `given`; others are opened by their URLs when a spec names them.
    pub(crate) fn new(files: Arc<dyn Disk>, given: &[Store], entropy: u64) -> Self {
        let opened = given.iter().map(|store| (store.url().to_owned(), Opened::new(store.clone())));
        Stores { files, entropy, opened: Mutex::new(opened.collect()) }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Opened>> {
        self.opened.lock().expect("no holder of the stores panics")
    }

    /// The store of a spec's URL, opened when it is first named.
    pub fn get(&self, url: &str) -> Result<Store, StoreError> {
        let store = self.open(url)?;
        // Of two that open it at once the first one stays.
        let mut opened = self.opened();
        let known = opened.entry(url.to_owned()).or_insert_with(|| Opened::new(store));
        Ok(known.store.clone())
    }

    /// The store of any URL. One that no spec names is not kept: whoever may ask for its health
    /// could name any number of them.
    pub fn open(&self, url: &str) -> Result<Store, StoreError> {
        if let Some(known) = self.opened().get(url) {
            return Ok(known.store.clone());
        }
        Store::new(url, self.files.clone())
    }

    /// Whether the store may be asked: it did not fail, or has rested.
    pub(crate) fn may_ask(&self, url: &str) -> bool {
        self.opened().get(url).is_none_or(Opened::may_be_asked)
    }

    /// The right to ask the store, for as long as that takes: `None` while it rests, or while
    /// somebody else finds out whether it works again.
    pub(crate) fn ask(&self, url: &str) -> Option<Permit<'_>> {
        let mut opened = self.opened();
        let Some(known) = opened.get_mut(url) else {
            return Some(Permit { stores: self, url: None });
        };
        if !known.may_be_asked() {
            return None;
        }
        known.is_asked = known.failures > 0;
        let url = known.is_asked.then(|| url.to_owned());
        Some(Permit { stores: self, url })
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
        let spread = spread(self.entropy ^ u64::from(known.failures));
        let pause = pause(known.failures).mul_f64(0.8 + 0.2 * f64::from(spread) / 1024.0);
        known.rests_until = Some(Instant::now() + pause);
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
        for (failures, expected) in [(1, 250), (2, 500), (5, 4000), (7, 16_000), (1000, 16_000)] {
            assert_eq!(pause(failures), Duration::from_millis(expected), "{failures}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_rests() {
        let stores = Stores::new(Arc::new(ForgetfulDisk::new()), &[], 7);
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
        // Case: one alone asks, and leaves the right to others when it is done.
        let permit = stores.ask(url).expect("it has rested");
        assert!(!stores.may_ask(url) && stores.ask(url).is_none());
        drop(permit);
        assert!(stores.may_ask(url));
        stores.succeeded(url);
        // Case: many ask one that works.
        let permits = [stores.ask(url), stores.ask(url)];
        assert!(permits.iter().all(Option::is_some));
        assert_eq!(stores.health(), [(url.to_owned(), 0)]);
    }
}
