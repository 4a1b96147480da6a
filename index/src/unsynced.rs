//! Since when something waits for the next sync.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time of the oldest record that no sync covered, in microseconds; 0 for none. It may be that
/// of a record that was covered meanwhile, until the next sync.
#[derive(Debug, Default)]
pub(crate) struct Unsynced(AtomicU64);

impl Unsynced {
    /// A record was made.
    pub fn note(&self, now_us: u64) {
        if self.0.load(Ordering::Relaxed) == 0 {
            // Whoever was first stays.
            let _ = self.0.compare_exchange(0, now_us, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// A sync begins, which covers all that was noted. What it gives is put back if it fails.
    pub fn begin(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }

    pub fn put_back(&self, since_us: u64) {
        if since_us > 0 {
            self.0.store(since_us, Ordering::Relaxed);
        }
    }

    pub fn since_us(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|since_us| *since_us > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_record_stays_until_a_sync_covers_it() {
        let unsynced = Unsynced::default();
        assert_eq!(unsynced.since_us(), None);
        unsynced.note(5);
        unsynced.note(7);
        assert_eq!(unsynced.since_us(), Some(5));
        // Case: the sync fails, with a record that came meanwhile.
        let begun = unsynced.begin();
        unsynced.note(9);
        unsynced.put_back(begun);
        assert_eq!(unsynced.since_us(), Some(5));
        // Case: it succeeds.
        unsynced.begin();
        assert_eq!(unsynced.since_us(), None);
    }
}
