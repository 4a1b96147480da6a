//! Open files and directories.

use crate::about::SpecText;
use crate::nodes::{Node, Role};
use crate::shown::{Lent, Open};
use crate::staging::Pen;
use crate::{Error, Kind, NodeId};
use bytes::Bytes;
use client::Loan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The number of an open file or directory; never used twice in a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(pub u64);

/// An opened file or directory.
pub struct Opened {
    pub handle: HandleId,
    pub way: Way,
}

/// How the kernel is to read and write through a handle.
pub enum Way {
    /// Each read and write comes here; nothing is cached.
    Direct,
    /// The kernel reads this file itself. With `direct`, writes come here all the same. All handles
    /// of a node that are open at once have the same file.
    Passthrough { node: NodeId, file: Arc<Lent>, direct: bool },
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    pub name: Vec<u8>,
    pub inode: u64,
    pub kind: Kind,
}

/// What an open handle keeps.
pub(crate) enum Kept {
    File,
    /// The pin of the mirror, from OPEN to RELEASE.
    Loan(Lending),
    /// A directory as it was at OPEN.
    Listing(Vec<DirEntry>),
    /// A text as it was at OPEN.
    Text(Bytes),
    /// What is being written of a spec.
    Spec(tokio::sync::Mutex<SpecText>),
}

/// A mirror that the kernel reads through a handle.
pub(crate) struct Lending {
    pub(crate) _loan: Loan,
    /// That of the node at OPEN.
    pub(crate) generation: u64,
    pub(crate) is_written: bool,
}

pub(crate) struct Handle {
    pub(crate) node: Arc<Node>,
    pub(crate) kept: Kept,
    /// What it has waiting, where its writes are not appends of their own.
    pub(crate) pen: Option<Arc<tokio::sync::Mutex<Pen>>>,
    /// Why a queued write of it failed: the first failure stays.
    pub(crate) failed: Arc<OnceLock<Error>>,
    /// Where the last read ended; `poll` carries no position of its own.
    position: AtomicU64,
    _open: Option<Open>,
}

impl Handle {
    pub(crate) fn new(node: Arc<Node>, kept: Kept) -> Self {
        let position = AtomicU64::new(0);
        let _open = match node.role() {
            Role::Journal(shown, _) => Some(Open::new(shown)),
            _ => None,
        };
        Handle { node, kept, pen: None, failed: Arc::default(), position, _open }
    }

    pub(crate) fn with(self, pen: Option<Pen>) -> Self {
        Handle { pen: pen.map(tokio::sync::Mutex::new).map(Arc::new), ..self }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    pub(crate) fn read_to(&self, position: u64) {
        self.position.store(position, Ordering::Relaxed);
    }
}

/// The handles of a mount.
#[derive(Default)]
pub(crate) struct Handles(Mutex<Table>);

#[derive(Default)]
struct Table {
    open: BTreeMap<HandleId, Arc<Handle>>,
    opened: u64,
}

impl Handles {
    pub(crate) fn add(&self, handle: Handle) -> HandleId {
        let mut table = self.table();
        table.opened += 1;
        let id = HandleId(table.opened);
        table.open.insert(id, Arc::new(handle));
        id
    }

    pub(crate) fn get(&self, id: HandleId) -> Result<Arc<Handle>, Error> {
        self.table().open.get(&id).cloned().ok_or(Error::BadHandle)
    }

    /// The handle is gone, once the operations that still use it end.
    pub(crate) fn remove(&self, id: HandleId) -> Option<Arc<Handle>> {
        // What it keeps is given back by the caller, outside the lock.
        self.table().open.remove(&id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Handle>> {
        self.table().open.values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.table().open.len()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}
