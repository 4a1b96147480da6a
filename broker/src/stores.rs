//! The fragment stores in use, by URL, and how often one that fails is asked.
//!
//! Each put and each listing is a check of the store's health, so there are no others (Gazette
//! writes a probe every half hour, and has appends wait for it). A store that fails rests, and then
//! one alone asks it: when it works again, everything that waits goes on at once.

mod metered;

use crate::limits;
use crate::metrics::{Meter, Request, Requests};
use index::disk::Disk;
use index::store::{Store, StoreError};
use metered::Metered;
use protocol::Fragment;
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
    requests: Requests,
    opened: Mutex<BTreeMap<String, Opened>>,
}

#[derive(Debug)]
struct Opened {
    store: Store,
    meter: Meter,
    /// Failures since the last success.
    failures: u32,
    /// What the last of them was, up to `REASON_MAX` characters.
    reason: Option<String>,
    /// It failed, and is not asked before then.
    rests_until: Option<Instant>,
    /// Somebody asks it after its rest.
    is_asked: bool,
}

impl Opened {
    fn new(store: Store, meter: Meter) -> Self {
        let metered = meter.clone();
        let store = store.through(|objects| Arc::new(Metered::new(objects, metered)));
        Opened { store, meter, failures: 0, reason: None, rests_until: None, is_asked: false }
    }

    fn may_be_asked(&self) -> bool {
        !self.is_asked && self.rests_until.is_none_or(|until| Instant::now() >= until)
    }
}

/// How a store does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// As specs have it.
    pub url: String,
    /// How often it failed since it last worked.
    pub failures: u32,
    /// What the last of these failures was.
    pub reason: Option<String>,
}

/// The longest reason that is kept of a failure, in characters.
const REASON_MAX: usize = 500;

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

/// The same after that failure. A directory that is missing is made by somebody who then looks
/// whether it helped, and it costs nothing to look for it.
pub(crate) fn pause_after(failures: u32, error: &StoreError) -> Duration {
    match error {
        StoreError::NoDirectory { .. } => pause(failures).min(limits::RETRY_OF_DIRECTORY),
        _ => pause(failures),
    }
}

impl Stores {
    /// No stores yet but those `given`; others are opened by their URLs when a spec names them.
    pub(crate) fn new(
        files: Arc<dyn Disk>,
        given: &[Store],
        entropy: u64,
        requests: Requests,
    ) -> Self {
        let open = |store: &Store| {
            let url = store.url().to_owned();
            let meter = requests.of(&url);
            (url, Opened::new(store.clone(), meter))
        };
        let opened = Mutex::new(given.iter().map(open).collect());
        Stores { files, entropy, requests, opened }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Opened>> {
        self.opened.lock().expect("no holder of the stores panics")
    }

    /// The store of a spec's URL, opened when it is first named.
    pub fn get(&self, url: &str) -> Result<Store, StoreError> {
        let store = self.open(url)?;
        // Of two that open it at once the first one stays.
        let mut opened = self.opened();
        let known = opened
            .entry(url.to_owned())
            .or_insert_with(|| Opened::new(store, self.requests.of(url)));
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

    /// A URL by which anybody can fetch the fragment for `ttl`.
    pub(crate) async fn sign(
        &self,
        fragment: &Fragment,
        ttl: Duration,
    ) -> Result<String, StoreError> {
        let url = &fragment.backing_store;
        let (store, begun) = (self.get(url)?, Instant::now());
        let signed = store.signed_url(fragment, ttl).await;
        self.requests.of(url).asked(Request::SignGet, begun, signed.is_ok());
        signed
    }

    /// Whether the store may be asked: it did not fail, or has rested.
    pub(crate) fn may_ask(&self, url: &str) -> bool {
        self.opened().get(url).is_none_or(Opened::may_be_asked)
    }

    /// The right to ask the store, for as long as that takes: `None` while it rests, or while
    /// somebody else finds out whether it works again.
    pub(crate) fn ask(&self, url: &str) -> Option<Permit<'_>> {
        self.ask_if(url, Opened::may_be_asked)
    }

    /// The same while it rests, too: for an operator, who may have mended it.
    pub(crate) fn ask_now(&self, url: &str) -> Option<Permit<'_>> {
        self.ask_if(url, |known| !known.is_asked)
    }

    fn ask_if(&self, url: &str, may_ask: impl Fn(&Opened) -> bool) -> Option<Permit<'_>> {
        let mut opened = self.opened();
        let Some(known) = opened.get_mut(url) else {
            return Some(Permit { stores: self, url: None });
        };
        if !may_ask(known) {
            return None;
        }
        known.is_asked = known.failures > 0;
        let url = known.is_asked.then(|| url.to_owned());
        Some(Permit { stores: self, url })
    }

    /// The store answered.
    pub(crate) fn succeeded(&self, url: &str) {
        let mut opened = self.opened();
        let Some(known) = opened.get_mut(url) else { return };
        known.meter.checked(true);
        if known.failures > 0 {
            tracing::info!(store = url, failures = known.failures, "the store works again");
            (known.failures, known.reason, known.rests_until) = (0, None, None);
        }
    }

    /// The store failed: it rests, longer each time. Says so at the first failure only.
    pub(crate) fn failed(&self, url: &str, error: &StoreError) {
        let mut opened = self.opened();
        let Some(known) = opened.get_mut(url) else { return };
        known.meter.checked(false);
        // Several requests that were under way together fail together, and count once.
        if known.rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        known.failures = known.failures.saturating_add(1);
        known.reason = Some(error.to_string().chars().take(REASON_MAX).collect());
        let spread = spread(self.entropy ^ u64::from(known.failures));
        let pause =
            pause_after(known.failures, error).mul_f64(0.8 + 0.2 * f64::from(spread) / 1024.0);
        known.rests_until = Some(Instant::now() + pause);
        if known.failures == 1 {
            tracing::warn!(store = url, %error, "the store fails; bytes wait for it locally");
        }
    }

    /// The stores in use, and how each does.
    pub fn health(&self) -> Vec<Health> {
        let health = |(url, known): (&String, &Opened)| Health {
            url: url.clone(),
            failures: known.failures,
            reason: known.reason.clone(),
        };
        self.opened().iter().map(health).collect()
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

    #[test]
    fn a_missing_directory_is_looked_for_each_second() {
        let missing = StoreError::NoDirectory { store: "file:///".into(), dir: "/srv".into() };
        // Case: failures in a row, pause in milliseconds
        for (failures, expected) in [(1, 250), (3, 1000), (9, 1000)] {
            let pause = pause_after(failures, &missing);
            assert_eq!(pause, Duration::from_millis(expected), "{failures}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_rests() {
        let requests = Requests::new(&prometheus::Registry::new());
        let stores = Stores::new(Arc::new(ForgetfulDisk::new()), &[], 7, requests);
        let url = "file:///";
        stores.get(url).expect("a file store needs nothing");
        let error = StoreError::Missing { store: url.to_owned(), name: "x".to_owned() };
        assert!(stores.may_ask(url));
        stores.failed(url, &error);
        stores.failed(url, &error);
        let health =
            |failures, reason: Option<String>| [Health { url: url.into(), failures, reason }];
        assert_eq!(stores.health(), health(1, Some(error.to_string())), "they count once");
        assert!(!stores.may_ask(url));
        tokio::time::advance(pause(1)).await;
        assert!(stores.may_ask(url));
        // Case: one alone asks, and leaves the right to others when it is done.
        let permit = stores.ask(url).expect("it has rested");
        assert!(!stores.may_ask(url) && stores.ask(url).is_none());
        drop(permit);
        assert!(stores.may_ask(url));
        // Case: an operator does not wait for its rest, but for who asks it at that moment.
        stores.failed(url, &error);
        assert!(stores.ask(url).is_none());
        let permit = stores.ask_now(url).expect("nobody else asks");
        assert!(stores.ask_now(url).is_none());
        drop(permit);
        stores.succeeded(url);
        // Case: many ask one that works.
        let permits = [stores.ask(url), stores.ask(url)];
        assert!(permits.iter().all(Option::is_some));
        assert_eq!(stores.health(), health(0, None));
    }
}
