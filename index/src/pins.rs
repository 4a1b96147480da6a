//! How much of the local bytes may be lent at once.
//!
//! Nothing of a lent mirror is freed, so that handles which stay open could keep all of the local
//! room for themselves. At most half of it is lent; the other half is for what is appended. What is
//! lent already goes on growing: then no other journal is lent until it is back within the bound.

use std::sync::atomic::{AtomicU64, Ordering};

/// Local bytes of the journals that are lent, and how many may be.
#[derive(Debug)]
pub(crate) struct Pins {
    len: AtomicU64,
    max: AtomicU64,
}

impl Pins {
    /// Within `room` bytes, of which half may be lent.
    pub fn within(room: u64) -> Self {
        Pins { len: AtomicU64::new(0), max: AtomicU64::new(room / 2) }
    }

    /// There are so many bytes for journals.
    pub fn set_room(&self, room: u64) {
        self.max.store(room / 2, Ordering::Relaxed);
    }

    /// Bytes that are lent.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Bytes that may be lent.
    pub fn max(&self) -> u64 {
        self.max.load(Ordering::Relaxed)
    }

    /// Counts `len` bytes more, if they are within the bound.
    pub fn take(&self, len: u64) -> bool {
        let max = self.max();
        let with = |lent: u64| lent.checked_add(len).filter(|lent| *lent <= max);
        self.len.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok()
    }

    /// What was counted as `old` is `new` bytes.
    pub fn recount(&self, old: u64, new: u64) {
        match new.checked_sub(old) {
            Some(grown) => self.len.fetch_add(grown, Ordering::Relaxed),
            None => self.len.fetch_sub(old - new, Ordering::Relaxed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_room_is_lent_at_most() {
        let pins = Pins::within(101);
        assert!(pins.take(30) && pins.take(20));
        assert!(!pins.take(1) && pins.take(0));
        // Case: what is lent goes on growing, and nothing else is lent then.
        pins.recount(20, 40);
        assert_eq!((pins.len(), pins.take(0)), (70, false));
        pins.recount(40, 0);
        assert!(!pins.take(21) && pins.take(20));
        // Case: there is less room than before, and then more.
        pins.set_room(0);
        assert_eq!((pins.max(), pins.take(1)), (0, false));
        pins.set_room(102);
        assert!(pins.take(1));
    }
}
