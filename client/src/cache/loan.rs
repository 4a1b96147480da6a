//! Lending a mirror to the kernel: whole, within the budget, and never freed before it is back.

use super::kept::{Kept, State};
use crate::Loan;
use index::disk::DiskFile;
use protocol::Offset;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

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

/// The mirror's file, where it is one that has all of `[0, head)` and ends there: then what the
/// kernel reads of it is the journal, and never a hole. It is so while the state is held.
fn whole(kept: &Kept) -> Option<(Arc<dyn DiskFile>, MutexGuard<'_, State>)> {
    let file = kept.mirror.only_file().ok().flatten()?;
    file.descriptor()?;
    let state = kept.state();
    let len = state.dense_to();
    let is_whole = state.first == Offset::ZERO && len > Offset::ZERO && len >= state.head;
    if state.is_gone || !is_whole || file.len().ok() != Some(len.as_u64()) {
        return None;
    }
    Some((file, state))
}

/// Whether the mirror would be lent.
pub(super) fn may_lend(kept: &Kept) -> bool {
    let has_room = |state: &State| state.loans > 0 || kept.totals.may_lend(state.local.len());
    whole(kept).is_some_and(|(_, state)| has_room(&state))
}

/// Lends the mirror, where it is whole.
pub(super) fn lend(kept: &Arc<Kept>, ticks: &Arc<AtomicU64>) -> Option<Loan> {
    let (file, mut state) = whole(kept)?;
    // Nothing but that one span is local: bytes lie below the head, and all of them are in it.
    if state.loans == 0 && !kept.totals.lend(state.local.len()) {
        return None;
    }
    state.loans += 1;
    drop(state);
    Loan::of(file, kept.life, Pin { kept: kept.clone(), ticks: ticks.clone() })
}
