//! A head that is behind: of the journal's store, or of where the journal was suspended.
//!
//! A store that ends above the head has a second writer's bytes. Appends stop there until somebody
//! who knows says where the journal goes on, by naming that end: `reset-head` (gazette-spec 2.2,
//! step 7). The head then jumps, so that nothing is lost and no offset has two contents: local
//! bytes stay, the others' are served from the store, and what nobody has is recorded as lost.

use super::{Target, check};
use crate::{Error, Served};
use index::Turn;
use index::spans::SpanSet;
use protocol::{Fragment, Offset};

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
    if stored <= head || check::is_repeated(&target.terms, turn) {
        return Ok(());
    }
    if served.replica().is_blank() {
        // It was listed as empty, and somebody wrote to its store since: nothing is in the way.
        return Ok(served.replica().adopt(stored)?);
    }
    let journal = served.journal().clone();
    match target.terms.offset {
        Some(expected) if expected == stored => {
            tracing::warn!(%journal, %head, %stored, "the head jumps to the end of its store");
            jump(served, turn, stored).await?;
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
    jump(served, turn, suspended).await
}

async fn jump(served: &Served, turn: &mut Turn, to: Offset) -> Result<(), Error> {
    let stored: SpanSet =
        served.stored().all().iter().map(|fragment: &Fragment| fragment.span).collect();
    turn.jump(to, &stored)?.done().await?;
    served.forget_view();
    Ok(())
}
