//! Suspending and resuming a journal (gazette-spec 2.9).
//!
//! A broker that stands alone keeps its one replica at every level: what suspension means here is
//! what requests are answered. Resumed, a journal goes on no lower than where it was suspended.

use super::{Target, Terms};
use crate::{Broker, Error, Served};
use cluster::{Change, Expect, Outcome};
use index::Turn;
use protocol::request::AppendSuspend;
use protocol::{Fragment, Offset, Suspend, SuspendLevel};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// A journal that is never flushed by time counts as flushed after a day (gazette-spec 2.9).
const FLUSHED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Tries to change a spec that others change as well.
const TRIES: usize = 8;

pub(super) fn level(served: &Served) -> SuspendLevel {
    served.entry().spec.suspend.map(|suspend| suspend.level).unwrap_or_default()
}

/// Refuses an append to a suspended journal that it may not resume.
pub(super) fn check(served: &Served, terms: &Terms) -> Result<(), Error> {
    let is_suspended = level(served) != SuspendLevel::None;
    if is_suspended && terms.suspend == AppendSuspend::NoResume {
        return Err(Error::Suspended { journal: served.journal().clone() });
    }
    Ok(())
}

/// Suspends the journal, where the append asks for that and the journal is ready for it. Success
/// is the error `Suspended`: what suspends a journal is told so.
pub(super) async fn suspend(target: &Target, turn: &Turn) -> Result<(), Error> {
    let served = &target.served;
    let is_forced = match target.terms.suspend {
        AppendSuspend::Now => true,
        AppendSuspend::IfFlushed => false,
        AppendSuspend::Resume | AppendSuspend::NoResume | AppendSuspend::Keep => return Ok(()),
    };
    let head = turn.head();
    let now_s = target.broker.shared.config.clock.now_us() / 1_000_000;
    let suspended = match level(served) {
        SuspendLevel::Full => return Ok(()),
        _ if is_empty(served) => SuspendLevel::Full,
        SuspendLevel::None if is_forced || is_flushed(served, now_s) => SuspendLevel::Partial,
        SuspendLevel::None => return Ok(()),
        SuspendLevel::Partial => {
            return Err(Error::Suspended { journal: served.journal().clone() });
        }
    };
    served.replica().roll()?;
    let suspend = Suspend { level: suspended, offset: head };
    target.broker.set_suspend(served, |_| suspend).await?;
    Err(Error::Suspended { journal: served.journal().clone() })
}

fn is_empty(served: &Served) -> bool {
    served.stored().is_listed()
        && served.stored().fragments() == 0
        && served.unpersisted().is_empty()
        && served.replica().local_len() == 0
}

/// Whether all is stored, and has been for a while.
fn is_flushed(served: &Served, now_s: u64) -> bool {
    let interval = served.entry().spec.fragment.flush_interval;
    let interval = if interval.is_zero() { FLUSHED_AFTER } else { interval };
    let is_old = |fragment: &Fragment| {
        let stored = UNIX_EPOCH + Duration::from_secs(fragment.mod_time.unsigned_abs());
        stored + interval < UNIX_EPOCH + Duration::from_secs(now_s)
    };
    let fragments = served.stored().all();
    served.unpersisted().is_empty() && fragments.last().is_some_and(is_old)
}

impl Broker {
    /// Ends a suspension. The offset stays, so that no later replica begins below it.
    pub(super) async fn resume_journal(&self, served: &Arc<Served>) -> Result<(), Error> {
        if level(served) == SuspendLevel::None {
            return Ok(());
        }
        let head = served.replica().head();
        let resumed = |old: Suspend| {
            let offset = old.offset.max(head);
            Suspend { level: SuspendLevel::None, offset }
        };
        self.set_suspend(served, resumed).await
    }

    async fn set_suspend(
        &self,
        served: &Arc<Served>,
        change: impl Fn(Suspend) -> Suspend,
    ) -> Result<(), Error> {
        let journal = served.journal();
        let mut revision = 0;
        for _ in 0..TRIES {
            let entry = self.shared.keys.get(journal);
            let entry = entry.ok_or_else(|| Error::Deleted(journal.clone()))?;
            let none = Suspend { level: SuspendLevel::None, offset: Offset::ZERO };
            let mut spec = entry.spec.clone();
            spec.suspend = Some(change(spec.suspend.unwrap_or(none)));
            let expect = Expect::At(entry.mod_revision);
            match self.update(served, Change::Upsert { spec, expect }).await? {
                Outcome::Applied { .. } => return Ok(()),
                Outcome::Conflict { revision: at, .. } => revision = at,
            }
        }
        Err(Error::Conflict { journal: journal.clone(), revision })
    }

    /// Replaces the spec of a journal that exists. Unlike [`Broker::apply`] it waits for no
    /// creation or deletion: one of those may wait for the turn that the caller holds.
    async fn update(&self, served: &Arc<Served>, change: Change) -> Result<Outcome, Error> {
        let (keys, served) = (self.shared.keys.clone(), served.clone());
        // A task of its own: key space and journal are told together, or neither.
        let task = tokio::spawn(async move {
            let outcome = keys.apply(vec![change]).await?;
            match keys.get(served.journal()) {
                Some(entry) if entry.life == served.life() => served.set_entry(entry),
                _ => {}
            }
            Ok(outcome)
        });
        task.await.unwrap_or(Err(Error::Closing))
    }
}
