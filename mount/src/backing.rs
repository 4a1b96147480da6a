//! The files that the kernel reads itself: one backing id for each node, shared by its handles.

use fs::{HandleId, NodeId};
use fuser::BackingId;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, Weak};

/// Backing ids by node and by handle. The kernel takes one file a node at a time, so an id lives as
/// long as any handle that was opened with it.
#[derive(Debug, Default)]
pub struct Backings(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_node: BTreeMap<NodeId, Weak<BackingId>>,
    by_handle: BTreeMap<HandleId, (NodeId, Arc<BackingId>)>,
}

impl Backings {
    /// The backing id of a handle to be opened: that of its node, or the one that `register` makes.
    /// The lock is held over `register`, one ioctl, so that two opens don't make two.
    pub fn open(
        &self,
        node: NodeId,
        handle: HandleId,
        register: impl FnOnce() -> io::Result<BackingId>,
    ) -> io::Result<Arc<BackingId>> {
        let mut table = self.table();
        let backing = match table.by_node.get(&node).and_then(Weak::upgrade) {
            Some(backing) => backing,
            None => {
                let backing = Arc::new(register()?);
                table.by_node.insert(node, Arc::downgrade(&backing));
                backing
            }
        };
        table.by_handle.insert(handle, (node, backing.clone()));
        Ok(backing)
    }

    /// The handle is released; the last one of a node closes its id.
    pub fn release(&self, handle: HandleId) {
        let mut table = self.table();
        let Some((node, backing)) = table.by_handle.remove(&handle) else { return };
        if Arc::strong_count(&backing) == 1 {
            table.by_node.remove(&node);
        }
        // The ioctl that closes the id runs outside the lock, unless an open still replies with it.
        drop(table);
        drop(backing);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}
