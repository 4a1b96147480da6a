//! Journals elsewhere, for tests of the cache: byte vectors whose reads are counted, and which may
//! be away.

use crate::Error;
use crate::journals::{Append, Appended, Journals, Loan, Read, Space, Stat, Wait};
use bytes::Bytes;
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, Life, Offset, Span};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;
use tokio::sync::watch;

/// No read returns more, so that whoever reads must put pieces together.
const PIECE: usize = 100_000;

/// See the module.
pub(super) struct Elsewhere {
    journals: Mutex<BTreeMap<Journal, There>>,
    census: watch::Sender<u64>,
    /// Bytes that were read.
    pub read_len: AtomicU64,
    pub is_away: AtomicBool,
}

struct There {
    life: Life,
    first: usize,
    bytes: Vec<u8>,
    head: watch::Sender<Offset>,
}

fn offset(at: usize) -> Offset {
    Offset::try_from(at as u64).expect("memory is small")
}

impl There {
    fn stat(&self, journal: &Journal) -> Stat {
        Stat {
            journal: journal.clone(),
            life: self.life,
            first: offset(self.first),
            trimmed: offset(self.first),
            head: offset(self.bytes.len()),
            synced: Offset::ZERO,
            persisted: Offset::ZERO,
            modified: SystemTime::UNIX_EPOCH,
            create_revision: 1,
            mod_revision: 1,
            content_type: None,
            may_read: true,
            may_write: true,
            fragments: 0,
            gaps: 0,
            registers: None,
        }
    }
}

impl Elsewhere {
    pub fn new() -> Self {
        Elsewhere {
            journals: Mutex::default(),
            census: watch::Sender::new(0),
            read_len: AtomicU64::new(0),
            is_away: AtomicBool::new(false),
        }
    }

    fn journals(&self) -> MutexGuard<'_, BTreeMap<Journal, There>> {
        self.journals.lock().expect("no holder panics")
    }

    /// Creates a journal anew, of these bytes.
    pub fn put(&self, journal: &Journal, bytes: Vec<u8>) -> Life {
        let census = *self.census.borrow() + 1;
        let life = Life::new(census.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let head = watch::Sender::new(offset(bytes.len()));
        self.journals().insert(journal.clone(), There { life, first: 0, bytes, head });
        self.census.send_replace(census);
        life
    }

    /// An append by somebody else.
    pub fn push(&self, journal: &Journal, content: &[u8]) -> Span {
        let mut journals = self.journals();
        let there = journals.get_mut(journal).expect("the test made it");
        let span = Span::at(offset(there.bytes.len()), content.len() as u64);
        there.bytes.extend_from_slice(content);
        there.head.send_replace(span.end());
        span
    }

    pub fn trim(&self, journal: &Journal, first: usize) {
        self.journals().get_mut(journal).expect("the test made it").first = first;
    }

    fn with<T>(&self, journal: &Journal, f: impl FnOnce(&There) -> T) -> Result<T, Error> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err(Error::Unreachable("away".to_owned()));
        }
        let journals = self.journals();
        journals.get(journal).map(f).ok_or_else(|| Error::NotFound(journal.clone()))
    }

    fn read_now(&self, read: &Read) -> Result<Bytes, Error> {
        self.with(&read.journal, |there| {
            if read.life.is_some_and(|life| life != there.life) {
                return Err(Error::Deleted(read.journal.clone()));
            }
            let begin = usize::try_from(read.offset.as_u64()).expect("memory is small");
            if begin < there.first {
                let span = Span::between(read.offset, offset(there.first));
                return Err(Error::Trimmed { journal: read.journal.clone(), span });
            }
            let end = there.bytes.len().min(begin.saturating_add(read.max.min(PIECE)));
            Ok(there.bytes.get(begin..end).map(Bytes::copy_from_slice).unwrap_or_default())
        })?
    }
}

impl Journals for Elsewhere {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        let journals = self.journals();
        let named = journals.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
        let stats = named.map(|(name, there)| there.stat(name)).collect();
        Box::pin(std::future::ready(Ok(stats)))
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(std::future::ready(self.with(journal, |there| there.stat(journal))))
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            let life = self.with(&append.journal, |there| there.life)?;
            let span = self.push(&append.journal, &append.content);
            Ok(Appended { span, life, repeated: false })
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(async move {
            // As over a network, whoever else has something to do comes first.
            tokio::task::yield_now().await;
            let bytes = self.read_now(&read)?;
            self.read_len.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(bytes)
        })
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            let mut head = self.with(journal, |there| there.head.subscribe())?;
            loop {
                let stat = self.with(journal, |there| there.stat(journal))?;
                if stat.life != life || stat.head > beyond {
                    return Ok(stat);
                }
                // The sender goes with the journal; the next look says so.
                let _gone = head.changed().await;
            }
        })
    }

    fn census(&self) -> watch::Receiver<u64> {
        self.census.subscribe()
    }

    fn sync<'a>(&'a self, _journal: &'a Journal, _below: Offset) -> Wait<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        self.put(journal, Vec::new());
        self.stat(journal)
    }

    fn may_create(&self, _journal: &Journal) -> Result<(), Error> {
        Ok(())
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        let removed = self.journals().remove(journal);
        self.census.send_modify(|census| *census += 1);
        let purged = removed.map(drop).ok_or_else(|| Error::NotFound(journal.clone()));
        Box::pin(std::future::ready(purged))
    }

    fn stored<'a>(&'a self, _: &'a Journal, _: Offset, _: usize) -> Wait<'a, Vec<Fragment>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        Box::pin(std::future::ready(Err(Error::NotFound(journal.clone()))))
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        Box::pin(std::future::ready(Err(Error::Conflict(change.journal().clone(), 0))))
    }

    fn lend(&self, _journal: &Journal) -> Option<Loan> {
        None
    }

    fn space(&self) -> Space {
        Space::default()
    }
}
