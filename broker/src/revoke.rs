//! Taking loans back: what open files keep may be half of the local room, and grow beyond it.
//!
//! Then, when room is needed and nothing else can go, the journals whose loans keep the most are
//! named, one after the other, until what is lent is within its half again. Who lent them to the
//! kernel ends its handles; their bytes are evicted once those are closed. A journal that is
//! written to is left alone: its writer would get the error of a reader.

use crate::Served;
use index::DataDir;
use protocol::Life;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;

/// For how long nobody appended to a journal without a writer.
const SILENCE: Duration = Duration::from_secs(5);

/// Rounds between two journals, a second each: whoever is told of an error needs a moment to close
/// its file.
const ROUNDS_BETWEEN: u32 = 5;

/// The journals whose loans are to be given back. None of them is lent meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    lives: watch::Sender<BTreeSet<Life>>,
    /// Rounds until the next one may follow.
    rest: AtomicU32,
    /// Journals that were named since the start.
    total: AtomicU64,
}

impl Revocations {
    pub fn watch(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.lives.subscribe()
    }

    pub fn has(&self, life: Life) -> bool {
        self.lives.borrow().contains(&life)
    }

    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Called once a second. `is_short` where room is needed and nothing can go that is not lent.
    pub fn round(&self, data: &DataDir, served: &[Arc<Served>], is_short: bool) {
        let is_over = data.over_lent() > 0;
        self.keep(|life| is_over && data.replica(life).is_some_and(|replica| replica.is_pinned()));
        let rest = self.rest.load(Ordering::Relaxed);
        self.rest.store(rest.saturating_sub(1), Ordering::Relaxed);
        if !is_over || !is_short || rest > 0 {
            return;
        }
        let candidates = served.iter().filter(|served| self.may_name(data, served));
        let Some(largest) = candidates.max_by_key(|served| served.freeable_len()) else { return };
        self.rest.store(ROUNDS_BETWEEN, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        self.lives.send_if_modified(|lives| lives.insert(largest.life()));
        tracing::warn!(
            journal = %largest.journal(),
            bytes = largest.replica().local_len(),
            handles = largest.replica().pins(),
            "room is needed, and open files keep more than half of it: those who read this one \
             get EIO (a larger --local-budget avoids it)"
        );
    }

    fn keep(&self, is_kept: impl Fn(Life) -> bool) {
        self.lives.send_if_modified(|lives| {
            let before = lives.len();
            lives.retain(|life| is_kept(*life));
            lives.len() < before
        });
    }

    /// Whether taking its loans back would free something, and harms no writer.
    fn may_name(&self, data: &DataDir, served: &Served) -> bool {
        let replica = served.replica();
        let now = UNIX_EPOCH + Duration::from_micros(data.clock().now_us());
        let silence = now.duration_since(replica.modified()).unwrap_or_default();
        replica.is_pinned()
            && silence >= SILENCE
            && !self.has(served.life())
            && served.freeable_len() > 0
    }
}
