//! The seam to the kernel that asks: the one thing which the tree asks of it.

use crate::NodeId;
use bytes::Bytes;
use futures::future::BoxFuture;
use protocol::Offset;

/// A kernel with a page cache. Without one (in tests of semantics) nothing is cached.
pub trait Kernel: Send + Sync + 'static {
    /// Makes the cached pages of a node fit for a larger size.
    ///
    /// It waits for reads that fill such a page, so it must never run on a thread that answers
    /// reads, and no such read may wait for it.
    fn renew(&self, node: NodeId, renewal: Renewal) -> BoxFuture<'static, ()>;
}

/// What becomes of the cached pages of a node, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Pages are dropped, from the one that holds this offset to the last.
    pub drop_from: Offset,
    /// Bytes are put into the pages that there are, or into new ones, one piece after the other.
    /// The kernel believes in a size that reaches as far.
    pub puts: Vec<(Offset, Bytes)>,
}
