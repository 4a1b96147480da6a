//! Opening files, and the hand-over from the passthrough node of a journal to its direct one.

use crate::handles::{Handle, Kept, Lending};
use crate::nodes::{Node, Role, Side, View};
use crate::shown::Shown;
use crate::staging::{Manner, Pen};
use crate::{Caller, Error, Filesystem, HandleId, NodeId, Opened, Wait, Way};
use client::Loan;
use rustix::fs::OFlags;
use std::sync::Arc;

impl Filesystem {
    /// Opens a file. `Stale` from a passthrough node asks the kernel to look the name up again: it
    /// finds the direct node then, which never answers so while its journal lives.
    pub fn open(self: &Arc<Self>, node: NodeId, flags: OFlags, caller: Caller) -> Wait<Opened> {
        let fs = self.clone();
        Box::pin(async move {
            let node = fs.node(node)?;
            match fs.may_open(&node, flags, caller).await? {
                Role::Journal(shown, Side::Passthrough) => {
                    fs.open_passthrough(&node, &shown, flags, caller)
                }
                Role::Status => {
                    let text = Kept::Text(fs.status_text().into());
                    Ok(fs.opened(Handle::new(node, text), Way::Direct))
                }
                Role::Spec(path) => {
                    Ok(fs.opened(fs.open_spec(node, &path, flags).await?, Way::Direct))
                }
                Role::Fragment(..) => Ok(fs.opened(Handle::new(node, Kept::File), Way::Direct)),
                role => {
                    let pen = fs.pen(&role, flags)?;
                    fs.arrived(&node, caller);
                    Ok(fs.opened(Handle::new(node, Kept::File).with(pen), Way::Direct))
                }
            }
        })
    }

    /// The mirror could not be opened for passthrough after all: the handle is void, and the caller
    /// is sent to the direct node. The open is to be answered `ESTALE`.
    pub fn refuse_passthrough(&self, handle: HandleId, caller: Caller) {
        if let Ok(handle) = self.handles.get(handle)
            && let Role::Journal(shown, _) = handle.node.role()
        {
            self.handover.send(caller.thread, shown.life());
        }
        self.handles.remove(handle);
    }

    /// What the node is, if it may be opened so. A file that is not empty is never truncated.
    pub(crate) async fn may_open(
        &self,
        node: &Node,
        flags: OFlags,
        caller: Caller,
    ) -> Result<Role, Error> {
        let role = self.role(node).await?;
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let truncates = flags.contains(OFlags::TRUNC);
        match &role {
            Role::Directory(..) | Role::Control | Role::About(..) => {
                return Err(Error::IsDirectory);
            }
            Role::Status | Role::Fragment(..) | Role::Journal(_, Side::Follow)
                if writes || truncates =>
            {
                return Err(Error::ReadOnly);
            }
            Role::Status | Role::Fragment(..) => {}
            Role::Spec(_) if self.options.read_only && (writes || truncates) => {
                return Err(Error::ReadOnly);
            }
            Role::Spec(_) => {}
            Role::Placeholder(..) if self.options.read_only && writes => {
                return Err(Error::ReadOnly);
            }
            Role::Placeholder(..) => {}
            Role::Journal(shown, _) => {
                self.foresight.opened(caller.thread, shown.journal());
                let stat = self.stat(shown).await?;
                if (writes || truncates) && (self.options.read_only || !stat.may_write) {
                    return Err(Error::ReadOnly);
                }
                let reads = !flags.contains(OFlags::WRONLY);
                if reads && !stat.may_read {
                    return Err(Error::NotReadable);
                }
                if truncates && stat.head.get() > 0 {
                    return Err(Error::Unchangeable);
                }
            }
        }
        Ok(role)
    }

    fn open_passthrough(
        &self,
        node: &Arc<Node>,
        shown: &Shown,
        flags: OFlags,
        caller: Caller,
    ) -> Result<Opened, Error> {
        // A shared writable mapping of such a handle would change committed bytes in the mirror
        // without a word to us.
        let read_write = flags.contains(OFlags::RDWR);
        let loan = (!read_write && self.has_passthrough())
            .then(|| self.journals.lend(shown.journal()))
            .flatten()
            .filter(|loan| loan.life == shown.life())
            .and_then(|loan| Some(Loan { file: shown.lend(&loan.file)?, ..loan }));
        let Some(loan) = loan else {
            self.handover.send(caller.thread, shown.life());
            return Err(Error::Stale);
        };
        let pen = self.pen(&node.role(), flags)?;
        let is_written = flags.contains(OFlags::WRONLY);
        let way = Way::Passthrough { node: node.id(), file: loan.file.clone(), direct: is_written };
        let generation = shown.generation.current();
        let kept = Kept::Loan(Lending { _loan: loan, generation, is_written });
        Ok(self.opened(Handle::new(node.clone(), kept).with(pen), way))
    }

    /// What has the writes of a handle wait for the rest of their lines, or for its close; `None`
    /// where each is an append of its own.
    pub(crate) fn pen(&self, role: &Role, flags: OFlags) -> Result<Option<Pen>, Error> {
        let manner = match role {
            _ if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) => return Ok(None),
            Role::Journal(_, Side::Whole) | Role::Placeholder(_, View::Whole) => Manner::Whole,
            Role::Journal(_, Side::Lines) | Role::Placeholder(_, View::Lines) => Manner::Lines,
            _ if self.options.lines => Manner::Lines,
            _ => return Ok(None),
        };
        let staging = self.staging.as_ref().ok_or(Error::NoStaging)?;
        Ok(Some(Pen::new(staging, manner, self.options.writer)))
    }

    fn opened(&self, handle: Handle, way: Way) -> Opened {
        Opened { handle: self.handles.add(handle), way }
    }
}
