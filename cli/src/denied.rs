//! Which permission it is that lacks, and on which file or directory: the kernel tells neither.

use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A permission that the user of this process does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    path: PathBuf,
    /// What can't be done with it.
    permission: &'static str,
    /// The user who has it, where that can be seen.
    owner: Option<u32>,
}

impl Denied {
    /// What lacks for `path`, which could not be opened, listed, made or changed. The directories
    /// above are looked at first, since without them nothing below can be.
    pub fn of(path: &Path) -> Denied {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let closed = above.into_iter().find(|dir| dir.is_dir() && lacks(dir, Access::EXEC_OK));
        let (at, permission) = match closed {
            Some(dir) => (dir, "to enter it"),
            None => lacking_on(&path),
        };
        let owner = std::fs::metadata(at).ok().map(|meta| meta.uid());
        Denied { path: at.to_owned(), permission, owner }
    }
}

/// What lacks on a path that can be reached; on the directory where it is to be made, if it is not
/// there.
fn lacking_on(path: &Path) -> (&Path, &'static str) {
    match path.symlink_metadata() {
        Ok(_) if lacks(path, Access::READ_OK) => (path, "to read it"),
        Ok(meta) if meta.is_dir() && lacks(path, Access::EXEC_OK) => (path, "to enter it"),
        Ok(_) if lacks(path, Access::WRITE_OK) => (path, "to write it"),
        _ => (path.parent().unwrap_or(path), "to write it"),
    }
}

fn lacks(path: &Path, access: Access) -> bool {
    accessat(CWD, path, access, AtFlags::EACCESS).is_err()
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Denied { path, permission, owner } = self;
        write!(f, "{}: the permission {permission} is missing: run this as ", path.display())?;
        match owner {
            Some(0) | None => write!(f, "root"),
            Some(uid) => write!(f, "user {uid}, who owns it, or as root"),
        }
    }
}
