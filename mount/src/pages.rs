//! The kernel's page cache, as far as the mount asks for it: dropping pages of the tail.

use fs::{Kernel, NodeId};
use fuser::{INodeNo, Notifier};
use futures::future::BoxFuture;
use protocol::Offset;
use tokio::runtime::Handle;

/// Drops pages through FUSE_NOTIFY_INVAL_INODE.
pub struct Pages {
    notifier: Notifier,
    runtime: Handle,
}

impl Pages {
    pub fn new(notifier: Notifier, runtime: Handle) -> Self {
        Pages { notifier, runtime }
    }
}

impl Kernel for Pages {
    /// The notification waits for the folio of a READ under way (invalidate_inode_pages2_range), so
    /// it has a thread of its own: on a FUSE thread it would wait for itself.
    fn drop_pages(&self, node: NodeId, from: Offset) -> BoxFuture<'static, ()> {
        let notifier = self.notifier.clone();
        // A length of 0 means up to the end (fuse_reverse_inval_inode).
        let drop_pages = move || notifier.inval_inode(INodeNo(node.0), from.get(), 0);
        let dropping = self.runtime.spawn_blocking(drop_pages);
        Box::pin(async move {
            match dropping.await {
                Ok(Ok(())) => {}
                // Without a connection there is no cache either.
                Ok(Err(error)) => tracing::debug!(%error, "pages could not be dropped"),
                Err(error) => tracing::error!(%error, "dropping pages panicked"),
            }
        })
    }
}
