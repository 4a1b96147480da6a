//! The trait through which files are made of journals: all that `fs` knows of a broker.

use crate::{Away, Error, Staged};
use bytes::Bytes;
use index::disk::DiskFile;
use protocol::request::Change;
use protocol::response::ListedJournal;
use protocol::{Fragment, Journal, LabelSet, Life, Offset, Selector, Span};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// A boxed future, so that `Journals` can be stored as `Arc<dyn Journals>`.
pub type Wait<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Journals as a caller sees them: an in-process broker, a broker over gRPC, or a double in a test.
///
/// A future that needs no waiting is ready at its first poll, so that a caller on a FUSE thread can
/// answer at once. Dropping a future gives up waiting; an append past its record still happens.
pub trait Journals: Send + Sync + 'static {
    /// The journals whose names begin with `prefix`, by name, with their heads.
    fn list<'a>(&'a self, prefix: &'a str) -> Wait<'a, Vec<Stat>>;

    /// What the journal is at this moment. `NotFound` where there is none.
    fn stat<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat>;

    /// Those of the journals that exist, in any order, asked for together; `None` where that costs
    /// no less than one [`stat`](Self::stat) after another, as it does without a network.
    fn stats<'a>(&'a self, _journals: &'a [Journal]) -> Option<Wait<'a, Vec<Stat>>> {
        None
    }

    /// Appends the whole content, or nothing. The answer comes at the durability that was asked.
    fn append(&self, append: Append) -> Wait<'_, Appended>;

    /// Bytes from `read.offset`: at least one, or none at the write head. `Gone` and its kin where
    /// the offset can't be read any more.
    fn read(&self, read: Read) -> Wait<'_, Bytes>;

    /// Waits until the journal's head is beyond `beyond`, or its life is another than `life`
    /// (`NotFound` when it is gone), and says what it is then.
    fn grown<'a>(&'a self, journal: &'a Journal, life: Life, beyond: Offset) -> Wait<'a, Stat>;

    /// A number that changes with each creation and deletion.
    fn census(&self) -> watch::Receiver<u64>;

    /// Waits until every byte below `below` is durable on disk, as far as there are bytes now.
    fn sync<'a>(&'a self, journal: &'a Journal, below: Offset) -> Wait<'a, ()>;

    /// Has what was appended made durable now, since a [`sync`](Self::sync) is likely to follow: a
    /// hint, which promises nothing and never waits. Nothing by default.
    fn sync_soon(&self) {}

    /// Creates a journal by the broker's template; finding it there is success.
    fn create<'a>(&'a self, journal: &'a Journal) -> Wait<'a, Stat>;

    /// Whether `create` would take the name: `Refused` for the names of temporary files and for
    /// nested names. Needs no waiting.
    fn may_create(&self, journal: &Journal) -> Result<(), Error>;

    /// Deletes the journal and the objects of its fragments.
    fn purge<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ()>;

    /// The fragments of a journal that a store has and that begin at `from` or above, ascending, at
    /// most `max` of them.
    fn stored<'a>(
        &'a self,
        journal: &'a Journal,
        from: Offset,
        max: usize,
    ) -> Wait<'a, Vec<Fragment>>;

    /// The spec of a journal, with its revisions. `NotFound` where there is none, and
    /// `Unsupported` where [`has_specs`](Self::has_specs) says so.
    fn spec<'a>(&'a self, journal: &'a Journal) -> Wait<'a, ListedJournal>;

    /// Makes one change of a spec, and says at which revision. `Conflict` where the spec is not as
    /// the change expects.
    fn change(&self, change: Change) -> Wait<'_, i64>;

    /// Whether there are specs, which a store without a broker has not.
    fn has_specs(&self) -> bool {
        true
    }

    /// Lends the journal's mirror for passthrough, where all of `[0, head)` is local in one file.
    /// The loan pins the mirror: nothing of it is freed while the loan lives.
    fn lend(&self, journal: &Journal) -> Option<Loan>;

    /// Whether [`lend`](Self::lend) would lend the mirror of this life at this moment.
    fn may_lend(&self, journal: &Journal, life: Life) -> bool {
        self.lend(journal).is_some_and(|loan| loan.life == life)
    }

    /// The lives whose loans are to be given back, since their bytes are needed. They are not lent
    /// while they are named here. Nothing by default: then no loan is ever asked for.
    fn revocations(&self) -> watch::Receiver<BTreeSet<Life>> {
        watch::channel(BTreeSet::new()).1
    }

    /// Whether an append whose writer and sequence were there is told from a new one. Where not, as
    /// with a Gazette broker, [`Anchored`](crate::Anchored) makes an append happen once.
    fn knows_writers(&self) -> bool {
        true
    }

    /// Room on the file system that takes new bytes, without asking the network.
    fn space(&self) -> Space;

    /// Since when nobody answers who should, and why; `None` where somebody does, as far as was
    /// asked.
    fn away(&self) -> Option<Away> {
        None
    }

    /// What is worth telling of it in `.courant/status`: names, and numbers or bytes.
    fn state(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What a journal is at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub journal: Journal,
    pub life: Life,
    /// The first readable offset: above 0 once older bytes were trimmed.
    pub first: Offset,
    /// Below, bytes were given up by will. At most `first`: what lies between was lost, or is
    /// damaged.
    pub trimmed: Offset,
    /// The write head: all below is readable unless trimmed, lost or damaged.
    pub head: Offset,
    /// Below, bytes are durable on disk.
    pub synced: Offset,
    /// Below, bytes are in the store.
    pub persisted: Offset,
    /// The time of the last append.
    pub modified: SystemTime,
    pub create_revision: i64,
    pub mod_revision: i64,
    pub content_type: Option<String>,
    pub may_read: bool,
    pub may_write: bool,
    /// Fragments known in stores.
    pub fragments: u64,
    /// Spans between `first` and `head` that can't be read.
    pub gaps: u64,
    /// `None` where they are not told, as by a Gazette broker, which tells them to appends alone.
    pub registers: Option<LabelSet>,
}

/// How safe an append is before it is acknowledged (design, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// In the page cache of every replica: survives the process, not a power cut.
    Memory,
    /// Synced.
    Disk,
}

/// Who appends, so that a retry is applied once: an id that no other writer has, and a sequence
/// that rises with each append of that writer to that journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Writer {
    pub id: [u8; 16],
    pub sequence: u64,
}

/// One append.
#[derive(Debug, Clone)]
pub struct Append {
    pub journal: Journal,
    /// The life the caller means, where it holds a handle: another one is `Deleted`.
    pub life: Option<Life>,
    /// The bytes to append, or the first of them.
    pub content: Bytes,
    /// What follows `content`: bytes of any number, that wait in a local file.
    pub staged: Option<Staged>,
    /// `None`: the broker's default for its API.
    pub durability: Option<Durability>,
    /// The append happens only if the journal ends here; else `WrongOffset`.
    pub offset: Option<Offset>,
    pub writer: Option<Writer>,
    /// The longest that it may wait for the journal's rate: past that it is `OverRate`, and not
    /// made. `None`: for as long as it takes, as with a broker that knows nothing of this.
    pub rate_wait: Option<Duration>,
    pub check_registers: Option<Selector>,
    pub union_registers: LabelSet,
    pub subtract_registers: LabelSet,
}

impl Append {
    /// An unconditional append at the broker's default durability.
    pub fn new(journal: Journal, content: Bytes) -> Self {
        Append {
            journal,
            life: None,
            content,
            staged: None,
            durability: None,
            offset: None,
            writer: None,
            rate_wait: None,
            check_registers: None,
            union_registers: LabelSet::default(),
            subtract_registers: LabelSet::default(),
        }
    }

    /// Bytes that it appends.
    pub fn content_len(&self) -> u64 {
        self.content.len() as u64 + self.staged.as_ref().map_or(0, Staged::len)
    }
}

/// Where an append went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub span: Span,
    pub life: Life,
    /// The writer's sequence was there already; `span` is that of the first time.
    pub repeated: bool,
}

/// One read.
#[derive(Debug, Clone)]
pub struct Read {
    pub journal: Journal,
    /// The life the caller means, where it holds a handle: another one is `Deleted`.
    pub life: Option<Life>,
    pub offset: Offset,
    /// The most bytes to return; fewer may come.
    pub max: usize,
}

/// A mirror on loan. While it lives nothing of the file is punched, and byte *o* of the journal is
/// at file offset *o*.
pub struct Loan {
    pub file: Arc<dyn AsFd + Send + Sync>,
    pub life: Life,
    /// Given back when dropped.
    pub pin: Box<dyn Send + Sync>,
}

impl Loan {
    /// A loan of `file` while `pin` is held; `None` where the file has no descriptor to lend.
    pub fn of(
        file: Arc<dyn DiskFile>,
        life: Life,
        pin: impl Send + Sync + 'static,
    ) -> Option<Self> {
        file.descriptor()?;
        Some(Loan { file: Arc::new(Lent(file)), life, pin: Box::new(pin) })
    }
}

/// A file that has a descriptor.
struct Lent(Arc<dyn DiskFile>);

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.descriptor().expect("only files with a descriptor are lent")
    }
}

/// Bytes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    pub total: u64,
    pub free: u64,
}

/// The longest that a caller of a mount waits for a write (design, section 4).
pub const WRITE_TIMEOUT_MAX: Duration = Duration::from_secs(30);
