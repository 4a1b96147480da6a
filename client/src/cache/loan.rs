//! Lending a mirror to the kernel: whole, within the budget, and never freed before it is back.

use super::kept::{Kept, State};
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

/// Whether the mirror would be lent.
pub(super) fn may_lend(kept: &Kept) -> bool {
    let Ok(Some(file)) = kept.mirror.only_file() else { return false };
    let state = kept.state();
    let has_room = state.loans > 0 || kept.totals.may_lend(state.local.len());
    let len = whole_len(&state);
    has_room && file.descriptor().is_some() && len.is_some() && file.len().ok() == len
}

/// How long the file of a mirror is that has all of `[0, head)`; `None` where it does not.
fn whole_len(state: &State) -> Option<u64> {
    let len = state.dense_to();
    let is_whole = state.first == Offset::ZERO && len > Offset::ZERO && len >= state.head;
    (is_whole && !state.is_gone).then_some(len.as_u64())
}

/// Lends the mirror, where one file has all of `[0, head)` and ends there: then what the kernel
/// reads of it is the journal, and never a hole.
pub(super) fn lend(kept: &Arc<Kept>, ticks: &Arc<AtomicU64>) -> Option<Loan> {
    let file = kept.mirror.only_file().ok().flatten()?;
    file.descriptor()?;
    let mut state = kept.state();
    if file.len().ok() != Some(whole_len(&state)?) {
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
