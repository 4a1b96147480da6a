//! A head that is behind: of the journal's store, or of where the journal was suspended.
//!
//! A store that ends above the head has a second writer's bytes. Appends stop there until somebody
//! who knows says where the journal goes on, by naming that end: `reset-head` (gazette-spec 2.2,
//! step 7). The head then jumps, so that nothing is lost and no offset has two contents: local
//! bytes stay, the others' are served from the store, and what nobody has is recorded as lost.

use super::{Target, check};
use crate::stored::take_over;
use crate::{Error, Served, limits};
use index::Turn;
use index::spans::SpanSet;
use index::store::StoreError;
use protocol::{Fragment, LabelSet, Offset};
use tokio::time::timeout;

/// Whether the head is behind, which it hardly ever is.
pub(super) fn is_behind(target: &Target, turn: &Turn) -> bool {
    target.served.stored().end().max(suspended_at(target)) > turn.head()
}

/// Brings the head to where the journal was suspended and to where its store ends, or says why that
/// can't be.
pub(super) async fn follow(target: &Target, turn: &mut Turn) -> Result<(), Error> {
    follow_suspension(target, turn).await?;
    follow_store(target, turn).await
}

fn suspended_at(target: &Target) -> Offset {
    target.served.entry().spec.suspend.map(|suspend| suspend.offset).unwrap_or_default()
}

async fn follow_store(target: &Target, turn: &mut Turn) -> Result<(), Error> {
    let served = &target.served;
    let stored = served.stored().end();
    let head = turn.head();
    if stored <= head || check::is_repeated(target) {
        return Ok(());
    }
    if served.replica().is_blank() {
        // It was listed as empty, and somebody wrote to its store since: nothing is in the way.
        let registers = registers_at(target, stored).await?.unwrap_or_default();
        return take_over(served.replica(), turn, stored, registers).await;
    }
    let journal = served.journal().clone();
    match target.terms.offset {
        Some(expected) if expected == stored => {
            tracing::warn!(%journal, %head, %stored, "the head jumps to the end of its store");
            let registers = registers_at(target, stored).await?;
            jump(served, turn, stored, registers).await?;
            served.stored().overtook();
            Ok(())
        }
        Some(expected) => Err(Error::WrongOffset { journal, expected, head: stored }),
        None if served.entry().spec.flags.may_write() => {
            Err(Error::StoreIsAhead { journal, stored, head })
        }
        // Nothing is appended to it, so nothing can go wrong.
        None => Ok(()),
    }
}

/// What lies below where the journal was suspended was given to readers once (gazette-spec 2.9).
async fn follow_suspension(target: &Target, turn: &mut Turn) -> Result<(), Error> {
    let served = &target.served;
    let suspended = suspended_at(target);
    if suspended <= turn.head() {
        return Ok(());
    }
    if served.replica().is_blank() {
        return Ok(served.replica().adopt(suspended)?);
    }
    jump(served, turn, suspended, None).await
}

/// The registers that who stored the last fragment had then. `None` where it says nothing of them.
///
/// They belong to the end that is taken over: the log goes on from there with what its last append
/// left, as a replica of that broker would.
async fn registers_at(target: &Target, end: Offset) -> Result<Option<LabelSet>, Error> {
    let served = &target.served;
    let fragments = served.stored().all();
    let Some(last) = fragments.iter().find(|fragment| fragment.end() == end) else {
        return Ok(None);
    };
    let store = target.broker.stores().get(&last.backing_store)?;
    let registers = match timeout(limits::LISTING_WAIT, store.registers(last)).await {
        Ok(registers) => registers?,
        Err(_elapsed) => {
            let store = store.url().to_owned();
            let detail = "it takes long to tell the registers of the last fragment".to_owned();
            return Err(StoreError::Unhealthy { store, detail }.into());
        }
    };
    Ok((!registers.is_empty()).then_some(registers))
}

async fn jump(
    served: &Served,
    turn: &mut Turn,
    to: Offset,
    registers: Option<LabelSet>,
) -> Result<(), Error> {
    let stored: SpanSet =
        served.stored().all().iter().map(|fragment: &Fragment| fragment.span).collect();
    turn.jump(to, &stored, registers)?.done().await?;
    served.forget_view();
    Ok(())
}
