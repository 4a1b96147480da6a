//! The broker as [`client::Journals`]: files are made on it with no network between.
//!
//! What needs no waiting is done at the first poll: an append in memory to an idle journal, a stat,
//! a local read.

use crate::error::refusal;
use crate::read::{gone, read_local};
use crate::served::{Gap, Place};
use crate::specs::Purge;
use crate::{Broker, Committed, Error, Resolution, Served, Terms};
use bytes::Bytes;
use client::{Append, Appended, Error as Seen, Journals, Loan, Read, Space, Staged, Stat, Wait};
use cluster::{Expect, Outcome};
use futures::TryStreamExt;
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, LabelSet, Life, Offset, Span, Status};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

/// How often a read follows bytes that move from the mirror to a store while it looks.
const MOVES_MAX: usize = 8;

impl Journals for Broker {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        let stats = self.served_below(prefix).iter().map(|served| served.stat()).collect();
        Box::pin(std::future::ready(Ok(stats)))
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            let served = self.look_up(journal, None)?;
            Broker::stat(self, &served).await.map_err(|error| error.for_client(journal))
        })
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            let journal = append.journal.clone();
            self.append_file(append).await.map_err(|error| error.for_client(&journal))
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(async move {
            let served = self.look_up(&read.journal, read.life)?;
            let bytes = self.read_at(&served, read.offset, read.max).await;
            bytes.map_err(|error| error.for_client(&read.journal))
        })
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            let served = self.look_up(journal, None)?;
            if served.life() != life {
                return Ok(served.stat());
            }
            let mut head = served.replica().watch();
            let grown = async {
                // What this gives holds the head, which an append raises under the journal's lock:
                // it is gone before anything else of the journal is asked. An error means that the
                // replica is gone, which a look shows.
                let _ = head.wait_for(|head| head.is_gone || head.offset > beyond).await;
            };
            tokio::select! {
                biased;
                () = self.closed() => Err(Error::Closing.for_client(journal)),
                () = grown => Ok(self.look_up(journal, None)?.stat()),
            }
        })
    }

    fn census(&self) -> watch::Receiver<u64> {
        Broker::census(self)
    }

    fn sync<'a>(&'a self, journal: &'a Journal, below: Offset) -> Wait<'a, ()> {
        Box::pin(async move {
            let served = self.look_up(journal, None)?;
            Broker::sync(self, &served, below).await.map_err(|error| error.for_client(journal))
        })
    }

    fn sync_soon(&self) {
        self.data().sync_soon();
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            let created = Broker::create(self, journal).await;
            let (served, _) = created.map_err(|error| error.for_client(journal))?;
            Ok(served.stat())
        })
    }

    fn may_create(&self, journal: &Journal) -> Result<(), Seen> {
        Broker::may_create(self, journal).map_err(|refused| refusal(&refused))
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        Box::pin(async move {
            let deleted = self.delete(journal, Expect::Any, Purge::Objects).await;
            deleted.map(drop).map_err(|error| error.for_client(journal))
        })
    }

    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>> {
        Box::pin(async move {
            let served = self.look_up(journal, None)?;
            let allowed = served.must_be_readable();
            allowed.map_err(|error| error.for_client(journal))?;
            let listed = self.wait_listed(&served).await;
            listed.map_err(|error| error.for_client(journal))?;
            Ok(served.stored().some_from(from, max, |_| true))
        })
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        Box::pin(async move {
            let entry = self.look_up(journal, None)?.entry();
            Ok(ListedJournal {
                spec: entry.spec.clone(),
                mod_revision: entry.mod_revision,
                create_revision: entry.create_revision,
                route: self.own_route(),
            })
        })
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        Box::pin(async move {
            let journal = change.journal().clone();
            let applied = Broker::apply(self, vec![change.into()]).await;
            match applied.map_err(|error| error.for_client(&journal))? {
                Outcome::Applied { revision } => Ok(revision),
                Outcome::Conflict { revision, journal } => Err(Seen::Conflict(journal, revision)),
            }
        })
    }

    fn lend(&self, journal: &Journal) -> Option<Loan> {
        let served = self.served(journal)?;
        if self.shared.revocations.has(served.life()) {
            return None;
        }
        let pin = served.replica().lend().ok().flatten()?;
        Loan::of(pin.file().clone(), served.life(), pin)
    }

    fn revocations(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.shared.revocations.watch()
    }

    fn space(&self) -> Space {
        match self.shared.data.disk().space() {
            Ok(space) => Space { total: space.total, free: space.free },
            Err(error) => {
                tracing::warn!(%error, "the room of the data directory is unknown");
                Space::default()
            }
        }
    }
}

impl Broker {
    fn look_up(&self, journal: &Journal, life: Option<Life>) -> Result<Arc<Served>, Seen> {
        match self.served(journal) {
            Some(served) if life.is_none_or(|life| life == served.life()) => Ok(served),
            // The journal of the handle is gone, whether or not another has its name.
            _ if life.is_some() => Err(Seen::Deleted(journal.clone())),
            _ => Err(Seen::NotFound(journal.clone())),
        }
    }

    async fn append_file(&self, append: Append) -> Result<Appended, Error> {
        let resolution = self.resolve_now(&append.journal);
        if append.life.is_some() && resolution.status == Status::JournalNotFound {
            return Err(Error::Deleted(append.journal));
        }
        let set = |labels: LabelSet| (!labels.is_empty()).then_some(labels);
        let terms = Terms {
            life: append.life,
            offset: append.offset,
            check_registers: append.check_registers,
            union_registers: set(append.union_registers),
            subtract_registers: set(append.subtract_registers),
            writer: append.writer,
            rate_wait: append.rate_wait,
            durability: append.durability,
            ..Terms::default()
        };
        let committed = match append.staged {
            None => self.append_bytes(resolution, terms, append.content).await?,
            Some(rest) => {
                Box::pin(self.append_staged(resolution, terms, append.content, rest)).await?
            }
        };
        let (span, life) = (committed.span, committed.life);
        Ok(Appended { span, life, repeated: committed.is_repeated })
    }

    /// Appends bytes and what follows them in a local file of the caller, as one whole append.
    async fn append_staged(
        &self,
        resolution: Resolution,
        terms: Terms,
        first: Bytes,
        rest: Staged,
    ) -> Result<Committed, Error> {
        let mut stager = self.begin_append(resolution, terms, &self.connection()).await?;
        stager.push(first).await?;
        let unreadable = |source| {
            let path = "the staged content of a mount".into();
            Error::Local(index::Error::Disk { operation: "read", path, source })
        };
        stager.push_all(rest.pieces().map_err(unreadable)).await?;
        stager.finish().await?.commit().await
    }

    /// Bytes at `offset`, from wherever they are; none at the head.
    pub async fn read_at(
        &self,
        served: &Arc<Served>,
        offset: Offset,
        max: usize,
    ) -> Result<Bytes, Error> {
        self.known(served).await?;
        served.must_be_readable()?;
        for _ in 0..MOVES_MAX {
            match served.place(offset) {
                _ if max == 0 => return Ok(Bytes::new()),
                Place::Ahead => return Ok(Bytes::new()),
                Place::Local(span) => {
                    let len = usize::try_from(span.len()).unwrap_or(usize::MAX).min(max);
                    match read_local(served.replica(), offset, len).await {
                        Ok(bytes) => return Ok(bytes),
                        // Evicted meanwhile: a store has it.
                        Err(index::Error::NotLocal { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Place::Stored(fragment) => {
                    let remote = &self.shared.remote;
                    let bytes = remote.read(self, served, &fragment, offset, max).await?;
                    served.traffic().add_fetched(fragment.codec, bytes.len());
                    return Ok(bytes);
                }
                Place::Gap(Gap::Missing, _) if !served.stored().is_listed() => {
                    self.wait_listed(served).await?;
                }
                Place::Gap(gap, span) => {
                    let next = served.readable_from(span.end());
                    let next = next.unwrap_or_else(|| served.replica().head());
                    return Err(gone(served, gap, Span::between(offset, next)));
                }
            }
        }
        Err(index::Error::NotLocal { life: served.life(), offset }.into())
    }
}
