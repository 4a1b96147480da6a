//! Making a size fit to be told: what the kernel cached at the old one is made right first.

use crate::nodes::{Role, Side};
use crate::shown::{Shown, Told};
use crate::{Filesystem, NodeId, Renewal, Trimmed};
use bytes::Bytes;
use protocol::Offset;
use std::time::Duration;
use tokio::time::timeout;

/// A page of the kernel's cache.
const PAGE: u64 = 4096;

/// Growth that is read at once. Of more, what belongs into the old tail's page is, and the last
/// byte.
const READ_MAX: u64 = 4 * PAGE;

/// How long the byte before the old end is waited for, which only the first renewal reads.
const BEFORE_MAX: Duration = Duration::from_millis(100);

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
        let told = telling.told();
        let (by_our_size, by_their_file): (Vec<NodeId>, Vec<NodeId>) =
            telling.nodes.iter().partition(|node| self.goes_by_our_size(**node));
        let drops = Renewal { drop_from: page_of(told.size), puts: Vec::new() };
        for node in by_their_file {
            kernel.renew(node, drops.clone()).await;
        }
        let mut last = None;
        if !by_our_size.is_empty() {
            let growth = self.grown_by(shown, told, head).await;
            let renewal = growth.renewal(told, head);
            for node in by_our_size {
                kernel.renew(node, renewal.clone()).await;
            }
            last = growth.last;
        }
        telling.end(head, last.and_then(|last| last.first().copied()));
    }

    /// Reads what the pages need.
    async fn grown_by(&self, shown: &Shown, told: Told, head: Offset) -> Growth {
        let (from, grown) = (told.size, head.since(told.size));
        let missing = match grown {
            ..=READ_MAX => grown,
            _ => page_of(from).plus(PAGE).since(from) % PAGE,
        };
        let is_all = missing == grown;
        let last_at = from.plus(grown - 1);
        let (before, rest, last) = futures::future::join3(
            self.before(shown, told),
            self.exactly(shown, from, missing),
            self.exactly(shown, last_at, u64::from(!is_all)),
        )
        .await;
        let last = match &rest {
            Some(rest) if is_all => Some(rest.slice(rest.len() - 1..)),
            // Some byte before it can't be read.
            None if is_all => self.exactly(shown, last_at, 1).await,
            _ => last,
        };
        Growth { before, rest, last }
    }

    /// The byte before the size that was told. It may have to come from a store, for which nobody
    /// waits long.
    async fn before(&self, shown: &Shown, told: Told) -> Option<u8> {
        let at = Offset::try_from(told.size.as_u64().checked_sub(1)?).ok()?;
        match told.last {
            Some(last) => Some(last),
            None => timeout(BEFORE_MAX, self.exactly(shown, at, 1)).await.ok()??.first().copied(),
        }
    }

    /// So many bytes at an offset; `None` where they can't be read.
    async fn exactly(&self, shown: &Shown, at: Offset, len: u64) -> Option<Bytes> {
        let len = usize::try_from(len).expect("some pages");
        if len == 0 {
            return Some(Bytes::new());
        }
        let bytes = self.gather(shown, at, len, Trimmed::Error).await.ok()?;
        (bytes.len() == len).then_some(bytes)
    }

    /// Whether reads of a node end where we say, and not with a file that the kernel reads itself.
    fn goes_by_our_size(&self, node: NodeId) -> bool {
        let role = self.nodes.get(node).map(|node| node.role());
        matches!(role, Some(Role::Journal(_, side)) if side != Side::Passthrough)
    }
}

/// Bytes around the size that was told; `None` where they can't be read.
struct Growth {
    /// The byte before that size.
    before: Option<u8>,
    /// From that size on: all of them, or to the end of the page.
    rest: Option<Bytes>,
    /// The last one.
    last: Option<Bytes>,
}

impl Growth {
    /// What makes pages that were filled at `told` fit for `head`.
    ///
    /// Pages behind the old end are there where the kernel believed in more than was committed, as
    /// after a write that was queued or staged: they are dropped. So is the old tail's page where
    /// no byte can be put into it. That voids the attributes that are on their way (`attr_version`
    /// in fuse_reverse_inval_inode): who asked is told the new size, and the kernel goes on with
    /// the old one, by which a mapping of the tail is a SIGBUS and sendfile ends early. So the
    /// kernel is shown the last byte in any case.
    fn renewal(&self, told: Told, head: Offset) -> Renewal {
        let page = page_of(told.size);
        let is_partial = told.size > page;
        let mut renewal = Renewal { drop_from: page, puts: Vec::new() };
        let mut end = told.size;
        if let (true, Some(byte), Some(rest)) = (is_partial, self.before, &self.rest) {
            renewal.drop_from = page.plus(PAGE);
            let before = page.plus(told.size.since(page) - 1);
            renewal.puts.push((before, Bytes::copy_from_slice(&[byte])));
            renewal.puts.push((told.size, rest.clone()));
            end = told.size.plus(rest.len() as u64);
        }
        if let (true, Some(last)) = (end < head, &self.last) {
            let at = told.size.plus(head.since(told.size) - 1);
            renewal.puts.push((at, last.clone()));
        }
        renewal
    }
}

/// Where the page begins that an offset lies in.
fn page_of(offset: Offset) -> Offset {
    let page = offset.as_u64() / PAGE * PAGE;
    Offset::try_from(page).expect("rounded down from an offset")
}
