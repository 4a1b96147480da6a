//! A journal as a mount shows it: what its nodes have in common.

use crate::NodeId;
use crate::habit::{SyncHabit, Unsynced};
use crate::queue::Queue;
use crate::revoke::Generation;
use protocol::{Journal, Life, Offset};
use rustix::fs::fstat;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A mirror that was lent.
pub(crate) type Lent = dyn AsFd + Send + Sync;

/// One life of a journal, seen through any of its nodes.
///
/// **Fills.** `sendfile`, `splice`, `MAP_PRIVATE` and readahead go through the kernel's page cache
/// even where reads do not. A page filled at the head holds NULs after it, and shows them as soon
/// as the kernel believes in a larger size. So after the first fill no reply tells a size before
/// the page that was filled at the last told size is made right ([`Shown::telling`]). Reads are
/// bounded by what is readable and never by what was told.
pub(crate) struct Shown {
    journal: Journal,
    life: Life,
    /// The nodes that the kernel may have pages of.
    nodes: Mutex<BTreeSet<NodeId>>,
    filled: AtomicBool,
    /// The largest size told before the first fill.
    told_unfilled: AtomicU64,
    /// How often pages may have been filled when the file had no byte: none of those is right.
    filled_empty: AtomicU64,
    /// What was told last, since the first fill. Held while pages are renewed, so that nobody tells
    /// a size whose pages another is still renewing.
    told: tokio::sync::Mutex<Told>,
    /// The head that attributes told last, to whomever.
    shown_head: AtomicU64,
    /// The order of this mount's appends: the lock whose queue it is. It is held until the append
    /// is acknowledged, so that sequences reach the broker in their order.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Writes that were answered and are not appended yet.
    pub(crate) queue: Queue,
    pub(crate) habit: SyncHabit,
    pub(crate) unsynced: Unsynced,
    /// The mirror behind the open handles of the passthrough node.
    lent: Mutex<Option<Weak<Lent>>>,
    /// That of the passthrough node.
    pub(crate) generation: Generation,
    /// Open handles of its nodes.
    opened: AtomicUsize,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("journal", &self.journal).field("life", &self.life).finish()
    }
}

/// That a journal is open, as long as it lives.
pub(crate) struct Open(Arc<Shown>);

impl Open {
    pub(crate) fn new(shown: Arc<Shown>) -> Self {
        shown.opened.fetch_add(1, Ordering::SeqCst);
        Open(shown)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.opened.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shown {
    pub(crate) fn new(journal: Journal, life: Life) -> Self {
        Shown {
            journal,
            life,
            nodes: Mutex::default(),
            filled: AtomicBool::new(false),
            told_unfilled: AtomicU64::new(0),
            filled_empty: AtomicU64::new(0),
            told: tokio::sync::Mutex::default(),
            shown_head: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
            queue: Queue::default(),
            habit: SyncHabit::default(),
            unsynced: Unsynced::default(),
            lent: Mutex::default(),
            generation: Generation::default(),
            opened: AtomicUsize::new(0),
        }
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn life(&self) -> Life {
        self.life
    }

    pub(crate) fn seen_through(&self, node: NodeId) {
        self.nodes.lock().expect("no holder panics").insert(node);
    }

    pub(crate) fn unseen_through(&self, node: NodeId) {
        self.nodes.lock().expect("no holder panics").remove(&node);
    }

    /// The kernel is about to fill pages from a read. Must come before the bytes are read: then
    /// whoever saw no fill yet tells a size that the fill covers.
    pub(crate) fn mark_filled(&self) {
        self.filled.store(true, Ordering::SeqCst);
    }

    /// The kernel filled pages of one of its nodes before that was the journal's.
    pub(crate) fn mark_filled_empty(&self) {
        self.filled_empty.fetch_add(1, Ordering::SeqCst);
        self.mark_filled();
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }

    /// The right to tell a larger size than any before, once pages of the cache are renewed. `None`
    /// where none were filled, or such a size was told.
    pub(crate) async fn telling(&self, head: Offset) -> Option<Telling<'_>> {
        if !self.is_filled() {
            self.told_unfilled.fetch_max(head.as_u64(), Ordering::SeqCst);
            // Whoever marks a fill after this finds the size, and reads as far.
            if !self.is_filled() {
                return None;
            }
        }
        let mut told = self.told.lock().await;
        let told_unfilled = offset(self.told_unfilled.load(Ordering::SeqCst));
        let filled_empty = self.filled_empty.load(Ordering::SeqCst);
        if told.filled_empty != filled_empty {
            // Until the pages are renewed, whatever becomes of this.
            *told = Told { filled_empty: told.filled_empty, ..Told::default() };
        } else if told.size < told_unfilled {
            *told = Told { size: told_unfilled, last: None, filled_empty };
        }
        let nodes = self.nodes.lock().expect("no holder panics").clone();
        (told.size < head).then_some(Telling { told, nodes, filled_empty })
    }

    /// Attributes are about to tell this head.
    pub(crate) fn show_head(&self, head: Offset) {
        self.shown_head.store(head.as_u64(), Ordering::Relaxed);
    }

    /// The head that attributes told last.
    pub(crate) fn head_shown(&self) -> Offset {
        offset(self.shown_head.load(Ordering::Relaxed))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened.load(Ordering::SeqCst) > 0
    }

    /// The mirror to open another handle on: the one that open handles have, if it is the same
    /// file. `None` when they have another, since the kernel allows one file a node.
    pub(crate) fn lend(&self, file: &Arc<Lent>) -> Option<Arc<Lent>> {
        let mut lent = self.lent.lock().expect("no holder panics");
        if let Some(open) = lent.as_ref().and_then(Weak::upgrade) {
            return same_file(&open, file).then_some(open);
        }
        *lent = Some(Arc::downgrade(file));
        Some(file.clone())
    }

    /// The size of the lent mirror, where passthrough reads end; `None` when no handle is open.
    pub(crate) fn lent_size(&self) -> Option<u64> {
        let stat = fstat(self.lent_file()?.as_fd()).ok()?;
        u64::try_from(stat.st_size).ok()
    }

    fn lent_file(&self) -> Option<Arc<Lent>> {
        self.lent.lock().expect("no holder panics").as_ref().and_then(Weak::upgrade)
    }
}

/// A size that was told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    pub size: Offset,
    /// The byte before it, if that is known.
    pub last: Option<u8>,
    /// [`Shown::filled_empty`] when it was told.
    filled_empty: u64,
}

/// Held by the one who renews pages, so that nobody tells a size meanwhile.
pub(crate) struct Telling<'a> {
    told: tokio::sync::MutexGuard<'a, Told>,
    /// The nodes that the kernel may have pages of.
    pub(crate) nodes: BTreeSet<NodeId>,
    filled_empty: u64,
}

impl Telling<'_> {
    /// What was told last.
    pub(crate) fn told(&self) -> Told {
        *self.told
    }

    /// The pages are renewed: the size may be told.
    pub(crate) fn end(mut self, size: Offset, last: Option<u8>) {
        *self.told = Told { size, last, filled_empty: self.filled_empty };
    }
}

fn offset(stored: u64) -> Offset {
    Offset::try_from(stored).expect("it was an offset")
}

fn same_file(a: &Arc<Lent>, b: &Arc<Lent>) -> bool {
    let identity = |file: &Arc<Lent>| fstat(file.as_fd()).map(|stat| (stat.st_dev, stat.st_ino));
    Arc::ptr_eq(a, b) || matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// The journals that any node of the mount shows, one value for each life.
#[derive(Debug, Default)]
pub(crate) struct Gallery(Mutex<Lives>);

#[derive(Debug, Default)]
struct Lives {
    shown: BTreeMap<Life, Weak<Shown>>,
    /// At this size those that are no longer shown are removed.
    sweep_at: usize,
}

impl Gallery {
    /// The journal of a life, if any node shows it.
    pub(crate) fn shown(&self, life: Life) -> Option<Arc<Shown>> {
        self.0.lock().expect("no holder panics").shown.get(&life).and_then(Weak::upgrade)
    }

    pub(crate) fn show(&self, journal: &Journal, life: Life) -> Arc<Shown> {
        let mut lives = self.0.lock().expect("no holder panics");
        if let Some(shown) = lives.shown.get(&life).and_then(Weak::upgrade) {
            return shown;
        }
        if lives.shown.len() >= lives.sweep_at {
            lives.shown.retain(|_, shown| shown.strong_count() > 0);
            lives.sweep_at = 2 * lives.shown.len() + 64;
        }
        let shown = Arc::new(Shown::new(journal.clone(), life));
        lives.shown.insert(life, Arc::downgrade(&shown));
        shown
    }
}
