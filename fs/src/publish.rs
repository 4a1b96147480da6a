//! Making a size fit to be told: what the kernel cached at the old one goes first.

use crate::nodes::{Role, Side};
use crate::shown::Shown;
use crate::{Filesystem, LastByte, NodeId, Trimmed};
use protocol::Offset;

/// A page of the kernel's cache.
const PAGE: u64 = 4096;

impl Filesystem {
    /// Makes `head` fit to be told. The bytes below must be readable already, and `head` is read
    /// before this is called: the order is what [`Shown::mark_filled`] relies on.
    ///
    /// Dropping pages voids the attributes that are on their way (`attr_version` in
    /// fuse_reverse_inval_inode): who asked is told the new size, and the kernel goes on with the
    /// old one, by which a mapping of the tail is a SIGBUS and sendfile ends early. So the kernel
    /// is shown the journal's last byte as well, which makes it believe in the size
    /// (fuse_notify_store).
    pub(crate) async fn publish(&self, shown: &Shown, head: Offset) {
        let Some(kernel) = self.kernel() else { return };
        let Some(telling) = shown.telling(head).await else { return };
        let from = telling.last().as_u64() / PAGE * PAGE;
        let from = Offset::try_from(from).expect("rounded down from an offset");
        let last = self.last_byte(shown, head).await;
        for node in &telling.nodes {
            let last = last.filter(|_| self.goes_by_our_size(*node));
            kernel.renew(*node, from, last).await;
        }
        telling.end(head);
    }

    async fn last_byte(&self, shown: &Shown, head: Offset) -> Option<LastByte> {
        let at = Offset::try_from(head.as_u64().checked_sub(1)?).ok()?;
        // What can't be read (a range that was lost) has no page either.
        let byte = *self.piece(shown, at, 1, Trimmed::Error).await.ok()?.first()?;
        Some(LastByte { at, byte })
    }

    /// Whether reads of a node end where we say, and not with a file that the kernel reads itself.
    fn goes_by_our_size(&self, node: NodeId) -> bool {
        let role = self.nodes.get(node).map(|node| node.role());
        matches!(role, Some(Role::Journal(_, side)) if side != Side::Passthrough)
    }
}
