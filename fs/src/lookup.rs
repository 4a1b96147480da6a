//! Finding what a name in a directory stands for.

use crate::nodes::{Role, Side, View};
use crate::shown::Shown;
use crate::{Attr, Caller, Error, Filesystem, NodeId, Wait, names};
use client::Stat;
use std::sync::Arc;

/// What a look-up finds. The kernel must not remember any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub node: NodeId,
    pub attr: Attr,
}

impl Filesystem {
    /// Looks a name up, and counts one look-up of the node that it finds.
    pub fn lookup(self: &Arc<Self>, parent: NodeId, name: &[u8], caller: Caller) -> Wait<Entry> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let parent = fs.node(parent)?.role();
            let role = match parent {
                Role::Directory(view, path) => fs.resolve(view, &path, &name, caller).await?,
                Role::Control => Self::resolve_control(&name)?,
                _ => return Err(Error::NotDirectory),
            };
            fs.enter(role).await
        })
    }

    /// The entry of a role, counted as a look-up.
    pub(crate) async fn enter(&self, role: Role) -> Result<Entry, Error> {
        let node = self.nodes.remember(role);
        match self.attr(&node).await {
            Ok(attr) => Ok(Entry { node: node.id(), attr }),
            Err(error) => {
                self.nodes.forget(node.id(), 1);
                // The journal went away since it was found.
                Err(if matches!(error, Error::Stale) { Error::NotFound } else { error })
            }
        }
    }

    fn resolve_control(name: &[u8]) -> Result<Role, Error> {
        if name == names::FOLLOW.as_bytes() {
            Ok(Role::Directory(View::Follow, String::new()))
        } else if name == names::STATUS.as_bytes() {
            Ok(Role::Status)
        } else {
            Err(Error::NotFound)
        }
    }

    async fn resolve(
        &self,
        view: View,
        directory: &str,
        name: &[u8],
        caller: Caller,
    ) -> Result<Role, Error> {
        if directory.is_empty() && name == names::CONTROL.as_bytes() {
            return if view == View::Plain { Ok(Role::Control) } else { Err(Error::NotFound) };
        }
        let side = |shown: &Shown| match view {
            View::Plain => self.side(shown, caller),
            View::Follow => Side::Follow,
        };
        if name == names::OUTER.as_bytes() {
            let outer = self.find_shown(directory).await?.ok_or(Error::NotFound)?.0;
            let side = side(&outer);
            return Ok(Role::Journal(outer, side));
        }
        let path = names::join(directory, &names::encode(name)?);
        if self.is_directory_surely(&path) {
            return Ok(Role::Directory(view, path));
        }
        if let Some((shown, _)) = self.find_shown(&path).await? {
            // A journal that others nest in shows as their directory.
            if self.is_directory(&path, true).await? {
                return Ok(Role::Directory(view, path));
            }
            let side = side(&shown);
            return Ok(Role::Journal(shown, side));
        }
        if let Some(placeholder) = self.placeholders.get(&path).filter(|_| view == View::Plain) {
            return Ok(Role::Placeholder(placeholder));
        }
        if self.is_directory(&path, false).await? {
            return Ok(Role::Directory(view, path));
        }
        Err(Error::NotFound)
    }

    /// The journal of a name of the tree. A placeholder of that name has become it.
    pub(crate) async fn find_shown(&self, name: &str) -> Result<Option<(Arc<Shown>, Stat)>, Error> {
        // A name that no journal can have (too short, too long) is no file, but may be a directory.
        let Ok(journal) = self.journal(name) else { return Ok(None) };
        let Some(stat) = self.find(&journal).await? else { return Ok(None) };
        self.placeholders.settle(name);
        Ok(Some((self.gallery.show(&journal, stat.life), stat)))
    }

    /// Which node of a journal a caller gets: the one that the kernel reads itself, where the
    /// mirror is lent and the caller was not just sent away from it. A caller without a thread id
    /// can't be told from others, so it always gets the direct one.
    fn side(&self, shown: &Shown, caller: Caller) -> Side {
        let may_pass = self.has_passthrough()
            && caller.thread != 0
            && !self.handover.is_sent(caller.thread, shown.life());
        let lent = || self.journals.lend(shown.journal());
        if may_pass && lent().is_some_and(|loan| loan.life == shown.life()) {
            Side::Passthrough
        } else {
            Side::Direct
        }
    }
}
