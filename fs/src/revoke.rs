//! Taking back what the kernel reads by itself, when its bytes are needed.
//!
//! Nobody can close a handle of another's. But an inode that a look-up finds under another
//! generation is bad from then on (`fuse_iget`, `fuse_make_bad`): what is open of it reads `EIO`.
//! So the passthrough node of the journal gets its next generation, and look-ups find that node
//! until the kernel surely knows. To open it is `ESTALE`, as the journal is not lent any more,
//! which leads to the direct node. What was mapped stays mapped; the loans end as the handles are
//! closed.

use crate::handles::{Handle, Kept, Lending};
use crate::nodes::{Role, View};
use crate::shown::Shown;
use crate::{Filesystem, Wait};
use protocol::Life;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

/// A journal whose handles end as soon as the kernel looks its name up.
#[derive(Debug, Clone)]
pub struct Revoked {
    shown: Arc<Shown>,
    generation: u64,
}

/// Under which generation the kernel knows the passthrough node of a journal.
#[derive(Debug, Default)]
pub(crate) struct Generation {
    current: AtomicU64,
    /// The kernel may not have seen the current one.
    is_news: AtomicBool,
}

impl Generation {
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::SeqCst)
    }

    pub(crate) fn is_news(&self) -> bool {
        self.is_news.load(Ordering::SeqCst)
    }

    fn next(&self) -> u64 {
        // Before the number: a look-up in between finds the same node of the old one, once more.
        self.is_news.store(true, Ordering::SeqCst);
        self.current.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn set_known(&self) {
        self.is_news.store(false, Ordering::SeqCst);
    }
}

/// Whether a handle keeps a loan of the journal.
fn is_lent(handle: &Handle, life: Life) -> bool {
    matches!(handle.kept, Kept::Loan(_))
        && matches!(handle.node.role(), Role::Journal(shown, _) if shown.life() == life)
}

/// The handles of a journal that the kernel still reads through.
#[derive(Debug)]
struct Open {
    shown: Arc<Shown>,
    handles: usize,
    is_written: bool,
}

impl Filesystem {
    /// The journals whose loans are asked back at this moment.
    pub fn revocations(&self) -> watch::Receiver<BTreeSet<Life>> {
        self.journals.revocations()
    }

    /// Gives back what the kernel was lent of these journals: those are returned that it has to
    /// look up for that. A journal that is open for writing is left for another time, since its
    /// writer would get the error.
    pub fn take_back(&self, lives: &BTreeSet<Life>) -> Vec<Revoked> {
        let mut open = self.open_of(lives);
        open.retain(|_, open| !open.is_written);
        let taking = open.into_values().map(|Open { shown, handles, .. }| {
            let generation = shown.generation.next();
            self.revoked.fetch_add(handles, Ordering::Relaxed);
            tracing::warn!(journal = %shown.journal(), handles, "open files get EIO from here on");
            Revoked { shown, generation }
        });
        taking.collect()
    }

    /// What is open of these journals under the current generation of their nodes.
    fn open_of(&self, lives: &BTreeSet<Life>) -> BTreeMap<Life, Open> {
        let mut found = BTreeMap::new();
        for handle in self.handles.all() {
            let (Role::Journal(shown, _), Kept::Loan(lending)) = (handle.node.role(), &handle.kept)
            else {
                continue;
            };
            let Lending { generation, is_written, .. } = *lending;
            if !lives.contains(&shown.life()) || generation != shown.generation.current() {
                continue;
            }
            let open = Open { shown: shown.clone(), handles: 0, is_written: false };
            let open = found.entry(shown.life()).or_insert(open);
            open.handles += 1;
            open.is_written |= is_written;
        }
        found
    }

    /// Where the file is, from the root of the mount. `None` where no file name stands for it.
    pub fn place_of_revoked(self: &Arc<Self>, revoked: &Revoked) -> Wait<Option<PathBuf>> {
        let (fs, shown) = (self.clone(), revoked.shown.clone());
        Box::pin(async move { fs.place(View::Plain, shown.journal().as_str()).await })
    }

    /// Whether the kernel has yet to be told that handles of the journal are taken back.
    pub(crate) fn is_being_revoked(&self, shown: &Shown) -> bool {
        if !shown.generation.is_news() {
            return false;
        }
        let is_open = self.handles.all().iter().any(|handle| is_lent(handle, shown.life()));
        if !is_open {
            shown.generation.set_known();
        }
        is_open
    }

    /// The kernel has looked the name up since: from here on it finds whichever node fits.
    pub fn has_taken_back(&self, revoked: &Revoked) {
        let Revoked { shown, generation } = revoked;
        if shown.generation.current() == *generation {
            shown.generation.set_known();
        }
    }
}
