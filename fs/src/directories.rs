//! Directories: implied by the names of journals and placeholders, or made to last with the mount.

use crate::handles::{Handle, Kept};
use crate::limits::{IMPLIED_MAX, MADE_DIRECTORIES_MAX};
use crate::nodes::{Role, Subject, View};
use crate::{Attr, DirEntry, Entry, Error, Filesystem, HandleId, Kind, NodeId, Wait, names};
use client::Stat;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What a mount knows of directories.
#[derive(Debug, Default)]
pub(crate) struct Directories(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By `mkdir`.
    made: BTreeSet<String>,
    /// Whether journals' names go on below a name, as it was at `census`.
    implied: BTreeMap<String, bool>,
    census: u64,
}

impl Directories {
    fn is_made(&self, path: &str) -> bool {
        self.table().made.contains(path)
    }

    fn make(&self, path: String) -> Result<(), Error> {
        let mut table = self.table();
        if table.made.len() >= MADE_DIRECTORIES_MAX {
            return Err(Error::TooManyPlaceholders);
        }
        table.made.insert(path);
        Ok(())
    }

    fn remove(&self, path: &str) {
        self.table().made.remove(path);
    }

    fn made_below(&self, prefix: &str) -> Vec<String> {
        let table = self.table();
        let below = table.made.range(prefix.to_owned()..);
        below.take_while(|path| path.starts_with(prefix)).cloned().collect()
    }

    fn implied(&self, path: &str, census: u64) -> Option<bool> {
        let table = self.table();
        (table.census == census).then(|| table.implied.get(path).copied()).flatten()
    }

    fn learn(&self, path: &str, census: u64, is_implied: bool) {
        let mut table = self.table();
        if table.census != census || table.implied.len() >= IMPLIED_MAX {
            table.implied.clear();
            table.census = census;
        }
        table.implied.insert(path.to_owned(), is_implied);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}

impl Filesystem {
    /// Whether the path is known to be a directory, without asking anyone.
    pub(crate) fn is_directory_surely(&self, path: &str) -> bool {
        path.is_empty()
            || self.directories.is_made(path)
            || self.directories.implied(path, self.current_census()) == Some(true)
            || self.placeholders.are_below(&names::below(path))
    }

    /// Whether names of journals go on below the path. That they do not is only believed of what
    /// was said since the last creation (`may_recall`): where the journal itself exists.
    pub(crate) async fn is_directory(&self, path: &str, may_recall: bool) -> Result<bool, Error> {
        let census = self.current_census();
        match self.directories.implied(path, census) {
            Some(true) => return Ok(true),
            Some(false) if may_recall => return Ok(false),
            _ => {}
        }
        let is_implied = !self.journals_below(path).await?.is_empty();
        self.directories.learn(path, census, is_implied);
        Ok(is_implied)
    }

    fn current_census(&self) -> u64 {
        *self.journals.census().borrow()
    }

    pub(crate) async fn journals_below(&self, path: &str) -> Result<Vec<Stat>, Error> {
        let prefix = self.full_below(path);
        let ask = || self.journals.list(&prefix);
        Ok(crate::patience::patiently(self.options.write_timeout, ask).await?)
    }

    pub fn mkdir(self: &Arc<Self>, parent: NodeId, name: &[u8]) -> Wait<Entry> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let (view, path) = fs.new_name(parent, &name)?;
            let taken = fs.is_directory_surely(&path)
                || fs.placeholders.get(&path).is_some()
                || fs.find_shown(&path).await?.is_some()
                || fs.is_directory(&path, false).await?;
            if taken {
                return Err(Error::Exists);
            }
            fs.directories.make(path.clone())?;
            fs.enter(Role::Directory(view, path)).await
        })
    }

    /// Removes a made directory that nothing is in.
    pub fn rmdir(self: &Arc<Self>, parent: NodeId, name: &[u8]) -> Wait<()> {
        let (fs, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let path = fs.name_below(parent, &name)?;
            if !fs.children(View::Plain, &path).await?.is_empty() {
                return Err(Error::NotEmpty);
            }
            if !fs.directories.is_made(&path) {
                let is_file =
                    fs.placeholders.get(&path).is_some() || fs.find_shown(&path).await?.is_some();
                return Err(if is_file { Error::NotDirectory } else { Error::NotFound });
            }
            fs.directories.remove(&path);
            Ok(())
        })
    }

    /// Opens a directory as it is at this moment.
    pub fn opendir(self: &Arc<Self>, node: NodeId) -> Wait<HandleId> {
        let fs = self.clone();
        Box::pin(async move {
            let node = fs.node(node)?;
            let listing = match node.role() {
                Role::Directory(view, path) => fs.children(view, &path).await?,
                Role::Control => fs.control_entries(),
                Role::About(subject, path) => fs.about_entries(subject, &path).await?,
                _ => return Err(Error::NotDirectory),
            };
            let own = fs.attr(&node).await?;
            let dots = [b"." as &[u8], b".."].map(|name| entry(name.to_vec(), own));
            let listing = dots.into_iter().chain(listing).collect();
            Ok(fs.handles.add(Handle::new(node, Kept::Listing(listing))))
        })
    }

    /// The entries of an opened directory from the `skip`th on, `.` and `..` first.
    pub fn readdir(
        &self,
        handle: HandleId,
        skip: usize,
        mut take: impl FnMut(&DirEntry) -> bool,
    ) -> Result<(), Error> {
        let handle = self.handles.get(handle)?;
        let Kept::Listing(listing) = &handle.kept else { return Err(Error::NotDirectory) };
        let _all = listing.iter().skip(skip).all(&mut take);
        Ok(())
    }

    /// What is in a directory, by name.
    async fn children(&self, view: View, path: &str) -> Result<Vec<DirEntry>, Error> {
        let below = names::below(path);
        let mut found = BTreeMap::new();
        let full = self.full_below(path);
        let census = self.current_census();
        let journals = self.journals_below(path).await?;
        for stat in &journals {
            let Some(rest) = stat.journal.as_str().strip_prefix(&full) else { continue };
            self.add_child(&mut found, view, path, rest, stat.life.inode());
        }
        if self.journals.stats(&[]).is_some() {
            let mut journals: Vec<_> = journals.into_iter().map(|stat| stat.journal).collect();
            journals.retain(|journal| names::is_right_in(journal.as_str(), &full));
            self.foresight.listed(journals);
        }
        self.learn_children(path, census, &found);
        if view.is_writable() {
            for (name, inode) in self.placeholders.below(&below) {
                self.add_child(&mut found, view, path, &name[below.len()..], inode);
            }
            for made in self.directories.made_below(&below) {
                self.add_child(&mut found, view, path, &format!("{}/", &made[below.len()..]), 0);
            }
        }
        if !found.is_empty()
            && let Some((outer, _)) = self.find_shown(path).await?
        {
            let attr = Attr::file(&self.options, outer.life().inode(), true);
            found.insert(names::OUTER.as_bytes().to_vec(), entry(Vec::new(), attr));
        }
        Ok(found.into_iter().map(|(name, entry)| DirEntry { name, ..entry }).collect())
    }

    /// What a listing of journals tells of directories, which the look-ups that follow it need not
    /// ask for one by one.
    fn learn_children(&self, path: &str, census: u64, found: &BTreeMap<Vec<u8>, DirEntry>) {
        for (name, entry) in found {
            if let Ok(component) = names::encode(name) {
                let is_implied = entry.kind == Kind::Directory;
                self.directories.learn(&names::join(path, &component), census, is_implied);
            }
        }
    }

    /// Adds the first component of `rest`: a file if that is all, else a directory, which wins.
    fn add_child(
        &self,
        found: &mut BTreeMap<Vec<u8>, DirEntry>,
        view: View,
        path: &str,
        rest: &str,
        inode: u64,
    ) {
        let (component, is_directory) = names::first(rest);
        // What no file name stands for can't be shown, nor what hides behind our own names.
        let hidden = component == names::OUTER || path.is_empty() && component == names::CONTROL;
        let Some(name) = names::decode(component).filter(|_| !hidden) else { return };
        if is_directory {
            let attr = self.view_attr(view, &names::join(path, component));
            found.insert(name, entry(Vec::new(), attr));
        } else {
            let attr = Attr::file(&self.options, inode, true);
            found.entry(name).or_insert_with(|| entry(Vec::new(), attr));
        }
    }

    /// The attributes of a directory of a view.
    pub(crate) fn view_attr(&self, view: View, path: &str) -> Attr {
        match view.name() {
            None => self.directory_attr(path),
            Some(name) => self.control_attr(&names::join(name, path)),
        }
    }

    fn control_entries(&self) -> Vec<DirEntry> {
        let views = View::NAMED
            .into_iter()
            .map(|(name, view)| entry(name.into(), self.view_attr(view, "")));
        let subjects = Subject::NAMED
            .into_iter()
            .map(|(name, subject)| entry(name.into(), self.about_attr(subject, "")));
        let status = entry(names::STATUS.into(), self.status_attr());
        views.chain(subjects).chain([status]).collect()
    }

    /// The name of the tree for a file name in a directory of a view where names can change.
    pub(crate) fn name_below(&self, parent: NodeId, name: &[u8]) -> Result<String, Error> {
        self.place_below(parent, name).map(|(_, name)| name)
    }

    fn place_below(&self, parent: NodeId, name: &[u8]) -> Result<(View, String), Error> {
        match self.node(parent)?.role() {
            Role::Directory(view, path) if view.is_writable() => {
                Ok((view, names::join(&path, &names::encode(name)?)))
            }
            Role::Directory(..) | Role::Control | Role::About(..) => Err(Error::Unchangeable),
            _ => Err(Error::NotDirectory),
        }
    }

    /// As `name_below`, for what is about to be made, with the view that it is made in.
    pub(crate) fn new_name(&self, parent: NodeId, name: &[u8]) -> Result<(View, String), Error> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        let refused = [names::CONTROL, names::OUTER, names::REPOSITORY];
        if refused.iter().any(|refused| name == refused.as_bytes()) {
            return Err(Error::Refused(String::from_utf8_lossy(name).into_owned()));
        }
        self.place_below(parent, name)
    }
}

pub(crate) fn entry(name: Vec<u8>, attr: Attr) -> DirEntry {
    DirEntry { name, inode: attr.inode, kind: attr.kind }
}
