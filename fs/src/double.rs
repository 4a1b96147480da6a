//! `Journals` in memory, for tests: byte vectors, and a mirror file each where it is to lend.

use bytes::Bytes;
use client::{
    Append, Appended, Durability, Error, Journals, Loan, Read, Space, Stat, Wait, Writer,
};
use protocol::{Journal, Life, Offset, Span};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Journals without a broker. Everything is decided under one lock, so that its order is plain.
pub struct Double {
    table: Mutex<Table>,
    census: watch::Sender<u64>,
    /// Where mirrors are kept, when journals are lent.
    mirrors: Option<PathBuf>,
    /// Loans that are out.
    pins: Arc<AtomicUsize>,
    /// Errors that the next requests get, oldest first; appends get them after they were applied.
    failures: Mutex<Vec<Error>>,
}

#[derive(Default)]
struct Table {
    journals: BTreeMap<Journal, Kept>,
    created: i64,
    now: u64,
}

struct Kept {
    life: Life,
    revision: i64,
    bytes: Vec<u8>,
    first: usize,
    synced: usize,
    modified: SystemTime,
    may_write: bool,
    mirror: Option<Arc<File>>,
    head: watch::Sender<Offset>,
    writers: BTreeMap<[u8; 16], (u64, Span)>,
}

impl Double {
    pub fn new() -> Self {
        Self::build(None)
    }

    /// Journals that are lent: each has a mirror file in `directory`.
    pub fn with_mirrors(directory: PathBuf) -> Self {
        Self::build(Some(directory))
    }

    fn build(mirrors: Option<PathBuf>) -> Self {
        Double {
            table: Mutex::default(),
            census: watch::Sender::new(0),
            mirrors,
            pins: Arc::default(),
            failures: Mutex::default(),
        }
    }

    /// The next request fails so. An append is applied first, as if its answer had been lost.
    pub fn fail_next(&self, error: Error) {
        self.failures.lock().expect("no holder panics").push(error);
    }

    /// Creates a journal of these bytes, as if from elsewhere: under any name.
    pub fn put(&self, name: &str, content: &[u8]) {
        let journal = Journal::new(name).expect("the test's name is one");
        self.create_now(&journal);
        self.append_now(&Append::new(journal, Bytes::copy_from_slice(content)))
            .expect("a new journal takes bytes");
    }

    /// Trims a journal's bytes below `first`.
    pub fn trim(&self, journal: &Journal, first: usize) {
        let mut table = self.table();
        table.journals.get_mut(journal).expect("the test made it").first = first;
    }

    pub fn forbid_writes(&self, journal: &Journal) {
        let mut table = self.table();
        table.journals.get_mut(journal).expect("the test made it").may_write = false;
    }

    /// All bytes of a journal.
    pub fn bytes(&self, journal: &Journal) -> Option<Vec<u8>> {
        self.table().journals.get(journal).map(|kept| kept.bytes.clone())
    }

    /// How many loans are out.
    pub fn pins(&self) -> usize {
        self.pins.load(Ordering::SeqCst)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no holder panics")
    }

    fn failure(&self) -> Result<(), Error> {
        let mut failures = self.failures.lock().expect("no holder panics");
        if failures.is_empty() { Ok(()) } else { Err(failures.remove(0)) }
    }

    fn create_now(&self, journal: &Journal) -> Stat {
        let mut table = self.table();
        table.created += 1;
        let revision = table.created;
        let mirror = self.mirrors.as_ref().map(|directory| {
            let path = directory.join(format!("{revision}"));
            let open =
                File::options().read(true).write(true).create(true).truncate(true).open(path);
            Arc::new(open.expect("the test's directory takes files"))
        });
        let modified = table.tick();
        let kept = table.journals.entry(journal.clone()).or_insert_with(|| Kept {
            life: Life::new(revision.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            revision,
            bytes: Vec::new(),
            first: 0,
            synced: 0,
            modified,
            may_write: true,
            mirror,
            head: watch::Sender::new(Offset::ZERO),
            writers: BTreeMap::new(),
        });
        let stat = kept.stat(journal);
        drop(table);
        self.census.send_modify(|census| *census += 1);
        stat
    }

    fn append_now(&self, append: &Append) -> Result<Appended, Error> {
        let mut table = self.table();
        let modified = table.tick();
        let journal = &append.journal;
        let kept = table.of_mut(journal)?;
        if append.life.is_some_and(|life| life != kept.life) {
            return Err(Error::Deleted(journal.clone()));
        }
        if let Some(answer) = kept.repeated(append) {
            return answer;
        }
        if !kept.may_write {
            let detail = "writes are forbidden".to_owned();
            return Err(Error::NotAllowed { journal: journal.clone(), detail });
        }
        let head = kept.head();
        if append.offset.is_some_and(|offset| offset != head) {
            return Err(Error::WrongOffset { journal: journal.clone(), head });
        }
        kept.modified = modified;
        let span = kept.push(&append.content);
        if append.durability == Some(Durability::Disk) {
            kept.synced = kept.bytes.len();
        }
        if let Some(Writer { id, sequence }) = append.writer {
            kept.writers.insert(id, (sequence, span));
        }
        Ok(Appended { span, life: kept.life, repeated: false })
    }

    fn read_now(&self, read: &Read) -> Result<Bytes, Error> {
        let table = self.table();
        let kept = table.of(&read.journal)?;
        if read.life.is_some_and(|life| life != kept.life) {
            return Err(Error::Deleted(read.journal.clone()));
        }
        let begin = usize::try_from(read.offset.get()).expect("not negative");
        if begin < kept.first {
            let first = Offset::try_from(kept.first as u64).map_err(Error::from)?;
            let span = Span::between(Offset::ZERO, first);
            return Err(Error::Trimmed { journal: read.journal.clone(), span });
        }
        // Pieces, so that whoever reads must put them together.
        let end = kept.bytes.len().min(begin.saturating_add(read.max.min(100_000)));
        Ok(kept.bytes.get(begin..end).map(Bytes::copy_from_slice).unwrap_or_default())
    }
}

impl Default for Double {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    fn of(&self, journal: &Journal) -> Result<&Kept, Error> {
        self.journals.get(journal).ok_or_else(|| Error::NotFound(journal.clone()))
    }

    fn of_mut(&mut self, journal: &Journal) -> Result<&mut Kept, Error> {
        self.journals.get_mut(journal).ok_or_else(|| Error::NotFound(journal.clone()))
    }

    /// Each event is a second after the last.
    fn tick(&mut self) -> SystemTime {
        self.now += 1;
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + self.now)
    }
}

impl Kept {
    fn head(&self) -> Offset {
        *self.head.borrow()
    }

    /// The mirror first, then the head: a passthrough reader never sees less than what is told.
    fn push(&mut self, content: &[u8]) -> Span {
        let span = Span::at(self.head(), content.len() as u64);
        if let Some(mirror) = &self.mirror {
            mirror.write_all_at(content, span.begin().as_u64()).expect("the mirror takes bytes");
        }
        self.bytes.extend_from_slice(content);
        self.head.send_replace(span.end());
        span
    }

    fn repeated(&self, append: &Append) -> Option<Result<Appended, Error>> {
        let writer = append.writer?;
        let (last, span) = *self.writers.get(&writer.id)?;
        match writer.sequence.cmp(&last) {
            std::cmp::Ordering::Greater => None,
            std::cmp::Ordering::Equal => {
                Some(Ok(Appended { span, life: self.life, repeated: true }))
            }
            std::cmp::Ordering::Less => {
                Some(Err(Error::StaleSequence(append.journal.clone(), writer.sequence)))
            }
        }
    }

    fn stat(&self, journal: &Journal) -> Stat {
        let offset = |at: usize| Offset::try_from(at as u64).expect("memory is small");
        Stat {
            journal: journal.clone(),
            life: self.life,
            first: offset(self.first),
            head: self.head(),
            synced: offset(self.synced),
            persisted: Offset::ZERO,
            modified: self.modified,
            create_revision: self.revision,
            mod_revision: self.revision,
            content_type: None,
            may_read: true,
            may_write: self.may_write,
            fragments: 0,
            gaps: 0,
        }
    }
}

impl Journals for Double {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        Box::pin(async move {
            self.failure()?;
            let table = self.table();
            let named = table.journals.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
            Ok(named.map(|(name, kept)| kept.stat(name)).collect())
        })
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move { Ok(self.table().of(journal)?.stat(journal)) })
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            let appended = self.append_now(&append)?;
            self.failure()?;
            Ok(appended)
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(async move {
            self.failure()?;
            self.read_now(&read)
        })
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            let mut head = self.table().of(journal)?.head.subscribe();
            loop {
                let stat = self.table().of(journal)?.stat(journal);
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

    fn sync<'a>(&'a self, journal: &'a Journal, below: Offset) -> Wait<'a, ()> {
        Box::pin(async move {
            self.failure()?;
            let mut table = self.table();
            let kept = table.of_mut(journal)?;
            kept.synced = kept.synced.max(usize::try_from(below.get()).expect("not negative"));
            Ok(())
        })
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            self.failure()?;
            self.may_create(journal)?;
            Ok(self.create_now(journal))
        })
    }

    fn may_create(&self, journal: &Journal) -> Result<(), Error> {
        let name = journal.as_str().rsplit('/').next().unwrap_or_default();
        if name.ends_with(".tmp") || name.starts_with('.') {
            return Err(Error::Refused(journal.to_string(), "a temporary file".to_owned()));
        }
        Ok(())
    }

    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()> {
        Box::pin(async move {
            let removed = self.table().journals.remove(journal);
            removed.ok_or_else(|| Error::NotFound(journal.clone()))?;
            self.census.send_modify(|census| *census += 1);
            Ok(())
        })
    }

    fn lend(&self, journal: &Journal) -> Option<Loan> {
        let table = self.table();
        let kept = table.journals.get(journal)?;
        let file = kept.mirror.clone()?;
        (kept.first == 0).then(|| Loan {
            file,
            life: kept.life,
            pin: Box::new(Pin::new(&self.pins)),
        })
    }

    fn space(&self) -> Space {
        Space { total: 1 << 40, free: 1 << 39 }
    }
}

/// Counts a loan while it lives.
struct Pin(Arc<AtomicUsize>);

impl Pin {
    fn new(pins: &Arc<AtomicUsize>) -> Self {
        pins.fetch_add(1, Ordering::SeqCst);
        Pin(pins.clone())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
