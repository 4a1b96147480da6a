//! The seam to the kernel that asks: the one thing which the tree asks of it.

use crate::NodeId;
use futures::future::BoxFuture;
use protocol::Offset;

/// A kernel with a page cache. Without one (in tests of semantics) nothing is cached.
pub trait Kernel: Send + Sync + 'static {
    /// Drops the cached pages of a node, from the one that holds `from` to the last. Then, where a
    /// last byte is given, has the kernel believe in the size that ends with it.
    ///
    /// It waits for reads that fill such a page, so it must never run on a thread that answers
    /// reads, and no such read may wait for it.
    fn renew(&self, node: NodeId, from: Offset, last: Option<LastByte>) -> BoxFuture<'static, ()>;
}

/// The byte that a journal ends with at some head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastByte {
    pub at: Offset,
    pub byte: u8,
}
