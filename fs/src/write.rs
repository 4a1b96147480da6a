//! Writing: each write is one append, whole, and answered after its commit, unless another way was
//! asked for.

use crate::drafting::Stroke;
use crate::handles::Kept;
use crate::limits::ATOMIC_MAX;
use crate::nodes::{Node, Role, Side};
use crate::patience::{appending, in_turn, patiently};
use crate::placeholders::Placeholder;
use crate::shown::Shown;
use crate::staging::Draft;
use crate::{Error, Filesystem, Fsync, HandleId, Trimmed, Wait};
use bytes::Bytes;
use client::{Append, Appended, Durability, Writer};
use protocol::{Offset, Remedy};
use rustix::fs::OFlags;
use std::cmp::Ordering;
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
    /// is one append, whole. Without `O_APPEND` it must begin at the head. In line mode and in the
    /// whole view it takes all, of which some waits; on an asynchronous mount it is queued.
    pub fn write(self: &Arc<Self>, write: WriteAt<'_>) -> Wait<usize> {
        let fs = self.clone();
        let (flags, offset) = (write.flags, write.offset);
        let handle = self.handles.get(write.handle);
        let waits = handle.as_ref().is_ok_and(|handle| handle.pen.is_some());
        let max = if waits { write.content.len() } else { ATOMIC_MAX };
        let content = Bytes::copy_from_slice(&write.content[..write.content.len().min(max)]);
        Box::pin(async move {
            let handle = handle?;
            if let Kept::Spec(text) = &handle.kept {
                let at = (!flags.contains(OFlags::APPEND)).then_some(offset);
                return text.lock().await.write(at, &content);
            }
            let (node, pen, failed) =
                (handle.node.clone(), handle.pen.clone(), handle.failed.clone());
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
            if let Some(pen) = pen {
                return fs.write_with(pen, Stroke { node, content, offset, durability }).await;
            }
            let shown = fs.writable(&node, offset).await?;
            if fs.options.asynchronous {
                if !synced {
                    return fs.enqueue(shown, content, offset, failed).await;
                }
                fs.drain(&shown, &failed).await?;
            }
            fs.append(&shown, content, offset, durability).await
        })
    }

    /// The journal behind a node, made of its placeholder if it is one.
    pub(crate) async fn writable(
        &self,
        node: &Node,
        offset: Option<Offset>,
    ) -> Result<Arc<Shown>, Error> {
        let role = match node.role() {
            // To create what exists meanwhile is no error, and costs one request less.
            role @ Role::Placeholder(..) if offset.is_none_or(|it| it == Offset::ZERO) => role,
            _ => self.role(node).await?,
        };
        match role {
            _ if self.options.read_only => Err(Error::ReadOnly),
            Role::Journal(_, Side::Follow) | Role::Status | Role::Fragment(..) | Role::Spec(_) => {
                Err(Error::ReadOnly)
            }
            Role::Directory(..) | Role::Control | Role::About(..) => Err(Error::IsDirectory),
            Role::Journal(shown, _) => Ok(shown),
            Role::Placeholder(placeholder, _) => {
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

    pub(crate) async fn append(
        &self,
        shown: &Shown,
        content: Bytes,
        offset: Option<Offset>,
        durability: Durability,
    ) -> Result<usize, Error> {
        let len = content.len();
        let turn = in_turn(self.options.write_timeout, shown.turn.lock()).await?;
        let writer = Writer { id: self.options.writer, sequence: self.next_sequence() };
        let append = Append {
            life: Some(shown.life()),
            durability: Some(durability),
            offset,
            writer: Some(writer),
            rate_wait: Some(self.options.rate_wait()),
            ..Append::new(shown.journal().clone(), content)
        };
        // The same sequence each time: what is asked twice is applied once.
        let ask = || self.journals.append(append.clone());
        let appended = appending(self.options.write_timeout, false, ask).await;
        drop(turn);
        let appended = appended.map_err(|error| {
            if error.remedy() == Remedy::Later {
                let journal = shown.journal();
                tracing::warn!(%error, %journal, "a write was given up: its time is over");
            }
            refused_append(error, offset)
        })?;
        let foresees_sync = shown.habit.wrote();
        if durability == Durability::Memory {
            shown.unsynced.wrote(appended.span.end());
            if foresees_sync {
                self.journals.sync_soon();
            }
        }
        self.acknowledge(shown, appended).await?;
        Ok(len)
    }

    /// The answer raises the size that the kernel believes in, so it waits like any other.
    pub(crate) async fn acknowledge(&self, shown: &Shown, appended: Appended) -> Result<(), Error> {
        self.foresight.disturb(shown.journal());
        if appended.life != shown.life() {
            return Err(Error::Stale);
        }
        self.publish(shown, appended.span.end()).await;
        Ok(())
    }

    /// Commits what the handle has waiting, and waits until all that was appended so far is durable
    /// on disk.
    pub fn fsync(self: &Arc<Self>, handle: HandleId) -> Wait<()> {
        let fs = self.clone();
        Box::pin(async move {
            let handle = fs.handles.get(handle)?;
            fs.apply_written(&handle).await?;
            if let Some(pen) = &handle.pen {
                let lock = pen.clone().lock_owned();
                let mut pen = in_turn(fs.options.write_timeout, lock).await?;
                // Acknowledged in memory and synced by another request, it could be lost between
                // the two by a power cut of the broker's machine, of which the sync says nothing.
                if fs.journals.knows_writers() {
                    pen.waiting().into_iter().for_each(Draft::ask_for_disk);
                }
                fs.commit(&mut pen, &handle.node).await?;
            }
            let Role::Journal(shown, _) = fs.role(&handle.node).await? else { return Ok(()) };
            fs.drain(&shown, &handle.failed).await?;
            shown.habit.syncs();
            let written = shown.unsynced.end();
            let ask = || fs.journals.sync(shown.journal(), Offset::MAX);
            match patiently(fs.options.write_timeout, ask).await {
                Err(client::Error::NoDisk(_)) if fs.options.fsync == Fsync::Replicated => Ok(()),
                Err(client::Error::NotFound(_)) => Err(Error::Stale),
                synced => {
                    synced?;
                    fs.check_kept(&shown, written).await
                }
            }
        })
    }

    /// Whether what was written below `written` is there, once it is synced: a power cut of the
    /// broker's machine before that has taken the end of it, and of the sync nothing tells so. The
    /// one who asks first is told; as with a disk that failed, what is written from then on counts.
    async fn check_kept(&self, shown: &Shown, written: Option<Offset>) -> Result<(), Error> {
        let stat = self.stat(shown).await?;
        let Some(written) = written else { return Ok(()) };
        let mut kept = Ok(());
        if stat.gaps > 0 {
            let last = Offset::try_from(written.as_u64() - 1).map_err(client::Error::from)?;
            // Evicted, or trimmed by will, it was kept.
            if let Err(Error::Journals(client::Error::Lost { span, .. })) =
                self.piece(shown, last, 1, Trimmed::Error).await
            {
                kept = Err(Error::NotKept { span });
            }
        }
        shown.unsynced.synced(written);
        kept
    }
}

/// Whether something can be written at `offset` of what ends at `end`.
pub(crate) fn must_be_at(offset: u64, end: u64) -> Result<(), Error> {
    match offset.cmp(&end) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(Error::Unchangeable),
        Ordering::Greater => Err(Error::BeyondHead { offset }),
    }
}

/// What a failed append means for a write: below the head bytes never change, beyond it there is
/// nothing to write to.
pub(crate) fn refused_append(error: client::Error, offset: Option<Offset>) -> Error {
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
