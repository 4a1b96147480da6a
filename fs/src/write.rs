//! Writing: each write is one append, whole, and is answered after its commit.

use crate::limits::ATOMIC_MAX;
use crate::nodes::{Node, Role, Side};
use crate::patience::patiently;
use crate::placeholders::Placeholder;
use crate::shown::Shown;
use crate::{Error, Filesystem, Fsync, HandleId, Wait};
use bytes::Bytes;
use client::{Append, Appended, Durability, Writer};
use protocol::{LabelSet, Offset};
use rustix::fs::OFlags;
use std::sync::Arc;

/// A write through a handle.
#[derive(Debug, Clone, Copy)]
pub struct WriteAt<'a> {
    pub handle: HandleId,
    /// Where the kernel believes that the write goes. With `O_APPEND` it is not believed.
    pub offset: u64,
    pub content: &'a [u8],
    /// The flags of the file at this moment: `fcntl` can set `O_APPEND` after the open.
    pub flags: OFlags,
}

impl Filesystem {
    /// Appends the content, or its first [`ATOMIC_MAX`] bytes, and says how many: what is answered
    /// is one append, whole. Without `O_APPEND` it must begin at the head.
    pub fn write(self: &Arc<Self>, write: WriteAt<'_>) -> Wait<usize> {
        let fs = self.clone();
        let (handle, flags, offset) = (write.handle, write.flags, write.offset);
        let content = &write.content[..write.content.len().min(ATOMIC_MAX)];
        let content = Bytes::copy_from_slice(content);
        Box::pin(async move {
            let handle = fs.handles.get(handle)?;
            let node = handle.node.clone();
            drop(handle);
            if content.is_empty() {
                return Ok(0);
            }
            let offset = match flags.contains(OFlags::APPEND) {
                true => None,
                false => Some(Offset::try_from(offset).map_err(client::Error::from)?),
            };
            let synced = flags.intersects(OFlags::DSYNC | OFlags::SYNC);
            let durability = if synced { Durability::Disk } else { fs.options.durability };
            let shown = fs.writable(&node, offset).await?;
            fs.append(&shown, content, offset, durability).await
        })
    }

    /// The journal behind a node, made of its placeholder if it is one.
    async fn writable(&self, node: &Node, offset: Option<Offset>) -> Result<Arc<Shown>, Error> {
        match self.role(node).await? {
            _ if self.options.read_only => Err(Error::ReadOnly),
            Role::Journal(_, Side::Follow) | Role::Status => Err(Error::ReadOnly),
            Role::Directory(..) | Role::Control => Err(Error::IsDirectory),
            Role::Journal(shown, _) => Ok(shown),
            Role::Placeholder(placeholder) => {
                // A write that can't succeed must not leave an empty journal.
                if let Some(offset) = offset.filter(|offset| offset.get() > 0) {
                    return Err(Error::BeyondHead { offset: offset.as_u64() });
                }
                self.settle(node, &placeholder).await
            }
        }
    }

    /// Creates the journal of a placeholder.
    async fn settle(&self, node: &Node, placeholder: &Placeholder) -> Result<Arc<Shown>, Error> {
        let Some(name) = placeholder.name() else { return Err(Error::Stale) };
        let journal = self.journal(&name)?;
        let ask = || self.journals.create(&journal);
        let stat = patiently(self.options.write_timeout, ask).await?;
        self.adopt(node, &name, &stat);
        Ok(self.gallery.show(&journal, stat.life))
    }

    async fn append(
        &self,
        shown: &Shown,
        content: Bytes,
        offset: Option<Offset>,
        durability: Durability,
    ) -> Result<usize, Error> {
        let len = content.len();
        let turn = shown.turn.lock().await;
        let writer = Writer { id: self.options.writer, sequence: self.next_sequence() };
        let append = Append {
            journal: shown.journal().clone(),
            life: Some(shown.life()),
            content,
            durability: Some(durability),
            offset,
            writer: Some(writer),
            check_registers: None,
            union_registers: LabelSet::default(),
            subtract_registers: LabelSet::default(),
        };
        // The same sequence each time: what is asked twice is applied once.
        let ask = || self.journals.append(append.clone());
        let appended = patiently(self.options.write_timeout, ask).await;
        drop(turn);
        let appended = appended.map_err(|error| refused_append(error, offset))?;
        self.acknowledge(shown, appended).await?;
        Ok(len)
    }

    /// The answer raises the size that the kernel believes in, so it waits like any other.
    async fn acknowledge(&self, shown: &Shown, appended: Appended) -> Result<(), Error> {
        if appended.life != shown.life() {
            return Err(Error::Stale);
        }
        shown.publish(appended.span.end(), self.kernel()).await;
        Ok(())
    }

    /// Waits until all that was appended so far is durable on disk.
    pub fn fsync(self: &Arc<Self>, handle: HandleId) -> Wait<()> {
        let fs = self.clone();
        Box::pin(async move {
            let handle = fs.handles.get(handle)?;
            let Role::Journal(shown, _) = fs.role(&handle.node).await? else { return Ok(()) };
            let head = fs.stat(&shown).await?.head;
            let ask = || fs.journals.sync(shown.journal(), head);
            match patiently(fs.options.write_timeout, ask).await {
                Err(client::Error::NoDisk(_)) if fs.options.fsync == Fsync::Replicated => Ok(()),
                synced => Ok(synced?),
            }
        })
    }
}

/// What a failed append means for a write: below the head bytes never change, beyond it there is
/// nothing to write to.
fn refused_append(error: client::Error, offset: Option<Offset>) -> Error {
    match (error, offset) {
        (client::Error::WrongOffset { head, .. }, Some(offset)) if offset > head => {
            Error::BeyondHead { offset: offset.as_u64() }
        }
        (client::Error::WrongOffset { .. }, _) => Error::Unchangeable,
        (client::Error::NotAllowed { .. }, _) => Error::ReadOnly,
        (client::Error::NotFound(_) | client::Error::Deleted(_), _) => Error::Stale,
        (error, _) => error.into(),
    }
}
