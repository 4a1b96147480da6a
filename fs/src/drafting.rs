//! Writing in line mode and in the whole view: what waits, and what is committed at once.

use crate::nodes::{Node, Role};
use crate::patience::{in_turn, left};
use crate::staging::{self, Held, Manner, Pen};
use crate::write::must_be_at;
use crate::{Error, Filesystem, HandleId};
use bytes::Bytes;
use client::Durability;
use protocol::{Journal, Offset};
use std::sync::Arc;
use tokio::sync::Mutex;

/// One write of such a handle.
pub(crate) struct Stroke {
    pub node: Arc<Node>,
    pub content: Bytes,
    /// Where the kernel believes that it goes; `None` with `O_APPEND`.
    pub offset: Option<Offset>,
    pub durability: Durability,
}

impl Stroke {
    fn is_disk(&self) -> bool {
        self.durability == Durability::Disk
    }

    /// Where the next write comes, as the kernel counts.
    fn end(&self) -> Option<u64> {
        self.offset.map(|offset| offset.as_u64() + self.content.len() as u64)
    }
}

impl Filesystem {
    pub(crate) async fn write_with(
        &self,
        pen: Arc<Mutex<Pen>>,
        stroke: Stroke,
    ) -> Result<usize, Error> {
        let mut pen = in_turn(self.options.write_timeout, pen.lock_owned()).await?;
        self.settle_draft(&mut pen, &stroke.node).await?;
        match pen.manner {
            Manner::Lines => self.write_lines(pen, stroke).await,
            Manner::Whole => self.write_whole(pen, stroke).await,
        }
    }

    /// Commits up to the last newline, with what waits before it, and has the rest wait. Where the
    /// rest finds no room the answer is short.
    async fn write_lines(&self, mut pen: Held, stroke: Stroke) -> Result<usize, Error> {
        let (len, end, is_disk) = (stroke.content.len(), stroke.end(), stroke.is_disk());
        let lines = stroke.content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = stroke.content.slice(lines..);
        let waits = pen.waiting().is_some();
        if let Some(offset) = stroke.offset.filter(|_| waits) {
            pen.goes_on_at(offset.as_u64())?;
        }
        let (node, journal) = (stroke.node.clone(), self.journal_of(&stroke.node)?);
        if lines > 0 && waits {
            let content = stroke.content.slice(..lines);
            let patience = left(self.options.write_timeout);
            pen = staging::push(pen, journal.clone(), content, is_disk, patience).await?;
            self.commit(&mut pen, &node).await?;
        } else if lines > 0 {
            let shown = self.writable(&node, stroke.offset).await?;
            let content = stroke.content.slice(..lines);
            self.append(&shown, content, stroke.offset, stroke.durability).await?;
        } else if let Some(offset) = stroke.offset.filter(|_| !waits) {
            self.must_be_head(&node, offset).await?;
        }
        pen.position = end.map(|end| end - rest.len() as u64);
        if rest.is_empty() {
            return Ok(len);
        }
        match self.wait_with(pen, journal, rest, is_disk, end).await {
            Err(_told_by_the_next) if lines > 0 => Ok(lines),
            waits => waits.map(|()| len),
        }
    }

    /// Has the content wait for the close, or for fsync.
    async fn write_whole(&self, mut pen: Held, stroke: Stroke) -> Result<usize, Error> {
        if let Some(error) = &pen.spoiled {
            return Err(error.clone());
        }
        let (len, end, is_disk) = (stroke.content.len(), stroke.end(), stroke.is_disk());
        if let Some(offset) = stroke.offset.filter(|at| pen.position != Some(at.as_u64())) {
            match pen.waiting() {
                Some(_) => pen.goes_on_at(offset.as_u64())?,
                None => self.must_be_head(&stroke.node, offset).await?,
            }
        }
        let journal = self.journal_of(&stroke.node)?;
        self.wait_with(pen, journal, stroke.content, is_disk, end).await.map(|()| len)
    }

    async fn wait_with(
        &self,
        pen: Held,
        journal: Journal,
        content: Bytes,
        is_disk: bool,
        end: Option<u64>,
    ) -> Result<(), Error> {
        let mut pen =
            staging::push(pen, journal, content, is_disk, left(self.options.write_timeout)).await?;
        pen.waiting().into_iter().for_each(|draft| draft.keep());
        pen.position = end;
        Ok(())
    }

    /// Where what waits of a handle ends, for who wrote it. `None` where nothing waits.
    pub(crate) async fn end_of_draft(&self, handle: HandleId) -> Result<Option<u64>, Error> {
        let handle = self.handles.get(handle)?;
        let Some(pen) = &handle.pen else { return Ok(None) };
        let lock = pen.clone().lock_owned();
        let mut pen = in_turn(self.options.write_timeout, lock).await?;
        let position = pen.position;
        let Some(len) = pen.waiting().map(|draft| draft.len()) else { return Ok(None) };
        let end = match (position, self.role(&handle.node).await?) {
            (Some(position), _) => position,
            (None, Role::Journal(shown, _)) => self.stat(&shown).await?.head.as_u64() + len,
            (None, _) => len,
        };
        Ok(Some(end))
    }

    /// A write without `O_APPEND` is one at the head.
    async fn must_be_head(&self, node: &Node, offset: Offset) -> Result<(), Error> {
        let head = match self.role(node).await? {
            Role::Journal(shown, _) => self.stat(&shown).await?.head,
            _ => Offset::ZERO,
        };
        must_be_at(offset.as_u64(), head.as_u64())
    }

    /// The journal that a node is, or becomes.
    pub(crate) fn journal_of(&self, node: &Node) -> Result<Journal, Error> {
        match node.role() {
            Role::Journal(shown, _) => Ok(shown.journal().clone()),
            Role::Placeholder(placeholder, _) => {
                self.journal(&placeholder.name().ok_or(Error::Stale)?)
            }
            Role::Directory(..)
            | Role::Control
            | Role::Status
            | Role::About(..)
            | Role::Fragment(..)
            | Role::Spec(_) => Err(Error::IsDirectory),
        }
    }
}
