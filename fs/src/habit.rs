//! What a journal's writers did, and are likely to do next.

use protocol::Offset;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whether a file is synced after each single write, as a database's log is. Then the sync may
/// begin with the write, and the call that asks for it finds it half done. Where several writes
/// share a sync, one that began with the first would only come before the one that serves all.
#[derive(Debug, Default)]
pub(crate) struct SyncHabit {
    /// Writes since the last sync.
    writes: AtomicU32,
    /// The last sync that had something to do came after one write.
    is_each: AtomicBool,
}

impl SyncHabit {
    /// A write was appended. Whether a sync is likely to be asked for next.
    pub(crate) fn wrote(&self) -> bool {
        let is_first = self.writes.fetch_add(1, Ordering::Relaxed) == 0;
        is_first && self.is_each.load(Ordering::Relaxed)
    }

    /// A sync was asked for.
    pub(crate) fn syncs(&self) {
        match self.writes.swap(0, Ordering::Relaxed) {
            0 => {}
            writes => self.is_each.store(writes == 1, Ordering::Relaxed),
        }
    }
}

/// How far this mount wrote what it has not synced: a head, which is not 0.
#[derive(Debug, Default)]
pub(crate) struct Unsynced(Mutex<Option<Offset>>);

impl Unsynced {
    /// A write was acknowledged in memory, and ends there.
    pub(crate) fn wrote(&self, end: Offset) {
        let mut last = self.0.lock().expect("no holder panics");
        *last = (*last).max(Some(end));
    }

    /// Where the last of them ends.
    pub(crate) fn end(&self) -> Option<Offset> {
        *self.0.lock().expect("no holder panics")
    }

    /// A sync covered all up to there.
    pub(crate) fn synced(&self, end: Offset) {
        let mut last = self.0.lock().expect("no holder panics");
        last.take_if(|last| *last <= end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_foreseen_where_each_write_had_one() {
        // Case: what happens, and for each write whether a sync is foreseen.
        let cases = [
            ("wwww", "nnnn"),
            ("wswsw", "nyy"),
            // One is not synced; the next that is shows nothing, and the one after that does.
            ("wswwsww", "nynnn"),
            ("wswwswsw", "nynny"),
            // Several share a sync, and each asks for it.
            ("wwwwsssswwww", "nnnnnnnn"),
            // A sync of nothing changes nothing.
            ("wsssw", "ny"),
        ];
        for (steps, foreseen) in cases {
            let habit = SyncHabit::default();
            let mut found = String::new();
            for step in steps.chars() {
                match step {
                    'w' => found.push(if habit.wrote() { 'y' } else { 'n' }),
                    _ => habit.syncs(),
                }
            }
            assert_eq!(found, foreseen, "{steps}");
        }
    }
}
