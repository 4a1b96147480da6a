//! A bound on bytes that many share.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes, and no more, at one time.
#[derive(Debug)]
pub struct Budget {
    what: &'static str,
    max: u64,
    used: AtomicU64,
}

/// Bytes taken of a budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    len: u64,
}

impl Budget {
    /// `what` names the bound in the error of who reaches it.
    pub fn new(what: &'static str, max: u64) -> Arc<Self> {
        Arc::new(Budget { what, max, used: AtomicU64::new(0) })
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), len: 0 }
    }
}

impl Share {
    /// Takes `more` bytes, or none of them.
    pub fn grow(&mut self, more: u64) -> Result<(), Error> {
        let Budget { what, max, used } = &*self.budget;
        let fits = |used: u64| used.checked_add(more).filter(|sum| sum <= max);
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.len += more;
                Ok(())
            }
            Err(_) => Err(Error::StagingFull { what, max: *max }),
        }
    }

    /// Takes or gives back, to have `len` bytes.
    pub fn resize(&mut self, len: u64) -> Result<(), Error> {
        match len.checked_sub(self.len) {
            Some(more) => self.grow(more),
            None => {
                self.shrink_to(len);
                Ok(())
            }
        }
    }

    /// Gives back what is beyond `keep`.
    pub fn shrink_to(&mut self, keep: u64) {
        let back = self.len.saturating_sub(keep);
        self.budget.used.fetch_sub(back, Ordering::Relaxed);
        self.len -= back;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_together_and_given_back() {
        let budget = Budget::new("in a test", 10);
        let (mut one, mut two) = (budget.share(), budget.share());
        one.grow(6).expect("there is room");
        two.grow(5).expect_err("there is room for 4");
        two.grow(4).expect("there is room");
        one.shrink_to(2);
        assert_eq!(budget.used(), 6);
        drop(one);
        assert_eq!(budget.used(), 4);
        two.grow(u64::MAX).expect_err("the sum has no number");
        drop(two);
        assert_eq!(budget.used(), 0);
    }
}
