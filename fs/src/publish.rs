//! Making a size fit to be told: what the kernel cached at the old one is made right first.

use crate::nodes::{Role, Side};
use crate::shown::Shown;
use crate::{Filesystem, NodeId, Renewal, Trimmed};
use protocol::Offset;

/// A page of the kernel's cache.
const PAGE: u64 = 4096;

/// Growth that is put into pages whole. Of more, the old tail's page and the last byte are.
const PUT_MAX: u64 = 4 * PAGE;

impl Filesystem {
    /// Makes `head` fit to be told. The bytes below must be readable already, and `head` is read
    /// before this is called: the order is what [`Shown::mark_filled`] relies on.
    ///
    /// The page that was filled at the old end gets its new bytes where it lies. To drop it is not
    /// enough: who got the page before, and asks for the size after that, as filemap_splice_read
    /// does, would hold the old one and believe in the new size. The size goes up with the first
    /// byte that is put beyond it (fuse_notify_store), and the bytes are there moments later, so a
    /// fill that is under way has to be over before: the byte before the old end is put first, for
    /// which the kernel waits until the page is filled, and which changes nothing.
    pub(crate) async fn publish(&self, shown: &Shown, head: Offset) {
        let Some(kernel) = self.kernel() else { return };
        let Some(telling) = shown.telling(head).await else { return };
        let renewal_of_tail = self.renewal(shown, telling.last(), head).await;
        let drop_from = Some(page_of(telling.last()));
        for node in &telling.nodes {
            let renewal = match self.goes_by_our_size(*node) {
                true => renewal_of_tail.clone(),
                false => Renewal { drop_from, ..Renewal::default() },
            };
            kernel.renew(*node, renewal).await;
        }
        telling.end(head);
    }

    /// What makes pages of the size `old` fit for `head`.
    ///
    /// Where no byte can be put into the old tail's page, that page is dropped, which voids the
    /// attributes that are on their way (`attr_version` in fuse_reverse_inval_inode): who asked is
    /// told the new size, and the kernel goes on with the old one, by which a mapping of the tail
    /// is a SIGBUS and sendfile ends early. So the kernel is shown the last byte in any case.
    async fn renewal(&self, shown: &Shown, old: Offset, head: Offset) -> Renewal {
        let page = page_of(old);
        let told = old.since(page);
        let mut renewal = Renewal::default();
        let mut end = old;
        if told > 0 {
            let whole = head.since(page);
            let len = if whole <= PUT_MAX { whole } else { PAGE };
            let len = usize::try_from(len).expect("some pages");
            let told = usize::try_from(told).expect("less than a page");
            match self.gather(shown, page, len, Trimmed::Error).await {
                Ok(bytes) if bytes.len() == len => {
                    end = page.plus(len as u64);
                    renewal.puts.push((page.plus(told as u64 - 1), bytes.slice(told - 1..told)));
                    renewal.puts.push((page, bytes));
                }
                // What can't be read (a range that was lost) is in no page either.
                _ => renewal.drop_from = Some(page),
            }
        }
        if end < head {
            renewal.puts.extend(self.last_byte(shown, head).await);
        }
        renewal
    }

    async fn last_byte(&self, shown: &Shown, head: Offset) -> Option<(Offset, bytes::Bytes)> {
        let at = Offset::try_from(head.as_u64().checked_sub(1)?).ok()?;
        let byte = self.piece(shown, at, 1, Trimmed::Error).await.ok()?;
        (!byte.is_empty()).then_some((at, byte))
    }

    /// Whether reads of a node end where we say, and not with a file that the kernel reads itself.
    fn goes_by_our_size(&self, node: NodeId) -> bool {
        let role = self.nodes.get(node).map(|node| node.role());
        matches!(role, Some(Role::Journal(_, side)) if side != Side::Passthrough)
    }
}

/// Where the page begins that an offset lies in.
fn page_of(offset: Offset) -> Offset {
    let page = offset.as_u64() / PAGE * PAGE;
    Offset::try_from(page).expect("rounded down from an offset")
}
