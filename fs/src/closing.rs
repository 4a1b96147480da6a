//! What is left to a close, and to a crash: it is committed though nobody waits for it, or set
//! aside for people to look at, and `.courant/status` tells which.

use crate::limits::{CLOSING_PAUSE_MAX, TAKEN_UP_AT_ONCE};
use crate::nodes::{Node, Role};
use crate::patience::patiently;
use crate::staging::{Draft, Manner, Staging};
use crate::{Error, Filesystem, HandleId, Wait};
use client::blocking::off_thread;
use client::{Appended, Error as Failure};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use std::sync::Arc;
use std::time::Duration;

const PAUSE_FIRST: Duration = Duration::from_millis(250);

pub(crate) const MAY_BE_THERE: &str =
    "the broker knows no writers, and may have appended it: compare";

impl Filesystem {
    /// The last descriptor is closed. What the handle pinned is free; what it has waiting is
    /// committed by the returned work, which nobody waits for: its end is told in
    /// `.courant/status`.
    pub fn release(self: &Arc<Self>, handle: HandleId) -> Option<Wait<()>> {
        let handle = self.handles.remove(handle)?;
        if let Role::Journal(shown, _) = handle.node.role() {
            self.foresight.disturb(shown.journal());
        }
        let pen = handle.pen.clone()?;
        let is_idle = pen.try_lock().is_ok_and(|mut pen| pen.waiting().is_none());
        let staging = self.staging.clone().filter(|_| !is_idle)?;
        let (fs, node) = (self.clone(), handle.node.clone());
        let going = (self.pending.begin(), staging.closing.begin());
        // Here, and not when the work comes to run: in the order of the closes.
        let mut turn = Box::pin(node.closing());
        let held = turn.as_mut().now_or_never();
        Some(Box::pin(async move {
            let mut pen = pen.lock_owned().await;
            let (waiting, spoiled) = (pen.take(), pen.spoiled.take());
            drop(pen);
            if let Some(mut draft) = waiting {
                if let Some(error) = spoiled {
                    let (journal, bytes) = (&draft.header().journal, draft.len());
                    report(&staging, format!("{journal} {bytes} bytes dropped: {error}"));
                    draft.discard();
                    return Ok(());
                }
                seal_closed(&mut draft);
                let _turn = match held {
                    Some(held) => held,
                    None => turn.await,
                };
                fs.finish(&staging, draft, Some(&node)).await;
            }
            drop(going);
            Ok(())
        }))
    }

    /// Waits until all is committed that programs do not wait for themselves.
    pub async fn settled(&self) {
        self.pending.over().await;
    }

    /// Commits what an earlier mount left in the staging directory, as far as it was to be
    /// committed; the rest is set aside. Called once, before or while files are served.
    pub fn recover(self: &Arc<Self>) -> Wait<()> {
        let fs = self.clone();
        Box::pin(async move {
            let Some(staging) = fs.staging.clone() else { return Ok(()) };
            let from = staging.clone();
            let left = off_thread(move || from.take_left()).await;
            // One that can't be committed does not keep the others.
            let taking = stream::iter(left).for_each_concurrent(TAKEN_UP_AT_ONCE, |found| async {
                match found {
                    Ok(draft) => fs.take_up(&staging, draft).await,
                    Err((number, error)) => {
                        let place = staging.set_aside(number);
                        report(&staging, format!("damaged {}: {error}", place.display()));
                    }
                }
            });
            taking.await;
            Ok(())
        })
    }

    async fn take_up(&self, staging: &Staging, draft: Draft) {
        if draft.is_empty() {
            return draft.discard();
        }
        if draft.header().manner == Manner::Whole && !draft.is_sealed() {
            // Nobody closed it: it is not known to be all.
            return aside(staging, draft, "the mount ended before the file was closed");
        }
        if draft.is_sealed() && !self.journals.knows_writers() {
            return aside(staging, draft, MAY_BE_THERE);
        }
        tracing::info!(journal = %draft.header().journal, bytes = draft.len(), "taken up again");
        self.finish(staging, draft, None).await;
    }

    /// Commits a draft whose file is closed, however long its broker is away; what can't be
    /// committed is set aside.
    async fn finish(&self, staging: &Staging, mut draft: Draft, node: Option<&Node>) {
        let mut pause = PAUSE_FIRST;
        loop {
            let (journal, manner) = (draft.header().journal.clone(), draft.header().manner);
            let error = match self.finish_once(&mut draft, node).await {
                Ok(appended) => {
                    tracing::debug!(%journal, span = %appended.span, "committed after its close");
                    if manner == Manner::Whole {
                        staging.outcomes.tell(format!("{journal} {} committed", appended.span));
                    }
                    return draft.discard();
                }
                Err(error) => error,
            };
            match &error {
                // Its file was removed before it had a byte.
                Error::Stale if draft.header().life.is_none() => return draft.discard(),
                // A later append of the same draft is there, so this one is.
                Error::Journals(Failure::StaleSequence(..)) => return draft.discard(),
                Error::Journals(Failure::Unknown) if !self.journals.knows_writers() => {
                    return aside(staging, draft, MAY_BE_THERE);
                }
                error if passes(error) => {}
                error => return aside(staging, draft, &error.to_string()),
            }
            seal_closed(&mut draft);
            tracing::warn!(%error, %journal, bytes = draft.len(), "not committed yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(CLOSING_PAUSE_MAX);
        }
    }

    async fn finish_once(&self, draft: &mut Draft, node: Option<&Node>) -> Result<Appended, Error> {
        let journal = draft.header().journal.clone();
        if let Some(life) = draft.header().life {
            return self.send(draft, &journal, life).await;
        }
        if let Some(node) = node {
            // Its name may be another one than at the close.
            let shown = self.writable(node, None).await?;
            return self.send(draft, shown.journal(), shown.life()).await;
        }
        let ask = || self.journals.create(&journal);
        let life = patiently(self.options.write_timeout, ask).await?.life;
        self.send(draft, &journal, life).await
    }
}

/// Says of a whole file that it was closed: after a crash it is committed too.
fn seal_closed(draft: &mut Draft) {
    if draft.header().manner == Manner::Lines || draft.is_sealed() {
        return;
    }
    if let Err(error) = draft.seal() {
        tracing::warn!(%error, "a crash would leave a closed file aside");
    }
}

/// Whether it is worth asking again in a while.
fn passes(error: &Error) -> bool {
    matches!(
        error,
        Error::Journals(
            Failure::Later(_)
                | Failure::Unreachable(_)
                | Failure::Unknown
                | Failure::NoSpace(..)
                | Failure::OverRate { .. }
                | Failure::OverSize { .. }
                | Failure::Unauthorized(_)
        )
    )
}

/// Leaves a draft's file to people, and says where it is.
pub(crate) fn aside(staging: &Staging, draft: Draft, why: &str) {
    let (journal, bytes) = (draft.header().journal.clone(), draft.len());
    let place = draft.set_aside();
    let place = place.display();
    report(staging, format!("{journal} {bytes} bytes set aside in {place}: {why}"));
}

fn report(staging: &Staging, outcome: String) {
    tracing::error!("{outcome}");
    staging.outcomes.tell(outcome);
}
