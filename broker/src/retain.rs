//! Retention: stored fragments that are older than their journal keeps them are deleted.
//!
//! They go in ascending order, and the one that ends highest stays, so that the bucket alone still
//! says where the journal goes on. What lies below is trimmed, durably so before the first object
//! goes: no read ever finds a hole there.

use crate::blocking::off_thread;
use crate::{Broker, Error, Served};
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
    let retention = served.entry().spec.fragment.retention;
    let is_ready = served.stored().is_listed() && served.second_writer().is_none();
    // A lent mirror may still be read where it would be freed.
    if retention.is_zero() || !is_ready || served.replica().is_pinned() {
        return Ok(());
    }
    let keep_from = keep_from(broker, retention);
    let old = too_old(served.stored().all(), keep_from, served.replica().persisted());
    let Some(last) = old.last() else { return Ok(()) };
    trim(broker, served, last.end()).await?;
    broker.delete_objects(served, &old).await
}

/// The time, in Unix seconds, from which what was stored is kept.
pub(crate) fn keep_from(broker: &Broker, retention: Duration) -> i64 {
    let now_s = i64::try_from(broker.shared.config.clock.now_us() / 1_000_000).unwrap_or(i64::MAX);
    now_s.saturating_sub(i64::try_from(retention.as_secs()).unwrap_or(i64::MAX))
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
