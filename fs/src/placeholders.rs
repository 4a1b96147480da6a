//! Files that were created and have no byte yet: this mount alone knows them.

use crate::Error;
use crate::limits::PLACEHOLDERS_MAX;
use protocol::inode_range;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A file without a byte. Its first committed byte makes it a journal of the name it has then.
#[derive(Debug)]
pub(crate) struct Placeholder {
    inode: u64,
    /// The name after the mount's prefix; `None` once it was unlinked or replaced.
    name: Mutex<Option<String>>,
    /// The kernel filled pages of it: it believes in bytes that wait to be committed.
    filled: AtomicBool,
}

impl Placeholder {
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    pub(crate) fn name(&self) -> Option<String> {
        self.name.lock().expect("no holder panics").clone()
    }

    pub(crate) fn mark_filled(&self) {
        self.filled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Ordering::SeqCst)
    }

    fn rename(&self, name: Option<String>) {
        *self.name.lock().expect("no holder panics") = name;
    }
}

/// The placeholders of a mount by name.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    by_name: BTreeMap<String, Arc<Placeholder>>,
    created: u64,
}

impl Placeholders {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Placeholder>> {
        self.table().by_name.get(name).cloned()
    }

    /// The placeholder of a name, made if there is none.
    pub(crate) fn create(&self, name: &str) -> Result<Arc<Placeholder>, Error> {
        let mut table = self.table();
        if let Some(placeholder) = table.by_name.get(name) {
            return Ok(placeholder.clone());
        }
        if table.by_name.len() >= PLACEHOLDERS_MAX {
            return Err(Error::TooManyPlaceholders);
        }
        let inode = inode_range::PLACEHOLDERS + table.created;
        table.created += 1;
        let placeholder = Arc::new(Placeholder {
            inode,
            name: Mutex::new(Some(name.to_owned())),
            filled: AtomicBool::new(false),
        });
        table.by_name.insert(name.to_owned(), placeholder.clone());
        Ok(placeholder)
    }

    /// A journal has the name now. Open handles become handles of it by the name they keep.
    pub(crate) fn settle(&self, name: &str) {
        self.table().by_name.remove(name);
    }

    /// Unlinks a placeholder: what still has it open has no file any more.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let removed = self.table().by_name.remove(name);
        if let Some(placeholder) = &removed {
            placeholder.rename(None);
        }
        removed.is_some()
    }

    /// Gives a placeholder another name, in place of the placeholder that had it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let mut table = self.table();
        let placeholder = table.by_name.remove(from).ok_or(Error::NotFound)?;
        placeholder.rename(Some(to.to_owned()));
        if let Some(replaced) = table.by_name.insert(to.to_owned(), placeholder)
            && from != to
        {
            replaced.rename(None);
        }
        Ok(())
    }

    /// Whether any name begins with `prefix`.
    pub(crate) fn are_below(&self, prefix: &str) -> bool {
        let table = self.table();
        table
            .by_name
            .range(prefix.to_owned()..)
            .next()
            .is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// Names and inodes of those whose names begin with `prefix`.
    pub(crate) fn below(&self, prefix: &str) -> Vec<(String, u64)> {
        let table = self.table();
        let names = table.by_name.range(prefix.to_owned()..);
        names
            .take_while(|(name, _)| name.starts_with(prefix))
            .map(|(name, placeholder)| (name.clone(), placeholder.inode))
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.table().by_name.len()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_follows_its_name() {
        let placeholders = Placeholders::default();
        let first = placeholders.create("a/x").unwrap();
        let second = placeholders.create("a/y").unwrap();
        assert_ne!(first.inode(), second.inode());
        placeholders.rename("a/x", "a/y").unwrap();
        assert_eq!(first.name().as_deref(), Some("a/y"));
        assert_eq!(second.name(), None, "what was replaced has no name");
        assert_eq!(placeholders.below("a/"), [("a/y".to_owned(), first.inode())]);
        assert!(placeholders.remove("a/y"));
        assert_eq!(first.name(), None);
        assert!(!placeholders.remove("a/y"));
    }
}
