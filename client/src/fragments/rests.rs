//! What failed and is not tried for a while.

use super::Way;
use crate::limits::{REST_FIRST, REST_MAX, RESTS_MAX};
use protocol::Journal;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What may rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resting {
    /// A way to the store of a URL.
    Way(Way, String),
    /// All ways to a journal's fragments but the broker.
    Journal(Journal),
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    /// In a row.
    failures: u32,
    until: Instant,
}

/// Bounded by number: where too much fails to be remembered, it is tried again.
#[derive(Debug, Default)]
pub(super) struct Rests(BTreeMap<Resting, Rest>);

impl Rests {
    pub fn is_resting(&self, what: &Resting) -> bool {
        self.0.get(what).is_some_and(|rest| Instant::now() < rest.until)
    }

    /// One more failure. Those that come while it rests already were under way before, and count
    /// as one.
    pub fn rest(&mut self, what: Resting) {
        if self.is_resting(&what) {
            return;
        }
        if self.0.len() >= RESTS_MAX && !self.0.contains_key(&what) {
            self.0.clear();
        }
        let failures = self.0.get(&what).map_or(0, |rest| rest.failures).saturating_add(1);
        self.0.insert(what, Rest { failures, until: Instant::now() + length(failures) });
    }

    pub fn forget(&mut self, what: &Resting) {
        self.0.remove(what);
    }
}

/// How long after so many failures: doubling, up to a bound.
fn length(failures: u32) -> Duration {
    REST_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_fails_rests_longer_each_time() {
        let mut rests = Rests::default();
        let what = || Resting::Way(Way::Url, "s3://bucket/".to_owned());
        for failures in 1..=12 {
            assert!(!rests.is_resting(&what()));
            rests.rest(what());
            // Case: a failure that was under way counts no second time.
            rests.rest(what());
            tokio::time::advance(length(failures) - Duration::from_millis(1)).await;
            assert!(rests.is_resting(&what()), "{failures}");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(length(12), REST_MAX);
        rests.rest(what());
        rests.forget(&what());
        assert!(!rests.is_resting(&what()));
    }

    #[tokio::test(start_paused = true)]
    async fn not_everything_is_remembered() {
        let mut rests = Rests::default();
        for number in 0..=RESTS_MAX {
            rests.rest(Resting::Way(Way::Store, number.to_string()));
        }
        assert_eq!(rests.0.len(), 1);
    }
}
