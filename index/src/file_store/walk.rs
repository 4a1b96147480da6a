//! Listing a file store.

use super::{Dir, fault, is_unfinished, object};
use object_store::path::Path as Key;
use object_store::{Extensions, ListResult, ObjectMeta, Result};
use std::io;

/// All objects below `prefix`, at any depth, whose keys come behind `offset`. A prefix without a
/// directory has none. Directories that can have no such key are not looked into.
pub(super) fn below(dir: &Dir, prefix: &Key, offset: Option<&Key>) -> Result<Vec<ObjectMeta>> {
    let is_behind = |key: &Key| offset.is_none_or(|offset| key > offset);
    let mut objects = Vec::new();
    let mut dirs = vec![prefix.clone()];
    while let Some(next) = dirs.pop() {
        let found = within(dir, &next)?;
        objects.extend(found.objects.into_iter().filter(|object| is_behind(&object.location)));
        dirs.extend(found.common_prefixes.into_iter().filter(|dir| may_have(dir, offset)));
    }
    Ok(objects)
}

/// Whether a directory can have keys behind `offset`: it comes behind it, or is one above it.
fn may_have(dir: &Key, offset: Option<&Key>) -> bool {
    let Some(offset) = offset else { return true };
    let begin = format!("{dir}/");
    begin.as_str() > offset.as_ref() || offset.as_ref().starts_with(&begin)
}

/// The objects and the directories directly in `prefix`.
pub(super) fn within(dir: &Dir, prefix: &Key) -> Result<ListResult> {
    // An unmounted store must not look like an empty one: its journals would begin again at 0.
    dir.check_root()?;
    let path = dir.path(prefix);
    let entries = match dir.disk.list(&path) {
        Ok(entries) => entries,
        // Never made, removed since its name was listed, or an object of the prefix's own name.
        Err(error) if is_no_dir(&error) => Vec::new(),
        Err(error) => return Err(fault(&path, error)),
    };
    let mut found = ListResult {
        common_prefixes: Vec::new(),
        objects: Vec::new(),
        extensions: Extensions::default(),
    };
    for entry in entries {
        let Ok(key) = child(prefix, &entry.name) else {
            tracing::debug!(dir = %path.display(), name = entry.name, "name can be no object's");
            continue;
        };
        if entry.is_dir {
            found.common_prefixes.push(key);
        } else if !is_unfinished(&entry.name) {
            found.objects.push(object(key, &entry));
        }
    }
    Ok(found)
}

fn is_no_dir(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Not `Key::join`, which percent-encodes: a name is kept as it is.
fn child(prefix: &Key, name: &str) -> Result<Key, object_store::path::Error> {
    if prefix.as_ref().is_empty() {
        Key::parse(name)
    } else {
        Key::parse(format!("{prefix}/{name}"))
    }
}
