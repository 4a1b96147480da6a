//! Reading and setting attributes, and seeking data.

use crate::nodes::{Node, Role, Side};
use crate::shown::Shown;
use crate::write::must_be_at;
use crate::{Attr, Caller, Error, Filesystem, HandleId, NodeId, Wait};
use client::Stat;
use protocol::Offset;
use std::sync::Arc;

/// What `lseek(2)` seeks; the kernel answers the other kinds itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    Data,
    Hole,
}

impl Filesystem {
    pub fn getattr(self: &Arc<Self>, node: NodeId, caller: Caller) -> Wait<Attr> {
        let fs = self.clone();
        Box::pin(async move {
            let node = fs.node(node)?;
            if let Role::Journal(shown, side) = node.role()
                && let Some(stat) = fs.foresight.recall(caller.thread, shown.journal())
                && fs.may_tell(&shown, &stat)
            {
                return Ok(fs.journal_attr(&shown, side, &stat).await);
            }
            fs.attr(&node).await
        })
    }

    /// Whether what was asked for some moments ago is fit to be told now: nobody here may have seen
    /// the journal longer. A size never goes back.
    pub(crate) fn may_tell(&self, shown: &Shown, foreseen: &Stat) -> bool {
        foreseen.life == shown.life() && !shown.is_open() && foreseen.head >= shown.head_shown()
    }

    /// Sets the size, where that changes nothing; owner, mode and times are fixed, and setting them
    /// succeeds so that `cp -p` and `tar x` do.
    pub fn setattr(
        self: &Arc<Self>,
        node: NodeId,
        handle: Option<HandleId>,
        size: Option<u64>,
    ) -> Wait<Attr> {
        let fs = self.clone();
        Box::pin(async move {
            let node = fs.node(node)?;
            if let Some(size) = size {
                fs.may_resize(&node, handle, size).await?;
            }
            fs.attr(&node).await
        })
    }

    async fn may_resize(
        &self,
        node: &Node,
        handle: Option<HandleId>,
        size: u64,
    ) -> Result<(), Error> {
        if let Some(handle) = handle
            && let Some(end) = self.end_of_draft(handle).await?
        {
            return must_be_at(size, end);
        }
        let head = match self.role(node).await? {
            Role::Directory(..) | Role::Control | Role::About(..) => {
                return Err(Error::IsDirectory);
            }
            Role::Status | Role::Fragment(..) | Role::Journal(_, Side::Follow) => {
                return Err(Error::ReadOnly);
            }
            Role::Spec(path) => return self.resize_spec(node, &path, size).await,
            Role::Placeholder(..) => 0,
            Role::Journal(shown, _) => self.stat(&shown).await?.head.as_u64(),
        };
        must_be_at(size, head)
    }

    /// The attributes of a node, with a size that is fit to be told.
    pub(crate) async fn attr(&self, node: &Node) -> Result<Attr, Error> {
        Ok(match self.role(node).await? {
            Role::Directory(view, path) => self.view_attr(view, &path),
            Role::Control => self.control_attr(""),
            Role::Status => self.status_attr(),
            Role::About(subject, path) => self.about_attr(subject, &path),
            Role::Fragment(_, fragment) => self.fragment_attr(&fragment),
            Role::Spec(path) => self.attr_of_spec(&path).await?,
            Role::Placeholder(placeholder, _) => {
                Attr::file(&self.options, placeholder.inode(), true)
            }
            Role::Journal(shown, side) => {
                let stat = self.stat(&shown).await?;
                self.journal_attr(&shown, side, &stat).await
            }
        })
    }

    pub(crate) async fn journal_attr(&self, shown: &Shown, side: Side, stat: &Stat) -> Attr {
        self.publish(shown, stat.head).await;
        shown.show_head(stat.head);
        let head = stat.head.as_u64();
        let size = match side {
            // Its reads end with the file; a larger size would make tar pad with NULs.
            Side::Passthrough => shown.lent_size().map_or(head, |lent| lent.min(head)),
            Side::Direct | Side::Follow | Side::Lines | Side::Whole => head,
        };
        let may_write = stat.may_write && side != Side::Follow;
        let attr = Attr::file(&self.options, stat.life.inode(), may_write);
        Attr { size, modified: stat.modified, ..attr }
    }

    /// The next offset at or after `offset` with data, or without. Trimmed ranges are the only
    /// holes: a remote range is data, and a lost one is an error to read and no hole.
    pub fn seek(self: &Arc<Self>, node: NodeId, offset: i64, seek: Seek) -> Wait<u64> {
        let fs = self.clone();
        Box::pin(async move {
            let offset = Offset::new(offset).map_err(|_negative| Error::NoData)?.as_u64();
            let (trimmed, head) = match fs.role(&*fs.node(node)?).await? {
                Role::Journal(shown, _) => {
                    let stat = fs.stat(&shown).await?;
                    (stat.trimmed.as_u64(), stat.head.as_u64())
                }
                _ => (0, fs.attr(&*fs.node(node)?).await?.size),
            };
            if offset >= head {
                return Err(Error::NoData);
            }
            Ok(match seek {
                Seek::Data => offset.max(trimmed),
                Seek::Hole if offset < trimmed => offset,
                Seek::Hole => head,
            })
        })
    }
}
