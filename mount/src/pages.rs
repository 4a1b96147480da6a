//! The kernel's page cache, as far as the mount asks for it: renewing pages of the tail.

use bytes::Bytes;
use fs::{Kernel, NodeId, Renewal};
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

fn renew(notifier: &Notifier, node: NodeId, renewal: &Renewal) -> io::Result<()> {
    let inode = INodeNo(node.0);
    // A length of 0 means up to the end (fuse_reverse_inval_inode).
    notifier.inval_inode(inode, renewal.drop_from.get(), 0)?;
    let put = |(at, bytes): &(Offset, Bytes)| notifier.store(inode, at.as_u64(), bytes);
    renewal.puts.iter().try_for_each(put).or_else(|error| {
        // For want of memory, say: what can't be made right goes.
        let from = renewal.puts.first().map_or(0, |(at, _)| at.get());
        notifier.inval_inode(inode, from, 0)?;
        Err(error)
    })
}

impl Kernel for Pages {
    /// The notifications wait for the folio of a READ under way (invalidate_inode_pages2_range,
    /// filemap_grab_folio), so they have a thread of their own: on a FUSE thread they would wait
    /// for themselves.
    fn renew(&self, node: NodeId, renewal: Renewal) -> BoxFuture<'static, ()> {
        let notifier = self.notifier.clone();
        let renewing = self.runtime.spawn_blocking(move || renew(&notifier, node, &renewal));
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
