//! What the mirrors of a cache hold together, and how much of it may be lent.

use super::limits::LENT_MAX;
use std::sync::{Mutex, MutexGuard};

/// Sums over all mirrors, in bytes and in journals.
#[derive(Debug)]
pub(super) struct Totals {
    /// What the mirrors may hold together.
    budget: u64,
    sums: Mutex<Sums>,
}

/// See [`Totals`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Local bytes.
    pub len: u64,
    /// Local bytes of mirrors that are lent; none of them is freed.
    pub lent_len: u64,
    /// Journals that are lent.
    pub lent: usize,
}

impl Totals {
    pub fn new(budget: u64) -> Self {
        Totals { budget, sums: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().expect("no holder panics")
    }

    pub fn sums(&self) -> Sums {
        *self.lock()
    }

    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes over the budget.
    pub fn excess(&self) -> u64 {
        self.lock().len.saturating_sub(self.budget)
    }

    /// Bytes that are not lent.
    pub fn own_len(&self) -> u64 {
        let sums = self.sums();
        sums.len - sums.lent_len
    }

    /// A mirror went from `old` to `new` local bytes.
    pub fn changed(&self, old: u64, new: u64, is_lent: bool) {
        let mut sums = self.lock();
        sums.len = sums.len + new - old;
        if is_lent {
            sums.lent_len = sums.lent_len + new - old;
        }
    }

    /// Counts a mirror as lent, if what is lent stays within half the budget: the other half is for
    /// what is read without being whole.
    pub fn lend(&self, len: u64) -> bool {
        let mut sums = self.lock();
        if !self.fits(*sums, len) {
            return false;
        }
        sums.lent += 1;
        sums.lent_len += len;
        true
    }

    /// Whether so many bytes more would be lent.
    pub fn may_lend(&self, len: u64) -> bool {
        self.fits(self.sums(), len)
    }

    fn fits(&self, sums: Sums, len: u64) -> bool {
        sums.lent < LENT_MAX && sums.lent_len + len <= self.budget / 2
    }

    /// Bytes that are lent beyond half the budget.
    pub fn over_lent(&self) -> u64 {
        self.lock().lent_len.saturating_sub(self.budget / 2)
    }

    pub fn give_back(&self, len: u64) {
        let mut sums = self.lock();
        sums.lent -= 1;
        sums.lent_len -= len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_budget_is_lent_at_most() {
        let totals = Totals::new(1600);
        totals.changed(0, 1600, false);
        assert_eq!(totals.excess(), 0);
        assert!(totals.lend(500) && totals.lend(300));
        assert!(!totals.lend(1) && !totals.may_lend(1) && totals.may_lend(0));
        assert_eq!((totals.over_lent(), totals.own_len()), (0, 800));
        // Case: what is lent already goes on growing, and nothing else is lent then.
        totals.changed(300, 400, true);
        assert_eq!(totals.sums(), Sums { len: 1700, lent_len: 900, lent: 2 });
        assert_eq!((totals.excess(), totals.over_lent(), totals.own_len()), (100, 100, 800));
        totals.give_back(500);
        assert!(!totals.lend(401) && totals.lend(400));
    }
}
