//! Retention: stored fragments are deleted that are older than their journal keeps them, or lie
//! further below its head than the bytes that it keeps ([`JournalSpec::retain_bytes`]).
//!
//! They go in ascending order, and the one that ends highest stays, so that the bucket alone still
//! says where the journal goes on. What lies below is trimmed, durably so before the first object
//! goes: no read ever finds a hole there.

use crate::{Broker, Error, Served};
use index::blocking::off_thread;
use index::ledger::{Closed, Stored};
use protocol::{Fragment, JournalSpec, Offset, Span};
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

/// Deletes what one journal does not keep.
async fn retain(broker: &Broker, served: &Arc<Served>) -> Result<(), Error> {
    let keeps = Keeps::of(broker, served)?;
    let is_ready = served.stored().is_listed() && served.second_writer().is_none();
    // A lent mirror may still be read where it would be freed.
    if keeps.is_all() || !is_ready || served.replica().is_pinned() {
        return Ok(());
    }
    let (stored, persisted) = (served.stored().all(), served.replica().persisted());
    if let Some(since) = keeps.since
        && let Some(below) = pruned_elsewhere(served, since)
    {
        trim(broker, served, below).await?;
    }
    let old = keeps.before_first(stored, persisted);
    let Some(last) = old.last() else { return Ok(()) };
    trim(broker, served, last.end()).await?;
    broker.delete_objects(served, &old).await
}

/// Which stored fragments a journal keeps, at one moment: those that are within each limit that it
/// has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keeps {
    /// The time, in Unix seconds, from which what was stored is kept.
    since: Option<i64>,
    /// The offset that what is kept ends beyond.
    beyond: Option<i64>,
}

impl Keeps {
    pub fn of(broker: &Broker, served: &Served) -> Result<Self, Error> {
        let entry = served.entry();
        let head = served.replica().head().get();
        Ok(Keeps {
            since: kept_since(broker, &entry.spec),
            beyond: entry.spec.retain_bytes()?.map(|bytes| head.saturating_sub(bytes)),
        })
    }

    /// Whether there is no limit.
    pub fn is_all(&self) -> bool {
        self.since.is_none() && self.beyond.is_none()
    }

    pub fn has(&self, fragment: &Fragment) -> bool {
        self.since.is_none_or(|since| fragment.mod_time >= since)
            && self.beyond.is_none_or(|beyond| fragment.end().get() > beyond)
    }

    /// The fragments before the first one that stays: because it is kept, reaches above what is
    /// stored, or ends the journal.
    pub fn before_first(&self, mut fragments: Vec<Fragment>, persisted: Offset) -> Vec<Fragment> {
        fragments.pop();
        let stays = |fragment: &Fragment| self.has(fragment) || fragment.end() > persisted;
        let first = fragments.iter().position(stays);
        fragments.truncate(first.unwrap_or(fragments.len()));
        fragments
    }
}

/// Below where everything is gone from the store that is too old as well: somebody pruned the
/// journal by the same rule, as gazctl does, and the local bytes go, too.
fn pruned_elsewhere(served: &Served, since: i64) -> Option<Offset> {
    let end = served.stored().begin_offset()?.min(served.replica().persisted());
    let is_pruned = |closed: &Closed| {
        let is_old = |stored: &Stored| stored.mod_time < since;
        closed.span.end() <= end && closed.persisted.as_ref().is_some_and(is_old)
    };
    let vanished = served.vanished();
    vanished.iter().take_while(|closed| is_pruned(closed)).last().map(|last| last.span.end())
}

/// The time, in Unix seconds, from which what was stored of a journal is kept; `None` for ever.
pub(crate) fn kept_since(broker: &Broker, spec: &JournalSpec) -> Option<i64> {
    let retention = spec.fragment.retention;
    if retention.is_zero() {
        return None;
    }
    let now_s = i64::try_from(broker.shared.config.clock.now_us() / 1_000_000).unwrap_or(i64::MAX);
    Some(now_s.saturating_sub(i64::try_from(retention.as_secs()).unwrap_or(i64::MAX)))
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
    fn what_is_not_kept_goes_in_order_and_the_last_stays() {
        let journal = Journal::new("a/journal").expect("a valid name");
        let fragment = |(begin, mod_time): (u32, i64)| {
            let span = Span::at(begin.into(), 10);
            let local = Fragment::local(journal.clone(), span, Sum::ZERO, Codec::None);
            Fragment { mod_time, ..local }
        };
        let [all, old, far, both] =
            [(None, None), (Some(50), None), (None, Some(20)), (Some(50), Some(20))]
                .map(|(since, beyond)| Keeps { since, beyond });
        // Case: what is kept, begins and times, stored below, begins of those that go
        type Case<'a> = (Keeps, &'a [(u32, i64)], u32, &'a [u32]);
        let cases: [Case; 16] = [
            (all, &[(0, 1), (10, 2), (20, 3)], 30, &[]),
            (old, &[], 0, &[]),
            (old, &[(0, 1)], 10, &[]),
            (old, &[(0, 1), (10, 2), (20, 3)], 30, &[0, 10]),
            (old, &[(0, 1), (10, 99), (20, 3), (30, 99)], 40, &[0]),
            (old, &[(0, 1), (10, 50), (20, 3)], 30, &[0]),
            (old, &[(0, 1), (10, 2), (20, 3)], 15, &[0]),
            (far, &[], 0, &[]),
            (far, &[(0, 99)], 10, &[]),
            (far, &[(0, 99), (10, 99), (20, 99)], 30, &[0, 10]),
            (far, &[(0, 99), (11, 99), (21, 99)], 31, &[0]),
            (far, &[(0, 99), (10, 99), (20, 99)], 15, &[0]),
            (both, &[(0, 99), (10, 2), (20, 99), (30, 99)], 40, &[0, 10]),
            (both, &[(0, 1), (10, 2), (20, 3), (30, 99)], 40, &[0, 10, 20]),
            // What is old behind what is young and far goes with it.
            (both, &[(0, 99), (10, 99), (20, 3), (30, 99)], 40, &[0, 10, 20]),
            (both, &[(0, 1), (20, 99), (30, 3), (40, 99)], 50, &[0]),
        ];
        for (keeps, listed, persisted, expected) in cases {
            let fragments = listed.iter().copied().map(fragment).collect();
            let gone = keeps.before_first(fragments, persisted.into());
            let begins: Vec<_> = gone.iter().map(Fragment::begin).collect();
            let expected: Vec<_> = expected.iter().map(|begin| Offset::from(*begin)).collect();
            assert_eq!(begins, expected, "{keeps:?} {listed:?}");
        }
    }
}
