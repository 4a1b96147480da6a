//! A broker over the network: `Journals`, and what operators ask of it besides.
//!
//! Each request is made once; who wants to ask again does so by [`retry`](crate::retry). The broker
//! is asked in `courant.v1` where it speaks that, else in Gazette's protocol, which can do less.

mod courant;
mod door;
#[cfg(test)]
pub(crate) mod double;
mod each;
mod fault;
mod gazette;
mod hold;
mod incoming;
mod operator;
mod outcome;
mod pieces;
mod pulse;
mod snapshots;
mod streams;
mod templates;
mod watch;
mod words;

pub use courant::Deleted;
pub(crate) use door::Door;
pub use door::NO_JOURNAL;
pub(crate) use fault::cause;
pub use hold::{HeldMoment, Holding};
pub(crate) use incoming::{Incoming, Next};
pub use operator::ResetHead;
pub(crate) use pieces::at_least_a_millisecond;
pub use snapshots::Snapshots;
pub use templates::Template;
pub(crate) use words::{About, broken, durability};

use crate::fragments::Fragments;
use crate::journals::{Append, Appended, Journals, Loan, Read, Space, Stat, Wait};
use crate::limits::BLOCKED_READS_MAX;
use crate::{Away, Connect, Error};
use bytes::Bytes;
use index::disk::Disk;
use pieces::Parts;
use protocol::request::{AppendPart, ApplyRequest, Change};
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, Life, Offset};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Journals of a broker that listens at a URL.
pub struct Remote {
    door: Arc<Door>,
    each: each::Each,
    streams: streams::Streams,
    watch: watch::Watch,
    /// Waiters on a Gazette broker.
    blocked: Semaphore,
    _pulse: JoinSet<()>,
    /// Whose room `space` tells.
    disk: Option<Arc<dyn Disk>>,
}

impl Remote {
    /// A client of the broker at `url`, such as `http://127.0.0.1:8080`, without credentials. It
    /// connects with the first request. Needs a tokio runtime around it.
    pub fn new(url: &str) -> Result<Self, Error> {
        Remote::connect(&Connect::new(url)?)
    }

    /// A client of the broker that `connect` leads to, with its credentials. It connects with the
    /// first request. Needs a tokio runtime around it.
    pub fn connect(connect: &Connect) -> Result<Self, Error> {
        let door = Arc::new(Door::new(connect)?);
        Ok(Remote {
            watch: watch::Watch::new(door.clone()),
            each: each::Each::new(door.clone()),
            _pulse: pulse::start(door.clone()),
            door,
            streams: streams::Streams::new(Arc::new(Fragments::new(None))),
            blocked: Semaphore::new(BLOCKED_READS_MAX),
            disk: None,
        })
    }

    /// Refuses a URL that no broker is reached by, without asking anybody.
    pub fn check_url(url: &str) -> Result<(), Error> {
        Connect::new(url).map(drop)
    }

    /// Tells the room of `disk` as that for new bytes.
    #[must_use]
    pub fn with_room_of(self, disk: Arc<dyn Disk>) -> Self {
        Remote { disk: Some(disk), ..self }
    }

    /// The URL that it was made with.
    pub fn url(&self) -> &str {
        self.door.url()
    }

    /// Since when the broker is away, as far as it was asked for anything; `None` while it is not.
    pub fn presence(&self) -> tokio::sync::watch::Receiver<Option<Away>> {
        self.door.line().away()
    }

    /// Whether a broker is there. Says once what each request would say.
    pub async fn probe(&self) -> Result<(), Error> {
        self.door.is_courant().await.map(drop)
    }

    /// Reads stored fragments of `file` stores from `files`, the root that the broker has as its
    /// `--file-root`. Others are read by signed URL or with this process's credentials anyway.
    #[must_use]
    pub fn with_files(self, files: Arc<dyn Disk>) -> Self {
        let fragments = Arc::new(Fragments::new(Some(files)));
        Remote { streams: streams::Streams::new(fragments), ..self }
    }

    pub(crate) fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// The ways to stored fragments that do not lead through the broker.
    pub(crate) fn fragments_themselves(&self) -> &Arc<Fragments> {
        self.streams.fragments()
    }

    /// Appends content that comes in parts as one whole append, `append.content` first. It happens
    /// only when the parts end with [`AppendPart::Commit`].
    pub async fn append_parts(
        &self,
        append: Append,
        parts: mpsc::Receiver<AppendPart>,
    ) -> Result<Appended, Error> {
        self.append_once(append, Parts::Coming(parts)).await
    }

    async fn append_once(&self, append: Append, parts: Parts) -> Result<Appended, Error> {
        if !self.door.is_courant().await? {
            return gazette::append(&self.door, &append, parts).await;
        }
        if let Parts::Whole(content) = &parts
            && let Some(answer) = self.each.append(&append).await
        {
            return courant::appended(&append, content.len() as u64, answer?);
        }
        courant::append(&self.door, &append, parts).await
    }

    async fn grown_gazette(
        &self,
        journal: &Journal,
        life: Life,
        beyond: Offset,
    ) -> Result<Stat, Error> {
        let _place = self.blocked.acquire().await.expect("the semaphore is never closed");
        loop {
            gazette::wait(&self.door, journal, beyond).await?;
            let stat = gazette::one(&self.door, journal).await?;
            if stat.life != life || stat.head > beyond {
                return Ok(stat);
            }
        }
    }
}

impl Journals for Remote {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        Box::pin(async move {
            match self.door.is_courant().await? {
                true => courant::list(&self.door, prefix).await,
                false => gazette::list(&self.door, prefix).await,
            }
        })
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            match self.door.is_courant().await? {
                true => courant::one(&self.door, journal).await,
                false => gazette::one(&self.door, journal).await,
            }
        })
    }

    fn stats<'a>(&'a self, journals: &'a [Journal]) -> Option<Wait<'a, Vec<Stat>>> {
        Some(Box::pin(async move {
            match self.door.is_courant().await? {
                true => courant::stats(&self.door, journals).await,
                false => gazette::stats(&self.door, journals).await,
            }
        }))
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            let (parts, staged) = (Parts::of(&append), append.staged.clone());
            let answer = self.append_once(append, parts).await;
            // The broker was told nothing but that the content ended too early.
            staged.and_then(|staged| staged.failure()).map_or(answer, Err)
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(self.streams.read(&self.door, read))
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            match self.door.is_courant().await? {
                true => self.watch.grown(journal, life, beyond).await,
                false => self.grown_gazette(journal, life, beyond).await,
            }
        })
    }

    fn away(&self) -> Option<Away> {
        self.door.line().away().borrow().clone()
    }

    fn census(&self) -> tokio::sync::watch::Receiver<u64> {
        self.watch.census()
    }

    fn sync<'a>(&'a self, journal: &'a Journal, below: Offset) -> Wait<'a, ()> {
        Box::pin(async move {
            match self.door.is_courant().await? {
                true => courant::sync(&self.door, journal, below).await,
                false => Err(gazette::no_disk(&self.door)),
            }
        })
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            if self.door.is_courant().await? {
                return courant::create(&self.door, journal).await;
            }
            match gazette::one(&self.door, journal).await {
                Err(Error::NotFound(_)) => {
                    Err(gazette::not_there(&self.door, journal, "creates no journal by its name"))
                }
                found => found,
            }
        })
    }

    /// Knows the rules that a broker has unless it was told otherwise; `create` tells the others.
    fn may_create(&self, journal: &Journal) -> Result<(), Error> {
        match crate::names::refused(journal) {
            Some(rule) => Err(Error::Refused(journal.to_string(), rule)),
            None => Ok(()),
        }
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        Box::pin(async move { self.delete(journal, true, false, None).await.map(drop) })
    }

    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>> {
        Box::pin(self.stored_from(journal, from, max))
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        Box::pin(async move {
            let listed = self.list_specs(gazette::named(journal)).await?;
            listed.into_iter().next().ok_or_else(|| Error::NotFound(journal.clone()))
        })
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        Box::pin(self.apply(ApplyRequest { changes: vec![change] }))
    }

    /// Nothing of a broker elsewhere is local.
    fn lend(&self, _journal: &Journal) -> Option<Loan> {
        None
    }

    fn knows_writers(&self) -> bool {
        !self.door.is_gazette()
    }

    fn space(&self) -> Space {
        let space = self.disk.as_ref().and_then(|disk| disk.space().ok());
        space.map(|space| Space { total: space.total, free: space.free }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
