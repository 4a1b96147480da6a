//! The file system: what its operations share, and the small ones.

use crate::attr::directory_inode;
use crate::directories::Directories;
use crate::foresight::Foresight;
use crate::handles::{Handles, Kept};
use crate::handover::Handover;
use crate::names::{self, control_inode};
use crate::nodes::{Node, Nodes, Role};
use crate::opened::Waiting;
use crate::patience::within;
use crate::pending::Pending;
use crate::placeholders::Placeholders;
use crate::recent::Recent;
use crate::shown::{Gallery, Shown};
use crate::staging::Staging;
use crate::watched::Steered;
use crate::{Attr, Error, HandleId, Kernel, NodeId, Options};
use client::{Journals, Space, Stat};
use protocol::Journal;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// An operation under way. It is ready at the first poll unless something has to be waited for, and
/// it needs a tokio runtime around each poll.
pub type Wait<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'static>>;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// A thread id; 0 for one of an unrelated PID namespace, or for the kernel itself.
    pub thread: u32,
}

/// The room that `statfs` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub space: Space,
    /// The longest name of a file, in bytes.
    pub name_max: u32,
}

/// Journals as a tree of append-only files.
pub struct Filesystem {
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) options: Options,
    pub(crate) nodes: Nodes,
    pub(crate) gallery: Gallery,
    pub(crate) handles: Handles,
    pub(crate) handover: Handover,
    pub(crate) steered: Steered,
    pub(crate) waiting: Waiting,
    /// Handles that were taken back since the mount began.
    pub(crate) revoked: AtomicUsize,
    pub(crate) placeholders: Placeholders,
    pub(crate) directories: Directories,
    pub(crate) foresight: Foresight,
    /// Why specs were refused.
    pub(crate) specs_refused: Recent,
    kernel: OnceLock<Arc<dyn Kernel>>,
    passthrough: AtomicBool,
    /// Where what was written waits until it may be committed.
    pub(crate) staging: Option<Arc<Staging>>,
    /// What goes on after programs were answered.
    pub(crate) pending: Pending,
    /// Room for queued writes.
    pub(crate) room: Arc<Semaphore>,
    /// The last sequence of this mount's appends. One for all journals, so that it rises for each.
    sequence: AtomicU64,
}

impl Filesystem {
    /// A file system that keeps nothing on the local disk: there is no line mode and no whole view.
    pub fn new(journals: Arc<dyn Journals>, options: Options) -> Arc<Self> {
        Self::build(journals, options, None)
    }

    /// A file system that keeps unfinished lines and whole files in a staging directory.
    pub fn with_staging(
        journals: Arc<dyn Journals>,
        options: Options,
        staging: Staging,
    ) -> Arc<Self> {
        Self::build(journals, options, Some(Arc::new(staging)))
    }

    fn build(
        journals: Arc<dyn Journals>,
        options: Options,
        staging: Option<Arc<Staging>>,
    ) -> Arc<Self> {
        Arc::new(Filesystem {
            journals,
            passthrough: AtomicBool::new(options.passthrough),
            options,
            nodes: Nodes::new(),
            gallery: Gallery::default(),
            handles: Handles::default(),
            handover: Handover::default(),
            steered: Steered::default(),
            waiting: Waiting::default(),
            revoked: AtomicUsize::new(0),
            placeholders: Placeholders::default(),
            directories: Directories::default(),
            foresight: Foresight::default(),
            specs_refused: Recent::default(),
            kernel: OnceLock::new(),
            staging,
            pending: Pending::none(),
            room: crate::queue::room(),
            sequence: AtomicU64::new(0),
        })
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The kernel whose cached pages are to be dropped. Told once, before the first operation.
    pub fn attach(&self, kernel: Arc<dyn Kernel>) {
        let attached = self.kernel.set(kernel);
        assert!(attached.is_ok(), "a file system has one kernel");
    }

    pub(crate) fn kernel(&self) -> Option<&Arc<dyn Kernel>> {
        self.kernel.get()
    }

    /// The kernel refuses to read mirrors: from here on every journal is looked up as one that is
    /// read and written through this process.
    pub fn stop_passthrough(&self) {
        self.passthrough.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_passthrough(&self) -> bool {
        self.passthrough.load(Ordering::Relaxed)
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An operation that waits for what passes by itself no longer than [`Options::write_timeout`]
    /// in all, less what its system call has `spent` on waiting so far: the kernel makes several
    /// requests of one call. Without this each wait of an operation has that limit by itself.
    pub fn within<T>(
        &self,
        spent: Duration,
        wait: Wait<T>,
    ) -> impl Future<Output = Result<T, Error>> + use<T> {
        within(self.options.write_timeout.saturating_sub(spent), wait)
    }

    /// The kernel takes back look-ups of a node.
    pub fn forget(&self, node: NodeId, lookups: u64) {
        self.nodes.forget(node, lookups);
    }

    /// Whether the modes of the tree let anyone ask: the kernel checks them (default_permissions),
    /// so all that is left is that the node is there.
    pub fn access(&self, node: NodeId) -> Result<(), Error> {
        self.node(node).map(drop)
    }

    /// Free room, without the network.
    pub fn statfs(&self) -> Usage {
        let name_max = u32::try_from(crate::limits::NAME_MAX).expect("255 is small");
        Usage { space: self.journals.space(), name_max }
    }

    /// A descriptor is closed, by a duplicate or by the end of a child as well. Waits for writes
    /// that were only queued, and tells the first of the handle's that failed; a spec that was
    /// written is applied. Else nothing is left to a close.
    pub fn flush(self: &Arc<Self>, handle: HandleId) -> Wait<()> {
        let (fs, handle) = (self.clone(), self.handles.get(handle));
        Box::pin(async move {
            let handle = handle?;
            fs.apply_written(&handle).await?;
            match handle.node.role() {
                Role::Journal(shown, _) => fs.drain(&shown, &handle.failed).await,
                _ => Ok(()),
            }
        })
    }

    /// Whether a close through the handle has something to tell: [`flush`](Self::flush) is to be
    /// asked for.
    pub fn tells_at_close(&self, handle: HandleId) -> bool {
        let kept = self.handles.get(handle);
        self.options.asynchronous || kept.is_ok_and(|it| matches!(it.kept, Kept::Spec(_)))
    }

    /// A node that the kernel knows; `Stale` for one that it should not.
    pub(crate) fn node(&self, id: NodeId) -> Result<Arc<Node>, Error> {
        self.nodes.get(id).ok_or(Error::Stale)
    }

    /// What a node is at this moment: a placeholder whose journal exists meanwhile becomes it here.
    pub(crate) async fn role(&self, node: &Node) -> Result<Role, Error> {
        let Role::Placeholder(placeholder, view) = node.role() else { return Ok(node.role()) };
        let Some(name) = placeholder.name() else { return Err(Error::Stale) };
        let Some(stat) = self.find(&self.journal(&name)?).await? else {
            return Ok(Role::Placeholder(placeholder, view));
        };
        self.adopt(node, &name, &stat);
        Ok(node.role())
    }

    /// The placeholder of a node has become the journal.
    pub(crate) fn adopt(&self, node: &Node, name: &str, stat: &Stat) {
        self.placeholders.settle(name);
        let shown = self.gallery.show(&stat.journal, stat.life);
        let role = node.role();
        let was_filled = || matches!(&role, Role::Placeholder(it, _) if it.is_filled());
        if was_filled() {
            shown.mark_filled_empty();
        }
        self.nodes.adopt(node, shown.clone());
        // A renewal between the two did not see the node.
        if was_filled() {
            shown.mark_filled_empty();
        }
    }

    /// The journal that a name of the tree stands for.
    pub(crate) fn journal(&self, name: &str) -> Result<Journal, Error> {
        let full = format!("{}{name}", self.options.prefix);
        let too_long = full.len() > 512;
        Journal::new(&full).map_err(|invalid| match too_long {
            true => Error::NameTooLong,
            false => Error::Journals(invalid.into()),
        })
    }

    /// What the names of all journals in a directory of the tree begin with.
    pub(crate) fn full_below(&self, path: &str) -> String {
        format!("{}{}", self.options.prefix, names::below(path))
    }

    /// A journal by name; `None` where there is none.
    pub(crate) async fn find(&self, journal: &Journal) -> Result<Option<Stat>, Error> {
        let ask = || self.journals.stat(journal);
        match crate::patience::patiently(self.options.write_timeout, ask).await {
            Ok(stat) => Ok(Some(stat)),
            Err(client::Error::NotFound(_) | client::Error::Deleted(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A shown journal as it is; `Stale` when its life is over.
    pub(crate) async fn stat(&self, shown: &Shown) -> Result<Stat, Error> {
        let stat = self.find(shown.journal()).await?;
        stat.filter(|stat| stat.life == shown.life()).ok_or(Error::Stale)
    }

    pub(crate) fn directory_attr(&self, path: &str) -> Attr {
        Attr::directory(&self.options, directory_inode(&self.full_below(path)))
    }

    pub(crate) fn control_attr(&self, name: &str) -> Attr {
        Attr::directory(&self.options, control_inode(name))
    }
}
