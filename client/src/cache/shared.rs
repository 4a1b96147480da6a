//! What the tasks of a cache share: where bytes come from, and where they go.

use super::kept::Kept;
use super::limits::{CATCH_UP_MAX, GROWTH_MAX, INLINE_READ, PIECE_MAX};
use super::mirrors::Mirrors;
use crate::{Append, Appended, Error, Journals, Read, Stat};
use bytes::Bytes;
use index::blocking::off_thread;
use protocol::{Journal, Life, Offset};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;
use tokio::time::timeout;

/// See the module.
pub(super) struct Shared {
    pub inner: Arc<dyn Journals>,
    pub mirrors: Mirrors,
    pub census: watch::Receiver<u64>,
}

impl Shared {
    /// The mirror of a life of a journal, made if there is none. `None` where nothing is kept.
    ///
    /// A journal may have been deleted whenever the census changed; then its life is asked for
    /// before its bytes are shown.
    pub async fn kept(&self, journal: &Journal, life: Life) -> Result<Option<Arc<Kept>>, Error> {
        let census = *self.census.borrow();
        let known = self.mirrors.of(journal, life);
        if let Some(kept) = known.filter(|kept| kept.census_known() == census) {
            return Ok(Some(kept));
        }
        let stat = match self.inner.stat(journal).await {
            Err(error @ Error::NotFound(_)) => {
                self.gone(journal);
                return Err(error);
            }
            stat => stat?,
        };
        if stat.life != life {
            self.mirrors.learn(&stat);
            return Err(Error::Deleted(journal.clone()));
        }
        if stat.head == Offset::ZERO {
            return Ok(None);
        }
        let kept = self.mirrors.make(&stat);
        if let Some(kept) = &kept {
            kept.census.store(census, Ordering::Relaxed);
        }
        Ok(kept)
    }

    /// The journal does not exist any more.
    pub fn gone(&self, journal: &Journal) {
        if let Some(kept) = self.mirrors.find(journal) {
            self.mirrors.forget(&kept);
        }
    }

    /// Local bytes at an offset, or `None`.
    pub async fn local(&self, kept: &Arc<Kept>, offset: Offset, max: usize) -> Option<Bytes> {
        let tick = self.mirrors.tick();
        match kept.local_len(offset, max) {
            0 => None,
            len if len <= INLINE_READ || kept.is_cached(offset, len) => {
                kept.read(offset, max, tick)
            }
            _ => {
                let kept = kept.clone();
                off_thread(move || kept.read(offset, max, tick)).await
            }
        }
    }

    /// Reads from where the journal is, and keeps what came.
    pub async fn fetch(
        self: &Arc<Self>,
        kept: &Arc<Kept>,
        offset: Offset,
        max: usize,
    ) -> Result<(Bytes, bool), Error> {
        let (journal, life) = (kept.journal.clone(), Some(kept.life));
        let bytes = self.inner.read(Read { journal, life, offset, max }).await?;
        let is_kept = !bytes.is_empty() && self.keep(kept, offset, bytes.clone()).await;
        Ok((bytes, is_kept))
    }

    async fn keep(self: &Arc<Self>, kept: &Arc<Kept>, offset: Offset, content: Bytes) -> bool {
        if content.len() <= INLINE_READ / 4 {
            return self.mirrors.keep(kept, offset, &content);
        }
        let (shared, kept) = (self.clone(), kept.clone());
        off_thread(move || shared.mirrors.keep(&kept, offset, &content)).await
    }

    /// Takes note of what a journal is before somebody is told. Where the kernel reads its mirror,
    /// or did so before it grew a little, the mirror has as many bytes when this returns, unless
    /// they don't come in time.
    pub async fn settle(self: &Arc<Self>, stat: &Stat) {
        let Some(kept) = self.mirrors.learn(stat) else { return };
        let lacks = {
            let state = kept.state();
            let within = if state.loans > 0 { u64::MAX } else { GROWTH_MAX };
            state.dense_to() < stat.head && state.is_nearly_whole(within)
        };
        if lacks && timeout(CATCH_UP_MAX, self.catch_up(&kept, stat.head)).await.is_err() {
            tracing::debug!(journal = %stat.journal, "its mirror is behind its head");
        }
    }

    /// Makes a mirror whole up to `head`, as far as that goes.
    pub async fn catch_up(self: &Arc<Self>, kept: &Arc<Kept>, head: Offset) {
        let _turn = kept.turn.lock().await;
        self.catch_up_in_turn(kept, head).await;
    }

    async fn catch_up_in_turn(self: &Arc<Self>, kept: &Arc<Kept>, head: Offset) {
        loop {
            let at = kept.state().dense_to();
            let missing = usize::try_from(head.since(at)).unwrap_or(usize::MAX);
            if missing == 0 || !self.mirrors.takes(kept) {
                return;
            }
            match self.fetch(kept, at, missing.min(PIECE_MAX)).await {
                Ok((_, true)) => {}
                Ok((_, false)) => return,
                Err(error) => {
                    tracing::debug!(%error, journal = %kept.journal, "a mirror stays behind");
                    return;
                }
            }
        }
    }

    /// Keeps what was appended here: a lent mirror has it when this returns, unless that takes too
    /// long.
    pub async fn appended(self: &Arc<Self>, append: &Append, appended: &Appended) {
        let Some(kept) = self.mirrors.of(&append.journal, appended.life) else { return };
        let span = appended.span;
        kept.wrote();
        // A sequence that was used for other content is answered with the span of that.
        let is_this = span.len() == append.content.len() as u64;
        let next = || is_this && self.mirrors.keep_next(&kept, span, &append.content);
        if !kept.is_lent() {
            next();
            return;
        }
        let in_turn = async {
            let _turn = kept.turn.lock().await;
            if !next() {
                self.catch_up_in_turn(&kept, span.end()).await;
            }
        };
        if timeout(CATCH_UP_MAX, in_turn).await.is_err() {
            tracing::debug!(journal = %kept.journal, "its mirror is behind an append");
        }
    }
}
