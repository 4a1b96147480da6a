//! The kernel's page cache, as far as the mount asks for it: renewing pages of the tail.

use fs::{Kernel, LastByte, NodeId};
use fuser::{INodeNo, Notifier};
use futures::future::BoxFuture;
use protocol::Offset;
use std::io;
use tokio::runtime::Handle;

/// Renews pages through FUSE_NOTIFY_INVAL_INODE and FUSE_NOTIFY_STORE.
pub struct Pages {
    notifier: Notifier,
    runtime: Handle,
}

impl Pages {
    pub fn new(notifier: Notifier, runtime: Handle) -> Self {
        Pages { notifier, runtime }
    }
}

fn renew(
    notifier: &Notifier,
    node: NodeId,
    from: Offset,
    last: Option<LastByte>,
) -> io::Result<()> {
    // A length of 0 means up to the end (fuse_reverse_inval_inode).
    notifier.inval_inode(INodeNo(node.0), from.get(), 0)?;
    match last {
        Some(LastByte { at, byte }) => notifier.store(INodeNo(node.0), at.as_u64(), &[byte]),
        None => Ok(()),
    }
}

impl Kernel for Pages {
    /// The notifications wait for the folio of a READ under way (invalidate_inode_pages2_range), so
    /// they have a thread of their own: on a FUSE thread they would wait for themselves.
    fn renew(&self, node: NodeId, from: Offset, last: Option<LastByte>) -> BoxFuture<'static, ()> {
        let notifier = self.notifier.clone();
        let renewing = self.runtime.spawn_blocking(move || renew(&notifier, node, from, last));
        Box::pin(async move {
            match renewing.await {
                Ok(Ok(())) => {}
                // Without a connection there is no cache either.
                Ok(Err(error)) => tracing::debug!(%error, "pages could not be renewed"),
                Err(error) => tracing::error!(%error, "renewing pages panicked"),
            }
        })
    }
}
