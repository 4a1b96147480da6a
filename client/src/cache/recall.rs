//! Asking loans back: what is lent goes on growing, and nothing of it is freed.

use super::kept::Kept;
use super::limits::{RECALL_MAX, RECALL_PAUSE};
use protocol::Life;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::time::Instant;

/// The journals whose loans are to be given back. None of them is lent meanwhile.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    lives: watch::Sender<BTreeSet<Life>>,
    /// When each of them was named.
    named: Mutex<BTreeMap<Life, Instant>>,
}

impl Recalls {
    pub fn watch(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.lives.subscribe()
    }

    pub fn has(&self, life: Life) -> bool {
        self.lives.borrow().contains(&life)
    }

    /// All loans of the journal are back.
    pub fn returned(&self, life: Life) {
        self.lives.send_if_modified(|lives| lives.remove(&life));
    }

    /// No room is needed any more.
    pub fn end(&self) {
        if !self.lives.borrow().is_empty() {
            self.lives.send_if_modified(|lives| !std::mem::take(lives).is_empty());
        }
    }

    /// Names the lent journal with the most bytes, since what is local is over the budget, and
    /// `over_lent` bytes more than half of that are lent. A journal that was appended to here a
    /// moment ago has a writer, who would get its readers' error. One after the other: whoever is
    /// told needs a moment to close its file; and none for the sake of what others are asked for.
    pub fn name_largest(&self, all: &[Arc<Kept>], over_lent: u64) {
        let mut named = self.named.lock().expect("no holder panics");
        named.retain(|life, _| self.has(*life));
        if named.values().any(|since| since.elapsed() < RECALL_PAUSE) {
            return;
        }
        // Who does not give way for long, as one with a writer, keeps nobody else from being asked.
        let is_asked = |kept: &&Arc<Kept>| {
            named.get(&kept.life).is_some_and(|since| since.elapsed() < RECALL_MAX)
        };
        if all.iter().filter(is_asked).map(|kept| kept.len()).sum::<u64>() >= over_lent {
            return;
        }
        let may_name = |kept: &&Arc<Kept>| {
            kept.is_lent() && !self.has(kept.life) && !kept.was_written_within(RECALL_PAUSE)
        };
        let largest = all.iter().filter(may_name).max_by_key(|kept| kept.len());
        let Some(largest) = largest else { return };
        named.insert(largest.life, Instant::now());
        self.lives.send_if_modified(|lives| lives.insert(largest.life));
        if !largest.is_lent() {
            // It came back just now.
            self.returned(largest.life);
            return;
        }
        tracing::warn!(
            journal = %largest.journal,
            bytes = largest.len(),
            "the cache is over its size, and open files keep more than half of that: those who \
             read this one get EIO (a larger --cache-size avoids it)"
        );
    }
}
