//! `Journals` in memory, for tests: byte vectors, and a mirror file each where it is to lend.

mod kept;

use bytes::Bytes;
use client::{
    Append, Appended, Away, Durability, Error, Journals, Loan, Read, Space, Stat, Wait, Writer,
};
use futures::TryStreamExt;
use kept::{Kept, spec_of};
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, LabelSet, Life, Offset, Route, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::Instant;

/// Journals without a broker. Everything is decided under one lock, so that its order is plain.
pub struct Double {
    table: Mutex<Table>,
    census: watch::Sender<u64>,
    /// Where mirrors are kept, when journals are lent.
    mirrors: Option<PathBuf>,
    /// Lives whose loans are asked back.
    revoked: watch::Sender<BTreeSet<Life>>,
    /// Loans that are out.
    pins: Arc<AtomicUsize>,
    /// Errors that the next requests get, oldest first; appends get them after they were applied.
    failures: Mutex<Vec<Error>>,
    /// And since when.
    absence: Mutex<(Absence, Option<Instant>)>,
    /// How long each append waits for its journal's rate.
    rate_wait: Mutex<Duration>,
    knows_writers: bool,
    is_far: bool,
    lists: AtomicUsize,
    stats: AtomicUsize,
    foreseen: AtomicUsize,
}

/// Why nobody answers.
const AWAY: &str = "the double is away";

/// How a broker is away.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    #[default]
    None,
    /// Each request fails at once.
    Refuses,
    /// No request is ever answered.
    Silent,
}

#[derive(Default)]
struct Table {
    journals: BTreeMap<Journal, Kept>,
    created: i64,
    now: u64,
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
            revoked: watch::Sender::default(),
            pins: Arc::default(),
            failures: Mutex::default(),
            absence: Mutex::default(),
            rate_wait: Mutex::default(),
            knows_writers: true,
            is_far: false,
            lists: AtomicUsize::new(0),
            stats: AtomicUsize::new(0),
            foreseen: AtomicUsize::new(0),
        }
    }

    /// Journals of a broker that knows no writers, as Gazette's.
    pub fn without_writers() -> Self {
        Double { knows_writers: false, ..Self::new() }
    }

    /// Journals that are many round trips away: it is worth asking for many at once.
    pub fn far() -> Self {
        Double { is_far: true, ..Self::new() }
    }

    /// The next request fails so. An append is applied first, as if its answer had been lost.
    pub fn fail_next(&self, error: Error) {
        self.failures.lock().expect("no holder panics").push(error);
    }

    /// What was still to fail succeeds.
    pub fn fail_no_more(&self) {
        self.failures.lock().expect("no holder panics").clear();
    }

    /// From here on it is away, or is back. What it has not answered by then it never does.
    pub fn be_away(&self, absence: Absence) {
        let since = (absence != Absence::None).then(Instant::now);
        *self.absence.lock().expect("no holder panics") = (absence, since);
    }

    async fn here(&self) -> Result<(), Error> {
        let (absence, _) = *self.absence.lock().expect("no holder panics");
        match absence {
            Absence::None => Ok(()),
            Absence::Refuses => Err(Error::Unreachable(AWAY.to_owned())),
            Absence::Silent => std::future::pending().await,
        }
    }

    /// From here on each append waits so long for the rate of its journal.
    pub fn slow_down(&self, rate_wait: Duration) {
        *self.rate_wait.lock().expect("no holder panics") = rate_wait;
    }

    async fn wait_for_rate(&self, append: &Append) -> Result<(), Error> {
        let wait = *self.rate_wait.lock().expect("no holder panics");
        if append.rate_wait.is_some_and(|longest| wait > longest) {
            return Err(Error::OverRate { journal: append.journal.clone(), rate: 1 });
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    /// Creates a journal of these bytes, as if from elsewhere: under any name.
    pub fn put(&self, name: &str, content: &[u8]) {
        let journal = Journal::new(name).expect("the test's name is one");
        self.create_now(&journal);
        self.append_now(&Append::new(journal, Bytes::new()), content)
            .expect("a new journal takes bytes");
    }

    /// Loses a journal's bytes that are not synced, as a power cut of the broker's machine does.
    pub fn lose(&self, journal: &Journal) {
        let mut table = self.table();
        let kept = table.journals.get_mut(journal).expect("the test made it");
        kept.lost = kept.synced..kept.bytes.len();
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

    /// A store has this fragment of its journal, behind those that it has already.
    pub fn store(&self, fragment: Fragment) {
        let mut table = self.table();
        let kept = table.journals.get_mut(&fragment.journal).expect("the test made it");
        kept.stored.push(fragment);
    }

    pub fn set_registers(&self, journal: &Journal, registers: LabelSet) {
        let mut table = self.table();
        table.journals.get_mut(journal).expect("the test made it").registers = Some(registers);
    }

    /// Asks for the loans of a journal, or of none.
    pub fn revoke(&self, journal: Option<&Journal>) {
        let table = self.table();
        let life = |journal| table.of(journal).expect("the test made it").life;
        self.revoked.send_replace(journal.into_iter().map(life).collect());
    }

    /// All bytes of a journal.
    pub fn bytes(&self, journal: &Journal) -> Option<Vec<u8>> {
        self.table().journals.get(journal).map(|kept| kept.bytes.clone())
    }

    /// How many lists were asked for, and how often journals were, one or some.
    pub fn asked(&self) -> (usize, usize) {
        (self.lists.load(Ordering::Relaxed), self.stats.load(Ordering::Relaxed))
    }

    /// How often a sync was begun because one was foreseen.
    pub fn foreseen(&self) -> usize {
        self.foreseen.load(Ordering::Relaxed)
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
            lost: 0..0,
            synced: 0,
            modified,
            may_write: true,
            stored: Vec::new(),
            spec: spec_of(journal),
            registers: None,
            mirror,
            head: watch::Sender::new(Offset::ZERO),
            writers: BTreeMap::new(),
        });
        let stat = kept.stat(journal);
        drop(table);
        self.census.send_modify(|census| *census += 1);
        stat
    }

    fn append_now(&self, append: &Append, content: &[u8]) -> Result<Appended, Error> {
        let mut table = self.table();
        let modified = table.tick();
        let journal = &append.journal;
        let kept = table.of_mut(journal)?;
        if append.life.is_some_and(|life| life != kept.life) {
            return Err(Error::Deleted(journal.clone()));
        }
        if self.knows_writers
            && let Some(answer) = kept.repeated(append)
        {
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
        let span = kept.push(content);
        if append.durability == Some(Durability::Disk) {
            kept.synced = kept.bytes.len();
        }
        if let Some(Writer { id, sequence }) = append.writer {
            kept.writers.insert(id, (sequence, span));
        }
        Ok(Appended { span, life: kept.life, repeated: false })
    }

    /// The answer to many at once, told at another time than it is asked for.
    fn stats_later<'a>(&'a self, journals: &'a [Journal]) -> Wait<'a, Vec<Stat>> {
        Box::pin(async move {
            self.here().await?;
            self.stats.fetch_add(1, Ordering::Relaxed);
            let stats = {
                let table = self.table();
                let kept = |journal| table.of(journal).map(|kept| kept.stat(journal));
                journals.iter().filter_map(|journal| kept(journal).ok()).collect()
            };
            tokio::task::yield_now().await;
            self.failure()?;
            Ok(stats)
        })
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
        if kept.lost.contains(&begin) {
            let [begin, end] =
                [kept.lost.start, kept.lost.end].map(|at| Offset::ZERO.plus(at as u64));
            let span = Span::between(begin, end);
            return Err(Error::Lost { journal: read.journal.clone(), span });
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

impl Journals for Double {
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>> {
        Box::pin(async move {
            self.here().await?;
            self.failure()?;
            self.lists.fetch_add(1, Ordering::Relaxed);
            let table = self.table();
            let named = table.journals.iter().filter(|(name, _)| name.as_str().starts_with(prefix));
            Ok(named.map(|(name, kept)| kept.stat(name)).collect())
        })
    }

    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        self.stats.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.here().await?;
            Ok(self.table().of(journal)?.stat(journal))
        })
    }

    fn stats<'a>(&'a self, journals: &'a [Journal]) -> Option<Wait<'a, Vec<Stat>>> {
        self.is_far.then(|| self.stats_later(journals))
    }

    fn append(&self, append: Append) -> Wait<'_, Appended> {
        Box::pin(async move {
            self.here().await?;
            self.wait_for_rate(&append).await?;
            let appended = self.append_now(&append, &whole_content(&append).await?)?;
            self.failure()?;
            Ok(appended)
        })
    }

    fn read(&self, read: Read) -> Wait<'_, Bytes> {
        Box::pin(async move {
            self.here().await?;
            self.failure()?;
            self.read_now(&read)
        })
    }

    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat> {
        Box::pin(async move {
            self.here().await?;
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
            self.here().await?;
            self.failure()?;
            let mut table = self.table();
            let kept = table.of_mut(journal)?;
            let below = usize::try_from(below.get()).expect("not negative");
            kept.synced = kept.synced.max(below.min(kept.bytes.len()));
            Ok(())
        })
    }

    fn sync_soon(&self) {
        self.foreseen.fetch_add(1, Ordering::Relaxed);
    }

    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat> {
        Box::pin(async move {
            self.here().await?;
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
            self.here().await?;
            let removed = self.table().journals.remove(journal);
            removed.ok_or_else(|| Error::NotFound(journal.clone()))?;
            self.census.send_modify(|census| *census += 1);
            Ok(())
        })
    }

    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>> {
        Box::pin(async move {
            self.here().await?;
            let table = self.table();
            let stored = table.of(journal)?.stored.iter();
            Ok(stored.filter(|fragment| fragment.begin() >= from).take(max).cloned().collect())
        })
    }

    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal> {
        Box::pin(async move {
            self.here().await?;
            let table = self.table();
            let kept = table.of(journal)?;
            Ok(ListedJournal {
                spec: kept.spec.clone(),
                mod_revision: kept.revision,
                create_revision: 1,
                route: Route::default(),
            })
        })
    }

    fn change(&self, change: Change) -> Wait<'_, i64> {
        Box::pin(async move {
            self.here().await?;
            let journal = change.journal().clone();
            let there = self.table().journals.get(&journal).map(|kept| kept.revision);
            let Change::Upsert { spec, expect } = change else {
                return Err(Error::Unsupported("the double deletes nothing".to_owned()));
            };
            if !expect.holds(there) {
                return Err(Error::Conflict(journal, there.unwrap_or_default()));
            }
            if there.is_none() {
                self.create_now(&journal);
            }
            let mut table = self.table();
            table.created += 1;
            let revision = table.created;
            let kept = table.of_mut(&journal)?;
            (kept.spec, kept.revision) = (*spec, revision);
            drop(table);
            self.failure()?;
            Ok(revision)
        })
    }

    fn lend(&self, journal: &Journal) -> Option<Loan> {
        let table = self.table();
        let kept = table.journals.get(journal)?;
        let file = kept.mirror.clone()?;
        let is_lent = !self.revoked.borrow().contains(&kept.life);
        (is_lent && kept.first == 0).then(|| Loan {
            file,
            life: kept.life,
            pin: Box::new(Pin::new(&self.pins)),
        })
    }

    fn away(&self) -> Option<Away> {
        let (_, since) = *self.absence.lock().expect("no holder panics");
        since.map(|since| Away { since, why: AWAY.to_owned() })
    }

    fn revocations(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.revoked.subscribe()
    }

    fn knows_writers(&self) -> bool {
        self.knows_writers
    }

    fn space(&self) -> Space {
        Space { total: 1 << 40, free: 1 << 39 }
    }
}

async fn whole_content(append: &Append) -> Result<Vec<u8>, Error> {
    let mut content = append.content.to_vec();
    if let Some(staged) = &append.staged {
        let pieces: Vec<Bytes> =
            staged.pieces().try_collect().await.map_err(|why| Error::Io(why.to_string()))?;
        content.extend(pieces.concat());
    }
    Ok(content)
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
