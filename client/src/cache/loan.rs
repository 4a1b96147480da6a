//! Lending a mirror to the kernel: whole, within the budget, and never freed before it is back.

use super::kept::Kept;
use crate::Loan;
use protocol::Offset;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts a loan while it lives.
struct Pin {
    kept: Arc<Kept>,
    ticks: Arc<AtomicU64>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.kept.state();
        state.loans -= 1;
        if state.loans > 0 {
            return;
        }
        if !state.is_gone {
            self.kept.totals.give_back(state.local.len());
        }
        drop(state);
        self.kept.touch(self.ticks.fetch_add(1, Ordering::Relaxed));
        self.kept.returned.notify_one();
    }
}

/// Lends the mirror, where one file has all of `[0, head)` and ends there: then what the kernel
/// reads of it is the journal, and never a hole.
pub(super) fn lend(kept: &Arc<Kept>, ticks: &Arc<AtomicU64>) -> Option<Loan> {
    let file = kept.mirror.only_file().ok().flatten()?;
    file.descriptor()?;
    let mut state = kept.state();
    let len = state.dense_to();
    let is_whole = state.first == Offset::ZERO && len > Offset::ZERO && len >= state.head;
    if state.is_gone || !is_whole || file.len().ok() != Some(len.as_u64()) {
        return None;
    }
    // Nothing but that one span is local: bytes lie below the head, and all of them are in it.
    if state.loans == 0 && !kept.totals.lend(state.local.len()) {
        return None;
    }
    state.loans += 1;
    drop(state);
    Loan::of(file, kept.life, Pin { kept: kept.clone(), ticks: ticks.clone() })
}
