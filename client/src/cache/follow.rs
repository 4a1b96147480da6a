//! Following the journals that the kernel reads itself: it sees the mirror's file and nothing else.

use super::kept::Kept;
use super::limits::RECALL_PAUSE;
use super::shared::Shared;
use crate::Error;
use crate::retry::Pauses;
use index::blocking::off_thread;
use std::sync::Arc;
use tokio::time::sleep;

/// Keeps a lent mirror at its journal's head until the last loan is given back. What it grew by
/// beyond the budget goes then.
pub(super) async fn follow(shared: Arc<Shared>, kept: Arc<Kept>) {
    let mut pauses = Pauses::new(kept.life.get());
    while goes_on(&kept) {
        let dense_to = kept.state().dense_to();
        tokio::select! {
            biased;
            () = kept.returned.notified() => {}
            // Others may have been asked back meanwhile, or had a writer then.
            () = sleep(RECALL_PAUSE), if shared.mirrors.is_over() => free_excess(&shared).await,
            grown = shared.inner.grown(&kept.journal, kept.life, dense_to) => match grown {
                Ok(stat) if stat.life == kept.life => {
                    shared.mirrors.learn(&stat);
                    shared.catch_up(&kept, stat.head).await;
                    if kept.state().dense_to() > dense_to {
                        pauses.reset();
                    } else {
                        // The local disk fails, or the bytes can't be had.
                        pauses.pause().await;
                    }
                }
                Ok(_) | Err(Error::NotFound(_) | Error::Deleted(_)) => {
                    shared.mirrors.forget(&kept);
                }
                Err(error) => {
                    tracing::debug!(%error, journal = %kept.journal, "following is tried again");
                    pauses.pause().await;
                }
            },
        }
    }
    if shared.mirrors.is_over() {
        free_excess(&shared).await;
    }
    if !kept.is_lent() || kept.is_gone() {
        shared.mirrors.recalls.returned(kept.life);
    }
}

async fn free_excess(shared: &Arc<Shared>) {
    let shared = shared.clone();
    off_thread(move || shared.mirrors.free_excess()).await;
}

/// Whether the mirror is still lent. If not, the next loan has it followed anew.
fn goes_on(kept: &Kept) -> bool {
    let mut state = kept.state();
    state.is_followed = state.loans > 0 && !state.is_gone;
    state.is_followed
}

impl Kept {
    /// Whether somebody has to begin to follow it, who does so.
    pub(super) fn starts_follow(&self) -> bool {
        let mut state = self.state();
        state.loans > 0 && !std::mem::replace(&mut state.is_followed, true)
    }
}
