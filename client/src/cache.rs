//! Journals with a local cache: what was read once is local, and what is local and whole is lent to
//! the kernel.
//!
//! Each life of a journal that is read has a mirror, a sparse file in which byte *o* of the journal
//! is at offset *o*. What of it is there is known in memory, and in a list that is written at a
//! clean stop alone: a cache that was not closed cleanly on this boot is begun anew.
//!
//! Committed bytes never change, so what is here is right for as long as the journal's life. What
//! is asked of the broker all the same is the head, at each stat and at each read there. A lent
//! mirror is kept at the head by whoever changes or asks for it, and by a task: reads of the
//! kernel's follow appends from elsewhere within moments, and are never behind a size that was
//! told.

#[cfg(test)]
mod double;
mod fetches;
mod follow;
mod kept;
mod limits;
mod loan;
mod mirrors;
mod recall;
mod refused;
mod saved;
mod shared;
#[cfg(test)]
mod tests;
mod totals;
mod usage;

pub use refused::Refused;

use crate::journals::{Append, Appended, Journals, Loan, Read, Space, Stat, Wait};
use crate::{Away, Error};
use bytes::Bytes;
use fetches::Fetches;
use index::blocking::off_thread;
use index::disk::Disk;
use mirrors::Mirrors;
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, Life, Offset, Span};
use shared::Shared;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// See the module.
pub struct Cached {
    shared: Arc<Shared>,
    fetches: Fetches,
}

impl Cached {
    /// Journals of `inner` with mirrors on `disk`, which hold up to `budget` bytes together; what
    /// is lent counts, and is asked back where it grows beyond that. `source` names where the
    /// journals come from. Needs a tokio runtime around it.
    pub fn open(
        inner: Arc<dyn Journals>,
        disk: Arc<dyn Disk>,
        budget: u64,
        source: &str,
    ) -> Result<Self, Refused> {
        let mirrors = Mirrors::open(disk, budget, source.to_owned())?;
        let census = inner.census();
        Ok(Cached { shared: Arc::new(Shared { inner, mirrors, census }), fetches: Fetches::new() })
    }

    /// Puts the cache away, so that the next mount on this boot goes on with it. Nothing may be
    /// asked of it after that.
    pub async fn close(&self) {
        self.fetches.end().await;
        let shared = self.shared.clone();
        if let Err(error) = off_thread(move || shared.mirrors.save()).await {
            tracing::warn!(%error, "the cache can't be put away: the next mount begins it anew");
        }
    }

    /// What is told, which the mirrors learn.
    async fn learning(&self, asking: Wait<'_, Vec<Stat>>) -> Result<Vec<Stat>, Error> {
        let stats = asking.await?;
        for stat in &stats {
            self.shared.mirrors.learn(stat);
        }
        Ok(stats)
    }

    async fn read_kept(&self, read: Read, life: Life) -> Result<Bytes, Error> {
        let (shared, offset, max) = (&self.shared, read.offset, read.max);
        let kept = match shared.kept(&read.journal, life).await? {
            Some(kept) if max > 0 => kept,
            _ => return shared.inner.read(read).await,
        };
        let mut local = shared.local(&kept, offset, max).await;
        if local.is_none() && offset < kept.head() {
            self.fetches.want(shared, &kept, offset, max).await;
            local = shared.local(&kept, offset, max).await;
        }
        let bytes = match local {
            Some(bytes) => bytes,
            // At the head, or where a fetch came to nothing: the answer, or the error, is told.
            None => shared.fetch(&kept, offset, max).await?.0,
        };
        self.fetches.go_on(shared, &kept, Span::at(offset, bytes.len() as u64));
        Ok(bytes)
    }
}

impl Journals for Cached {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        Box::pin(self.learning(self.shared.inner.list(prefix)))
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            let stat = self.shared.inner.stat(journal).await;
            match &stat {
                Ok(stat) => self.shared.settle(stat).await,
                Err(Error::NotFound(_)) => self.shared.gone(journal),
                Err(_) => {}
            }
            stat
        })
    }

    /// Not even small growth is fetched here: what is lent is kept at its head by others.
    fn stats<'a>(&'a self, journals: &'a [Journal]) -> Option<Wait<'a, Vec<Stat>>> {
        let asking = self.shared.inner.stats(journals)?;
        Some(Box::pin(self.learning(asking)))
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            let appended = self.shared.inner.append(append.clone()).await?;
            self.shared.appended(&append, &appended).await;
            Ok(appended)
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        match read.life {
            Some(life) => Box::pin(self.read_kept(read, life)),
            None => self.shared.inner.read(read),
        }
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            let stat = self.shared.inner.grown(journal, life, beyond).await?;
            self.shared.settle(&stat).await;
            Ok(stat)
        })
    }

    fn census(&self) -> watch::Receiver<u64> {
        self.shared.inner.census()
    }

    fn sync<'a>(&'a self, journal: &'a Journal, below: Offset) -> Wait<'a, ()> {
        self.shared.inner.sync(journal, below)
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        self.shared.inner.create(journal)
    }

    fn may_create(&self, journal: &Journal) -> Result<(), Error> {
        self.shared.inner.may_create(journal)
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        Box::pin(async move {
            self.shared.inner.purge(journal).await?;
            self.shared.gone(journal);
            Ok(())
        })
    }

    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>> {
        self.shared.inner.stored(journal, from, max)
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        self.shared.inner.spec(journal)
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        self.shared.inner.change(change)
    }

    fn has_specs(&self) -> bool {
        self.shared.inner.has_specs()
    }

    fn lend(&self, journal: &Journal) -> Option<Loan> {
        let (kept, loan) = self.shared.mirrors.lend(journal)?;
        if kept.starts_follow() {
            self.fetches.spawn(follow::follow(self.shared.clone(), kept));
        }
        Some(loan)
    }

    fn may_lend(&self, journal: &Journal, life: Life) -> bool {
        self.shared.mirrors.may_lend(journal, life)
    }

    fn revocations(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.shared.mirrors.recalls.watch()
    }

    fn knows_writers(&self) -> bool {
        self.shared.inner.knows_writers()
    }

    fn space(&self) -> Space {
        self.shared.inner.space()
    }

    fn away(&self) -> Option<Away> {
        self.shared.inner.away()
    }

    fn state(&self) -> Vec<(&'static str, u64)> {
        let mirrors = &self.shared.mirrors;
        let sums = mirrors.sums();
        vec![
            ("cache-bytes", sums.len),
            ("cache-budget-bytes", mirrors.budget()),
            ("cache-journals", mirrors.len() as u64),
            ("cache-lent-journals", sums.lent as u64),
            ("cache-lent-bytes", sums.lent_len),
        ]
    }
}
