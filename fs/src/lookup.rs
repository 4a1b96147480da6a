//! Finding what a name in a directory stands for.

use crate::foresight::Ahead;
use crate::nodes::{Role, Side, Subject, View};
use crate::patience::in_time;
use crate::shown::Shown;
use crate::{Attr, Caller, Error, Filesystem, NodeId, Wait, names};
use client::Stat;
use std::sync::Arc;

/// What a look-up finds. The kernel must not remember any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub node: NodeId,
    /// A node of the kernel's that has another one is of no use any more.
    pub generation: u64,
    pub attr: Attr,
}

impl Filesystem {
    /// Looks a name up, and counts one look-up of the node that it finds.
    pub fn lookup(self: &Arc<Self>, parent: NodeId, name: &[u8], caller: Caller) -> Wait<Entry> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let parent = fs.node(parent)?.role();
            let role = match parent {
                Role::Directory(view, path) => {
                    let (role, stat) = fs.resolve(view, &path, &name, caller).await?;
                    return fs.enter_with(role, stat).await;
                }
                Role::Control => Self::resolve_control(&name)?,
                Role::About(subject, path) => fs.resolve_about(subject, &path, &name).await?,
                _ => return Err(Error::NotDirectory),
            };
            fs.enter(role).await
        })
    }

    /// The entry of a role, counted as a look-up.
    pub(crate) async fn enter(&self, role: Role) -> Result<Entry, Error> {
        self.enter_with(role, None).await
    }

    /// As `enter`, of a journal that was asked for by this very look-up: to ask again would make it
    /// cost two requests.
    async fn enter_with(&self, role: Role, stat: Option<Stat>) -> Result<Entry, Error> {
        let node = self.nodes.remember(role);
        let attr = match (node.role(), stat) {
            (Role::Journal(shown, side), Some(stat)) => {
                Ok(self.journal_attr(&shown, side, &stat).await)
            }
            _ => self.attr(&node).await,
        };
        match attr {
            Ok(attr) => Ok(Entry { node: node.id(), generation: node.generation(), attr }),
            Err(error) => {
                self.nodes.forget(node.id(), 1);
                // The journal went away since it was found.
                Err(if matches!(error, Error::Stale) { Error::NotFound } else { error })
            }
        }
    }

    fn resolve_control(name: &[u8]) -> Result<Role, Error> {
        if name == names::STATUS.as_bytes() {
            return Ok(Role::Status);
        }
        let view = View::NAMED.into_iter().find(|(known, _)| known.as_bytes() == name);
        if let Some((_, view)) = view {
            return Ok(Role::Directory(view, String::new()));
        }
        let subject = Subject::NAMED.into_iter().find(|(known, _)| known.as_bytes() == name);
        let (_, subject) = subject.ok_or(Error::NotFound)?;
        Ok(Role::About(subject, String::new()))
    }

    async fn resolve(
        &self,
        view: View,
        directory: &str,
        name: &[u8],
        caller: Caller,
    ) -> Result<(Role, Option<Stat>), Error> {
        if directory.is_empty() && name == names::CONTROL.as_bytes() {
            return match view {
                View::Plain => Ok((Role::Control, None)),
                View::Follow | View::Lines | View::Whole => Err(Error::NotFound),
            };
        }
        let side = |shown: &Shown| match view {
            View::Plain => self.side(shown, caller),
            View::Follow | View::Lines | View::Whole => view.side(),
        };
        if name == names::OUTER.as_bytes() {
            let (outer, stat) = self.find_shown(directory).await?.ok_or(Error::NotFound)?;
            let side = side(&outer);
            return Ok((Role::Journal(outer, side), Some(stat)));
        }
        let path = names::join(directory, &names::encode(name)?);
        if self.is_directory_surely(&path) {
            return Ok((Role::Directory(view, path), None));
        }
        if let Some((shown, stat)) = self.find_on_a_run(&path, caller).await? {
            // A journal that others nest in shows as their directory.
            if self.is_directory(&path, true).await? {
                return Ok((Role::Directory(view, path), None));
            }
            let side = side(&shown);
            return Ok((Role::Journal(shown, side), Some(stat)));
        }
        if let Some(placeholder) = self.placeholders.get(&path).filter(|_| view.is_writable()) {
            return Ok((Role::Placeholder(placeholder, view), None));
        }
        if self.is_directory(&path, false).await? {
            return Ok((Role::Directory(view, path), None));
        }
        Err(Error::NotFound)
    }

    /// The journal of a name of the tree. A placeholder of that name has become it.
    pub(crate) async fn find_shown(&self, name: &str) -> Result<Option<(Arc<Shown>, Stat)>, Error> {
        // A name that no journal can have (too short, too long) is no file, but may be a directory.
        let Ok(journal) = self.journal(name) else { return Ok(None) };
        Ok(self.find(&journal).await?.map(|stat| self.show(name, stat)))
    }

    /// As `find_shown`, for a look-up. Where the caller looks up one journal of a directory after
    /// another, its next ones are asked for with this one.
    async fn find_on_a_run(
        &self,
        name: &str,
        caller: Caller,
    ) -> Result<Option<(Arc<Shown>, Stat)>, Error> {
        let Ok(journal) = self.journal(name) else { return Ok(None) };
        let found = match self.foresight.look_up(caller.thread, &journal) {
            Ahead::Nothing => None,
            Ahead::Foreseen(stat) => {
                let found = self.show(name, *stat);
                self.may_tell(&found.0, &found.1).then_some(found)
            }
            Ahead::Ask(journals) => {
                // Whatever goes wrong, asking for one alone says what.
                let stats = match self.journals.stats(&journals) {
                    Some(asking) => in_time(self.options.write_timeout, asking).await,
                    None => None,
                };
                let stats = stats.and_then(Result::ok).unwrap_or_default();
                self.foresight.learn(caller.thread, &stats);
                let own = stats.into_iter().find(|stat| stat.journal == journal);
                own.map(|stat| self.show(name, stat))
            }
        };
        match found {
            Some(_) => Ok(found),
            None => self.find_shown(name).await,
        }
    }

    /// The journal that a name of the tree was found to be: a placeholder of that name has become
    /// it.
    fn show(&self, name: &str, stat: Stat) -> (Arc<Shown>, Stat) {
        self.placeholders.settle(name);
        (self.gallery.show(&stat.journal, stat.life), stat)
    }

    /// Which node of a journal a caller gets: the one that the kernel reads itself, where the
    /// mirror is lent and the caller was not just sent away from it. A caller without a thread id
    /// can't be told from others, so it always gets the direct one.
    fn side(&self, shown: &Shown, caller: Caller) -> Side {
        if let Some(side) = self.steered.side(caller.thread, shown.life()) {
            return side;
        }
        let may_pass = self.has_passthrough()
            && caller.thread != 0
            && !self.handover.is_sent(caller.thread, shown.life());
        if may_pass && self.is_being_revoked(shown) {
            return Side::Passthrough;
        }
        if may_pass && self.journals.may_lend(shown.journal(), shown.life()) {
            Side::Passthrough
        } else {
            Side::Direct
        }
    }
}
