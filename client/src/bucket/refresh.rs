//! Listing a store again: all of it at an interval, and the ends of followed journals in between.

use super::Shared;
use super::naming;
use crate::limits::{BUCKET_PAUSE_MAX, FOLLOWED_AT_ONCE, FOLLOWED_INTERVAL, FOLLOWED_MAX};
use futures::StreamExt;
use index::store::StoreError;
use protocol::Journal;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Counts its owner among those who wait for a journal.
pub(super) struct Follower {
    shared: Arc<Shared>,
    journal: Journal,
}

impl Shared {
    /// From here on the end of the journal is looked for often, until the follower is dropped.
    pub(super) fn follow(self: &Arc<Self>, journal: &Journal) -> Follower {
        let mut followed = self.followed.lock().expect("no holder panics");
        *followed.entry(journal.clone()).or_default() += 1;
        Follower { shared: self.clone(), journal: journal.clone() }
    }

    /// Takes a new listing over.
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        let objects = self.store.survey().await?;
        let named = naming::sort(self.store.url(), &objects, &self.postfix);
        for strange in &named.strange {
            tracing::debug!(path = strange.path, reason = strange.reason, "no fragment");
        }
        let has_other_journals = self.catalog().replace(self.store.url(), named);
        if has_other_journals {
            self.census.send_modify(|count| *count += 1);
        }
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Looks for fragments behind the last one of each followed journal.
    async fn look_behind(&self) {
        let journals: Vec<Journal> = {
            let followed = self.followed.lock().expect("no holder panics");
            followed.keys().take(FOLLOWED_MAX).cloned().collect()
        };
        let looks = journals.into_iter().map(|journal| self.look_behind_one(journal));
        let mut looks = futures::stream::iter(looks).buffer_unordered(FOLLOWED_AT_ONCE);
        let mut has_grown = false;
        while let Some(grew) = looks.next().await {
            has_grown |= grew;
        }
        if has_grown {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Whether the journal grew. Keys are ordered as offsets are within one postfix, and postfixes
    /// mostly by time; what comes in another order is found by the next listing.
    async fn look_behind_one(&self, journal: Journal) -> bool {
        let Some(last) = self.catalog().last(&journal) else { return false };
        match self.store.list_behind(&last).await {
            Ok(mut found) => {
                let mut catalog = self.catalog();
                found.retain(|fragment| {
                    let postfix = &fragment.path_postfix;
                    let is_own = *postfix == last.path_postfix
                        || postfix.split('/').next().is_some_and(naming::looks_like_a_postfix);
                    is_own && !catalog.is_another(&journal, postfix)
                });
                catalog.add(&journal, found)
            }
            Err(error) => {
                tracing::debug!(%error, %journal, "its end is looked for again");
                false
            }
        }
    }

    fn is_anything_followed(&self) -> bool {
        !self.followed.lock().expect("no holder panics").is_empty()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followed = self.shared.followed.lock().expect("no holder panics");
        if let Some(count) = followed.get_mut(&self.journal) {
            *count -= 1;
            if *count == 0 {
                followed.remove(&self.journal);
            }
        }
    }
}

/// Lists the store after each interval, for ever. What was known stays while it can't be listed.
pub(super) async fn keep_fresh(shared: Arc<Shared>, interval: Duration) {
    let (mut failures, mut due) = (0u32, Instant::now() + interval);
    loop {
        tokio::select! {
            biased;
            () = sleep_until(due) => {}
            () = shared.is_wanted.notified() => {
                // Not at once: whoever wants it may want it again soon.
                let soon = Instant::now() + FOLLOWED_INTERVAL.min(interval);
                due = due.min(soon);
                continue;
            }
            () = tokio::time::sleep(FOLLOWED_INTERVAL) => {
                if shared.is_anything_followed() {
                    shared.look_behind().await;
                }
                continue;
            }
        }
        match shared.refresh().await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures = failures.saturating_add(1);
                if failures == 1 {
                    tracing::warn!(%error, "the store is not listed; what is known is shown");
                }
            }
        }
        let pause = interval.saturating_mul(1 << failures.min(8));
        due = Instant::now() + pause.clamp(interval, BUCKET_PAUSE_MAX.max(interval));
    }
}
