//! A model of two mounts of one broker, for tests: what each operation may answer.
//!
//! It is kept simpler than the thing: a journal is a vector, a mount is a set of names and a table
//! of open files. [`chance`] makes operations; a test runs each on the model and on the real thing
//! and compares. docs/SEMANTICS.md has the rules as sentences.

pub mod chance;
mod op;
pub mod trial;

pub use op::{At, How, Op, Outcome};

use crate::limits::ATOMIC_MAX;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// How many mounts there are, and how many open files of each.
pub const MOUNTS: usize = 2;
pub const SLOTS: usize = 3;

/// What an open file is a handle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A life of a journal.
    Life(usize),
    /// A file without a byte, of one mount.
    Placeholder(usize),
    /// A placeholder that was unlinked.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub struct Handle {
    target: Target,
    pub how: How,
}

#[derive(Debug, Default)]
struct Mount {
    placeholders: BTreeMap<&'static str, usize>,
    made: BTreeSet<&'static str>,
    open: [Option<Handle>; SLOTS],
}

/// Two mounts of one broker. The first may delete journals.
#[derive(Debug, Default)]
pub struct Model {
    journals: BTreeMap<&'static str, usize>,
    /// The bytes of every life there was.
    lives: Vec<Vec<u8>>,
    mounts: [Mount; MOUNTS],
    made: usize,
}

/// Names of temporary files are refused at creation.
fn is_refused(name: &str) -> bool {
    name.ends_with(".tmp")
}

impl Model {
    /// Does it, and says what the answer may be: one of these.
    pub fn apply(&mut self, op: &Op) -> Vec<Outcome> {
        let outcome = match op {
            Op::Read { mount, slot, at, len } => return self.read(*mount, *slot, *at, *len),
            Op::Open { mount, slot, name, how } => self.open(*mount, *slot, name, *how),
            Op::Close { mount, slot } => self.close(*mount, *slot),
            Op::Write { mount, slot, at, content } => self.write(*mount, *slot, *at, content),
            Op::SeekData { mount, slot, at } => self.seek(*mount, *slot, *at, |at, _| at),
            Op::SeekHole { mount, slot, at } => self.seek(*mount, *slot, *at, |_, size| size),
            Op::SetAppend { mount, slot, append } => self.set_append(*mount, *slot, *append),
            Op::Fsync { mount, slot } => {
                self.size_of(self.target(*mount, *slot)).map(|_| Outcome::Done)
            }
            Op::Size { mount, name } => self.size(*mount, name),
            Op::List { mount, directory } => self.list(*mount, directory),
            Op::Truncate { mount, name, size } => self.truncate(*mount, name, *size),
            Op::Rename { mount, from, to } => self.rename(*mount, from, to),
            Op::Unlink { mount, name } => self.unlink(*mount, name),
            Op::Mkdir { mount, name } => self.mkdir(*mount, name),
            Op::Rmdir { mount, name } => self.rmdir(*mount, name),
            Op::Elsewhere { name, content } => {
                let life = self.journal(name);
                self.lives[life].extend(content);
                Ok(Outcome::Done)
            }
            Op::Restart { mount } => {
                self.mounts[*mount] = Mount::default();
                Ok(Outcome::Done)
            }
        };
        vec![outcome.unwrap_or_else(Outcome::Failed)]
    }

    /// The open file in a slot, for who chooses the next operation.
    pub fn handle(&self, mount: usize, slot: usize) -> Option<Handle> {
        self.mounts[mount].open[slot]
    }

    /// The size that a handle's file has now, where it has one.
    pub fn handle_size(&self, mount: usize, slot: usize) -> u64 {
        self.size_of(self.target(mount, slot)).unwrap_or(0)
    }

    pub fn is_journal(&self, name: &str) -> bool {
        self.journals.contains_key(name)
    }

    pub fn exists(&self, mount: usize, name: &str) -> bool {
        self.find(mount, name).is_some()
    }

    fn target(&self, mount: usize, slot: usize) -> Target {
        self.mounts[mount].open[slot].expect("only open files are used").target
    }

    fn find(&self, mount: usize, name: &str) -> Option<Target> {
        let journal = self.journals.get(name).map(|life| Target::Life(*life));
        let placeholder = || self.mounts[mount].placeholders.get(name).copied();
        journal.or_else(|| placeholder().map(Target::Placeholder))
    }

    fn is_directory(&self, mount: usize, path: &str) -> bool {
        let below = format!("{path}/");
        path.is_empty()
            || self.mounts[mount].made.contains(path)
            || self.names(mount).any(|name| name.starts_with(&below))
    }

    fn names(&self, mount: usize) -> impl Iterator<Item = &'static str> {
        let own = &self.mounts[mount];
        self.journals.keys().chain(own.placeholders.keys()).copied()
    }

    fn parent_is_there(&self, mount: usize, name: &str) -> Result<(), Errno> {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        if self.is_directory(mount, parent) { Ok(()) } else { Err(Errno::NOENT) }
    }

    /// The journal of a name. What a mount had without a byte under this name becomes it.
    fn journal(&mut self, name: &'static str) -> usize {
        if let Some(life) = self.journals.get(name) {
            return *life;
        }
        let life = self.lives.len();
        self.lives.push(Vec::new());
        self.journals.insert(name, life);
        for mount in &mut self.mounts {
            let Some(id) = mount.placeholders.remove(name) else { continue };
            for handle in mount.open.iter_mut().flatten() {
                if handle.target == Target::Placeholder(id) {
                    handle.target = Target::Life(life);
                }
            }
        }
        life
    }

    fn is_over(&self, life: usize) -> bool {
        !self.journals.values().any(|living| *living == life)
    }

    fn size_of(&self, target: Target) -> Result<u64, Errno> {
        match target {
            Target::Life(life) if self.is_over(life) => Err(Errno::STALE),
            Target::Life(life) => Ok(self.lives[life].len() as u64),
            Target::Placeholder(_) => Ok(0),
            Target::Nothing => Err(Errno::STALE),
        }
    }

    fn open(
        &mut self,
        mount: usize,
        slot: usize,
        name: &'static str,
        how: How,
    ) -> Result<Outcome, Errno> {
        self.parent_is_there(mount, name)?;
        if self.is_directory(mount, name) {
            let taken = how.create && how.exclusive;
            return Err(if taken { Errno::EXIST } else { Errno::ISDIR });
        }
        let target = match self.find(mount, name) {
            Some(_) if how.create && how.exclusive => return Err(Errno::EXIST),
            Some(target) if how.truncate && self.size_of(target)? > 0 => return Err(Errno::PERM),
            Some(target) => target,
            None if !how.create => return Err(Errno::NOENT),
            None if is_refused(name) => return Err(Errno::PERM),
            None => {
                self.made += 1;
                self.mounts[mount].placeholders.insert(name, self.made);
                Target::Placeholder(self.made)
            }
        };
        self.mounts[mount].open[slot] = Some(Handle { target, how });
        Ok(Outcome::Done)
    }

    fn close(&mut self, mount: usize, slot: usize) -> Result<Outcome, Errno> {
        self.mounts[mount].open[slot] = None;
        Ok(Outcome::Done)
    }

    fn set_append(&mut self, mount: usize, slot: usize, append: bool) -> Result<Outcome, Errno> {
        let handle = self.mounts[mount].open[slot].as_mut().expect("only open files are used");
        handle.how.append = append;
        Ok(Outcome::Done)
    }

    /// A write is one append at the head, or an error. It returns what was appended.
    fn write(
        &mut self,
        mount: usize,
        slot: usize,
        at: At,
        content: &[u8],
    ) -> Result<Outcome, Errno> {
        let target = self.target(mount, slot);
        let size = self.size_of(target)?;
        let append = self.mounts[mount].open[slot].is_some_and(|handle| handle.how.append);
        match at.cmp(&size) {
            _ if append => {}
            std::cmp::Ordering::Less => return Err(Errno::PERM),
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Greater => return Err(Errno::INVAL),
        }
        let life = match target {
            Target::Life(life) => life,
            Target::Placeholder(id) => {
                let named = self.mounts[mount].placeholders.iter().find(|(_, own)| **own == id);
                let name = *named.expect("a placeholder has a name").0;
                self.journal(name)
            }
            Target::Nothing => unreachable!("it has no size"),
        };
        let whole = &content[..content.len().min(ATOMIC_MAX)];
        self.lives[life].extend(whole);
        Ok(Outcome::Number(whole.len() as u64))
    }

    /// A handle that the kernel reads itself goes on with the bytes of a life that is over.
    fn read(&self, mount: usize, slot: usize, at: At, len: usize) -> Vec<Outcome> {
        let target = self.target(mount, slot);
        let bytes = |life: usize| {
            let all = &self.lives[life];
            let begin = all.len().min(usize::try_from(at).unwrap_or(usize::MAX));
            Outcome::Bytes(all[begin..all.len().min(begin + len)].to_vec())
        };
        match (target, self.size_of(target)) {
            (Target::Life(life), Ok(_)) => vec![bytes(life)],
            (Target::Life(life), Err(over)) => vec![Outcome::Failed(over), bytes(life)],
            (_, Ok(_)) => vec![Outcome::Bytes(Vec::new())],
            (_, Err(errno)) => vec![Outcome::Failed(errno)],
        }
    }

    fn seek(
        &self,
        mount: usize,
        slot: usize,
        at: At,
        found: fn(u64, u64) -> u64,
    ) -> Result<Outcome, Errno> {
        let size = self.size_of(self.target(mount, slot))?;
        if at < size { Ok(Outcome::Number(found(at, size))) } else { Err(Errno::NXIO) }
    }

    fn size(&self, mount: usize, name: &str) -> Result<Outcome, Errno> {
        self.parent_is_there(mount, name)?;
        let target = self.find(mount, name).ok_or(Errno::NOENT)?;
        self.size_of(target).map(Outcome::Number)
    }

    fn list(&self, mount: usize, directory: &str) -> Result<Outcome, Errno> {
        if !self.is_directory(mount, directory) {
            return Err(Errno::NOENT);
        }
        let below = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let names = self.names(mount).chain(self.mounts[mount].made.iter().copied());
        let children = names.filter_map(|name| name.strip_prefix(&below));
        let children = children.map(|rest| rest.split('/').next().unwrap_or(rest).to_owned());
        Ok(Outcome::Names(children.collect::<BTreeSet<_>>().into_iter().collect()))
    }

    fn truncate(&self, mount: usize, name: &str, size: u64) -> Result<Outcome, Errno> {
        let Outcome::Number(now) = self.size(mount, name)? else { unreachable!("it has a size") };
        match size.cmp(&now) {
            std::cmp::Ordering::Less => Err(Errno::PERM),
            std::cmp::Ordering::Equal => Ok(Outcome::Done),
            std::cmp::Ordering::Greater => Err(Errno::INVAL),
        }
    }

    /// Only what has no byte yet is renamed, and only over such.
    fn rename(&mut self, mount: usize, from: &str, to: &'static str) -> Result<Outcome, Errno> {
        self.parent_is_there(mount, from)?;
        self.parent_is_there(mount, to)?;
        let moved = self.find(mount, from).ok_or(Errno::NOENT)?;
        let (Target::Placeholder(id), false) = (moved, self.is_journal(to)) else {
            return Err(Errno::PERM);
        };
        if is_refused(to) {
            return Err(Errno::PERM);
        }
        let own = &mut self.mounts[mount];
        own.placeholders.remove(from);
        if let Some(replaced) = own.placeholders.insert(to, id) {
            own.lose(replaced);
        }
        Ok(Outcome::Done)
    }

    fn unlink(&mut self, mount: usize, name: &str) -> Result<Outcome, Errno> {
        self.parent_is_there(mount, name)?;
        match self.find(mount, name).ok_or(Errno::NOENT)? {
            Target::Placeholder(id) => {
                self.mounts[mount].placeholders.remove(name);
                self.mounts[mount].lose(id);
            }
            _ if mount == 0 => drop(self.journals.remove(name)),
            _ => return Err(Errno::PERM),
        }
        Ok(Outcome::Done)
    }

    fn mkdir(&mut self, mount: usize, name: &'static str) -> Result<Outcome, Errno> {
        if self.is_directory(mount, name) {
            return Err(Errno::EXIST);
        }
        self.mounts[mount].made.insert(name);
        Ok(Outcome::Done)
    }

    fn rmdir(&mut self, mount: usize, name: &str) -> Result<Outcome, Errno> {
        let Outcome::Names(within) = self.list(mount, name)? else { unreachable!("it lists") };
        if !within.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.mounts[mount].made.remove(name);
        Ok(Outcome::Done)
    }
}

impl Mount {
    /// What has this placeholder open has no file any more.
    fn lose(&mut self, id: usize) {
        for handle in self.open.iter_mut().flatten() {
            if handle.target == Target::Placeholder(id) {
                handle.target = Target::Nothing;
            }
        }
    }
}
