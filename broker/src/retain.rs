//! Retention: stored fragments are deleted that are older than their journal keeps them, or lie
//! further below its head than the bytes that it keeps ([`RETAIN_BYTES`]).
//!
//! They go in ascending order, and the one that ends highest stays, so that the bucket alone still
//! says where the journal goes on. What lies below is trimmed, durably so before the first object
//! goes: no read ever finds a hole there.

use crate::quota::{RETAIN_BYTES, bytes_of};
use crate::{Broker, Error, Served};
use index::blocking::off_thread;
use index::ledger::{Closed, Stored};
use protocol::{Fragment, Offset, Span};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked for what is too old.
const LOOK: Duration = Duration::from_secs(60);

/// Deletes what is too old, until the broker closes.
pub(crate) async fn run(broker: Broker) {
    loop {
        tokio::select! {
            biased;
            () = broker.closed() => return,
            () = sleep(LOOK) => {}
        }
        for served in broker.all_served() {
            let done = tokio::select! {
                biased;
                () = broker.closed() => return,
                done = retain(&broker, &served) => done,
            };
            if let Err(error) = done {
                let journal = served.journal();
                tracing::warn!(%journal, %error, "old fragments stay for now");
            }
        }
    }
}

/// Deletes what is too old of one journal.
async fn retain(broker: &Broker, served: &Arc<Served>) -> Result<(), Error> {
    let entry = served.entry();
    let retention = entry.spec.fragment.retention;
    let bytes_max = bytes_of(&entry.spec, RETAIN_BYTES)?;
    let is_ready = served.stored().is_listed() && served.second_writer().is_none();
    // A lent mirror may still be read where it would be freed.
    let keeps_all = retention.is_zero() && bytes_max.is_none();
    if keeps_all || !is_ready || served.replica().is_pinned() {
        return Ok(());
    }
    let (stored, persisted) = (served.stored().all(), served.replica().persisted());
    let mut old = Vec::new();
    if !retention.is_zero() {
        let keep_from = keep_from(broker, retention);
        if let Some(below) = pruned_elsewhere(served, keep_from) {
            trim(broker, served, below).await?;
        }
        old = too_old(stored.clone(), keep_from, persisted);
    }
    if let Some(bytes_max) = bytes_max {
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        let keep_above = served.stat().head.get().saturating_sub(bytes_max);
        let far = too_far(stored, keep_above, persisted);
        // Both are the first of the same list.
        old = if far.len() > old.len() { far } else { old };
    }
    let Some(last) = old.last() else { return Ok(()) };
    trim(broker, served, last.end()).await?;
    broker.delete_objects(served, &old).await
}

/// Below where everything is gone from the store that is too old as well: somebody pruned the
/// journal by the same rule, as gazctl does, and the local bytes go, too.
fn pruned_elsewhere(served: &Served, keep_from: i64) -> Option<Offset> {
    let end = served.stored().begin_offset()?.min(served.replica().persisted());
    let is_pruned = |closed: &Closed| {
        let is_old = |stored: &Stored| stored.mod_time < keep_from;
        closed.span.end() <= end && closed.persisted.as_ref().is_some_and(is_old)
    };
    let vanished = served.vanished();
    vanished.iter().take_while(|closed| is_pruned(closed)).last().map(|last| last.span.end())
}

/// The time, in Unix seconds, from which what was stored is kept.
pub(crate) fn keep_from(broker: &Broker, retention: Duration) -> i64 {
    let now_s = i64::try_from(broker.shared.config.clock.now_us() / 1_000_000).unwrap_or(i64::MAX);
    now_s.saturating_sub(i64::try_from(retention.as_secs()).unwrap_or(i64::MAX))
}

/// The fragments that end at `keep_above` or before, but the one that ends the journal.
fn too_far(mut fragments: Vec<Fragment>, keep_above: i64, persisted: Offset) -> Vec<Fragment> {
    fragments.pop();
    let is_far =
        |fragment: &Fragment| fragment.end().get() <= keep_above && fragment.end() <= persisted;
    let kept = fragments.iter().position(|fragment| !is_far(fragment));
    fragments.truncate(kept.unwrap_or(fragments.len()));
    fragments
}

/// The fragments before the first one that is kept: because it is young, reaches above what is
/// stored, or ends the journal.
pub(crate) fn too_old(
    mut fragments: Vec<Fragment>,
    keep_from: i64,
    persisted: Offset,
) -> Vec<Fragment> {
    fragments.pop();
    let is_old = |fragment: &Fragment| fragment.mod_time < keep_from && fragment.end() <= persisted;
    let kept = fragments.iter().position(|fragment| !is_old(fragment));
    fragments.truncate(kept.unwrap_or(fragments.len()));
    fragments
}

/// Gives up what lies below `below`, durably; its local bytes are freed in their time.
pub(crate) async fn trim(
    broker: &Broker,
    served: &Arc<Served>,
    below: Offset,
) -> Result<(), Error> {
    let replica = served.replica();
    if below <= replica.trimmed() {
        return Ok(());
    }
    replica.trim(below)?;
    served.forget_view();
    let data = broker.shared.data.clone();
    off_thread(move || data.sync_round()).await?;
    broker.shared.unfreed.add(replica.clone(), Span::between(Offset::ZERO, below));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Codec, Journal, Sum};

    #[test]
    fn what_lies_far_below_the_head_goes_and_the_last_stays() {
        let journal = Journal::new("a/journal").expect("a valid name");
        let fragment = |begin: u32| {
            let span = Span::at(begin.into(), 10);
            Fragment::local(journal.clone(), span, Sum::ZERO, Codec::None)
        };
        // Case: begins, the offset from which all is kept, stored below, how many go
        let cases: [(&[u32], i64, u32, usize); 6] = [
            (&[], 100, 0, 0),
            (&[0], 100, 10, 0),
            (&[0, 10, 20], 20, 30, 2),
            (&[0, 10, 20], 19, 30, 1),
            (&[0, 10, 20], 100, 15, 1),
            (&[0, 10, 20], 100, 30, 2),
        ];
        for (begins, keep_above, persisted, expected) in cases {
            let fragments = begins.iter().copied().map(fragment).collect();
            let far = too_far(fragments, keep_above, persisted.into());
            assert_eq!(far.len(), expected, "{begins:?} {keep_above}");
        }
    }

    #[test]
    fn the_old_go_in_order_and_the_last_stays() {
        let journal = Journal::new("a/journal").expect("a valid name");
        let fragment = |(begin, mod_time): (u32, i64)| {
            let span = Span::at(begin.into(), 10);
            let local = Fragment::local(journal.clone(), span, Sum::ZERO, Codec::None);
            Fragment { mod_time, ..local }
        };
        // Case: begins and times, stored below, begins of those that go
        type Case<'a> = (&'a [(u32, i64)], u32, &'a [u32]);
        let cases: [Case; 5] = [
            (&[], 0, &[]),
            (&[(0, 1)], 10, &[]),
            (&[(0, 1), (10, 2), (20, 3)], 30, &[0, 10]),
            (&[(0, 1), (10, 99), (20, 3), (30, 99)], 40, &[0]),
            (&[(0, 1), (10, 2), (20, 3)], 15, &[0]),
        ];
        for (listed, persisted, expected) in cases {
            let fragments = listed.iter().copied().map(fragment).collect();
            let old = too_old(fragments, 50, persisted.into());
            let begins: Vec<_> = old.iter().map(Fragment::begin).collect();
            let expected: Vec<_> = expected.iter().map(|begin| Offset::from(*begin)).collect();
            assert_eq!(begins, expected, "{listed:?}");
        }
    }
}
