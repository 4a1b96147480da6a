//! Making files: a placeholder, until its first byte makes it a journal.

use crate::handles::{Handle, Kept};
use crate::nodes::{Node, Role};
use crate::{Attr, Caller, Entry, Error, Filesystem, HandleId, NodeId, Wait};
use rustix::fs::OFlags;
use std::sync::Arc;

impl Filesystem {
    /// Opens a file, making it first where it is not there. Its handle is always a direct one.
    pub fn create(
        self: &Arc<Self>,
        parent: NodeId,
        name: &[u8],
        flags: OFlags,
        caller: Caller,
    ) -> Wait<(Entry, HandleId)> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            if let Role::About(subject, directory) = fs.node(parent)?.role() {
                return fs.create_about(subject, &directory, &name, flags).await;
            }
            let entry = fs.make(parent, &name, flags.contains(OFlags::EXCL)).await?;
            let opening = async {
                let node = fs.node(entry.node)?;
                // What was just found not to be there is asked for at its first byte.
                if !matches!(node.role(), Role::Placeholder(..)) {
                    fs.may_open(&node, flags, caller).await?;
                }
                let pen = fs.pen(&node.role(), flags)?;
                fs.arrived(&node, caller);
                Ok(Handle::new(node, Kept::File).with(pen))
            };
            fs.open_entered(entry, opening).await
        })
    }

    /// Has what was looked up for the kernel opened; where that fails the kernel hears of neither.
    pub(crate) async fn open_entered(
        &self,
        entry: Entry,
        opening: impl Future<Output = Result<Handle, Error>>,
    ) -> Result<(Entry, HandleId), Error> {
        match opening.await {
            Ok(handle) => Ok((entry, self.handles.add(handle))),
            Err(error) => {
                self.forget(entry.node, 1);
                Err(error)
            }
        }
    }

    /// Makes a file that is not there.
    pub fn mknod(self: &Arc<Self>, parent: NodeId, name: &[u8]) -> Wait<Entry> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move { fs.make(parent, &name, true).await })
    }

    /// The direct node of a file, which may be there already unless it `must_be_new`.
    async fn make(&self, parent: NodeId, name: &[u8], must_be_new: bool) -> Result<Entry, Error> {
        let (view, path) = self.new_name(parent, name)?;
        if let Some((shown, _)) = self.find_shown(&path).await? {
            return match must_be_new {
                true => Err(Error::Exists),
                false => self.enter(Role::Journal(shown, view.side())).await,
            };
        }
        if must_be_new && self.placeholders.get(&path).is_some() {
            return Err(Error::Exists);
        }
        if self.is_directory_surely(&path) || self.is_directory(&path, false).await? {
            return Err(Error::IsDirectory);
        }
        self.journals.may_create(&self.journal(&path)?)?;
        let placeholder = self.placeholders.create(&path)?;
        let attr = Attr::file(&self.options, placeholder.inode(), true);
        let node = self.nodes.remember(Role::Placeholder(placeholder, view));
        Ok(Entry { node: node.id(), generation: node.generation(), attr })
    }

    pub(crate) fn arrived(&self, node: &Node, caller: Caller) {
        if let Role::Journal(shown, _) = node.role() {
            self.handover.arrived(caller.thread, shown.life());
        }
    }
}
