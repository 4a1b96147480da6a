//! Reading: to the head, or in the follow view beyond it.

use crate::handles::Kept;
use crate::nodes::{Role, Side};
use crate::patience::{patiently, within};
use crate::shown::Shown;
use crate::{Error, Filesystem, HandleId, Trimmed, Wait};
use bytes::{Bytes, BytesMut};
use client::Read;
use protocol::Offset;
use std::sync::Arc;

/// A read through a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAt {
    pub handle: HandleId,
    pub offset: u64,
    pub size: usize,
    /// `O_NONBLOCK` at this moment.
    pub nonblocking: bool,
    /// The kernel fills pages of its cache with it (it has no lock owner): it never waits.
    pub fills: bool,
}

impl Filesystem {
    /// The bytes at an offset: all that were asked for, unless the head or an error comes first. An
    /// error is told by the read that begins at it. None at the head, where the follow view waits.
    pub fn read(self: &Arc<Self>, read: ReadAt) -> Wait<Bytes> {
        let fs = self.clone();
        Box::pin(async move {
            let handle = fs.handles.get(read.handle)?;
            if let Kept::Text(text) = &handle.kept {
                return Ok(cut(text, read.offset, read.size));
            }
            if let Kept::Spec(text) = &handle.kept {
                return Ok(text.lock().await.read(read.offset, read.size));
            }
            // Before it is asked whether it is a journal by now: whoever makes it one knows then.
            if let (true, Role::Placeholder(placeholder, _)) = (read.fills, handle.node.role()) {
                placeholder.mark_filled();
            }
            let (shown, side) = match fs.role(&handle.node).await? {
                Role::Journal(shown, side) => (shown, side),
                Role::Fragment(shown, fragment) => {
                    return fs.read_fragment(&shown, &fragment, read.offset, read.size).await;
                }
                Role::Placeholder(..) => return Ok(Bytes::new()),
                _ => return Err(Error::IsDirectory),
            };
            if read.fills {
                shown.mark_filled();
            }
            let offset = Offset::try_from(read.offset).map_err(client::Error::from)?;
            let bytes = match side {
                Side::Follow => fs.follow(&shown, offset, read).await?,
                Side::Passthrough | Side::Direct | Side::Lines | Side::Whole => {
                    fs.gather(&shown, offset, read.size, fs.options.trimmed).await?
                }
            };
            handle.read_to(read.offset + bytes.len() as u64);
            Ok(bytes)
        })
    }

    /// Reads until `size` bytes are together or the head is reached: a short read in the middle of
    /// a file makes programs believe that it ended.
    pub(crate) async fn gather(
        &self,
        shown: &Shown,
        offset: Offset,
        size: usize,
        trimmed: Trimmed,
    ) -> Result<Bytes, Error> {
        let first = self.piece(shown, offset, size, trimmed).await?;
        if first.is_empty() || first.len() >= size {
            return Ok(first);
        }
        let mut bytes = BytesMut::with_capacity(size);
        bytes.extend_from_slice(&first);
        while bytes.len() < size {
            let next = offset.plus(bytes.len() as u64);
            match self.piece(shown, next, size - bytes.len(), trimmed).await {
                Ok(piece) if piece.is_empty() => break,
                Ok(piece) => bytes.extend_from_slice(&piece),
                // The next read begins here, and is told.
                Err(_) => break,
            }
        }
        Ok(bytes.freeze())
    }

    /// Some bytes at an offset, or none at the head.
    pub(crate) async fn piece(
        &self,
        shown: &Shown,
        offset: Offset,
        max: usize,
        trimmed: Trimmed,
    ) -> Result<Bytes, Error> {
        let read = Read { journal: shown.journal().clone(), life: Some(shown.life()), offset, max };
        let ask = || self.journals.read(read.clone());
        match patiently(self.options.write_timeout, ask).await {
            Ok(bytes) => Ok(bytes),
            Err(client::Error::Trimmed { span, .. })
                if trimmed == Trimmed::Sparse && span.contains(offset) =>
            {
                let hole = span.end().since(offset).min(max as u64);
                Ok(Bytes::from(vec![0; usize::try_from(hole).expect("at most max")]))
            }
            // What a handle is open on is gone.
            Err(client::Error::NotFound(_)) => Err(Error::Stale),
            Err(error) => Err(error.into()),
        }
    }

    /// A read of the follow view: at the head it waits for the next append, unless it may not.
    async fn follow(&self, shown: &Shown, offset: Offset, read: ReadAt) -> Result<Bytes, Error> {
        loop {
            let asking = self.gather(shown, offset, read.size, self.options.trimmed);
            let bytes = match within(self.options.write_timeout, asking).await {
                // Whoever would wait for bytes waits for the broker too: growth is asked for until
                // it is there.
                Err(error) if error.passes() && !read.fills => Bytes::new(),
                bytes => bytes?,
            };
            if !bytes.is_empty() || read.fills || read.size == 0 {
                return Ok(bytes);
            }
            if read.nonblocking {
                return Err(Error::WouldBlock);
            }
            self.grown(shown, offset).await?;
        }
    }
}

/// The part of a text that a read asks for.
pub(crate) fn cut(text: &Bytes, offset: u64, size: usize) -> Bytes {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
    let end = begin.saturating_add(size).min(text.len());
    text.slice(begin..end)
}
