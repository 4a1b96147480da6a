//! Spools that are closed before their time, where space is short and too little can be freed:
//! a fragment that is stored can go, one that is being written can't.

use crate::stores::Stores;
use crate::{Error, Served, limits};
use std::cmp::Reverse;
use std::sync::Arc;

/// Closes the longest spools, until what can be freed, what waits to be stored and they are
/// `wanted` bytes. Those that nothing would come of stay: of journals without a store, or with one
/// that fails, and of those whose mirror is lent. A short one is closed when it is old, so that
/// a broker that is short of space for long does not fill its stores with tiny fragments.
pub(super) fn roll(
    served: &[Arc<Served>],
    stores: &Stores,
    wanted: u64,
    now_us: u64,
) -> Result<(), Error> {
    if wanted == 0 {
        return Ok(());
    }
    let (mut left, mut spools) = (wanted, Vec::new());
    for served in served {
        left = left.saturating_sub(served.freeable_len());
        if left == 0 {
            return Ok(());
        }
        let store = served.entry().spec.fragment.stores.first().cloned();
        let is_stored = store.is_some_and(|url| stores.may_ask(&url));
        let replica = served.replica();
        if !is_stored || replica.is_pinned() {
            continue;
        }
        let ledger = replica.ledger();
        let waiting = ledger.closed.iter().filter(|closed| closed.persisted.is_none());
        left = left.saturating_sub(waiting.map(|closed| closed.span.len()).sum());
        let len = ledger.head.since(ledger.spool.begin);
        let age_us = now_us.saturating_sub(ledger.spool.first_append_us);
        let is_worth_it = len >= wanted / limits::EARLY_SHARE || age_us >= limits::EARLY_AGE_US;
        if len > 0 && is_worth_it {
            spools.push((Reverse(len), served.life(), replica.clone()));
        }
    }
    spools.sort_by_key(|(len, life, _)| (*len, *life));
    for (Reverse(len), _, replica) in spools {
        if left == 0 {
            break;
        }
        replica.roll()?;
        left = left.saturating_sub(len);
    }
    Ok(())
}
