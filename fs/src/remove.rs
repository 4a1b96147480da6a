//! Unlinking, renaming and linking: for files without a byte, and little else.

use crate::nodes::Role;
use crate::patience::patiently;
use crate::{Error, Filesystem, NodeId, Wait, names};
use protocol::Journal;
use std::sync::Arc;

impl Filesystem {
    /// Unlinks a placeholder. A journal is deleted, with the objects of its fragments, only where
    /// the mount allows it.
    pub fn unlink(self: &Arc<Self>, parent: NodeId, name: &[u8]) -> Wait<()> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            if fs.options.read_only {
                return Err(Error::ReadOnly);
            }
            let path = fs.file_below(parent, &name)?;
            let Some((shown, _)) = fs.find_shown(&path).await? else {
                let removed = fs.placeholders.remove(&path);
                return if removed { Ok(()) } else { Err(Error::NotFound) };
            };
            if !fs.options.allow_delete {
                return Err(Error::Unchangeable);
            }
            let ask = || fs.journals.purge(shown.journal());
            patiently(fs.options.write_timeout, ask).await?;
            fs.foresight.disturb(shown.journal());
            Ok(())
        })
    }

    /// As `name_below`, where `.journal` is a file too.
    fn file_below(&self, parent: NodeId, name: &[u8]) -> Result<String, Error> {
        match self.node(parent)?.role() {
            Role::Directory(view, path)
                if view.is_writable() && name == names::OUTER.as_bytes() =>
            {
                Ok(path)
            }
            _ => self.name_below(parent, name),
        }
    }

    /// Renames a placeholder to a name that no journal has.
    pub fn rename(self: &Arc<Self>, from: (NodeId, &[u8]), to: (NodeId, &[u8])) -> Wait<()> {
        let fs = self.clone();
        let (from, to) = ((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        Box::pin(async move {
            let (_, new) = fs.new_name(to.0, &to.1)?;
            let old = fs.file_below(from.0, &from.1)?;
            if fs.find_shown(&old).await?.is_some() || fs.find_shown(&new).await?.is_some() {
                return Err(Error::Unchangeable);
            }
            if fs.placeholders.get(&old).is_none() {
                // A directory keeps its name as its journals do.
                let is_directory =
                    fs.is_directory_surely(&old) || fs.is_directory(&old, false).await?;
                return Err(if is_directory { Error::Unchangeable } else { Error::NotFound });
            }
            let journal = fs.journal(&new)?;
            fs.journals.may_create(&journal)?;
            fs.placeholders.rename(&old, &new)?;
            fs.rename_drafts(&new, &journal).await;
            Ok(())
        })
    }

    /// What waits for the placeholder of a name follows it, as its header says after a crash.
    async fn rename_drafts(&self, name: &str, journal: &Journal) {
        for handle in self.handles.all() {
            let Role::Placeholder(placeholder, _) = handle.node.role() else { continue };
            if let Some(pen) = &handle.pen
                && placeholder.name().as_deref() == Some(name)
            {
                pen.lock().await.waiting().into_iter().for_each(|draft| draft.rename(journal));
            }
        }
    }
}
