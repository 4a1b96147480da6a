//! Where directories of ours may lie: apart from each other, outside of mounts, and in no directory
//! that is somebody else's. All of it is asked before anything is made.

use super::serving::{ADDRESS, STORE};
use super::up::STAGING;
use crate::Error;
use ::mount::mountpoint::{self, KIND, table};
use broker::backing::KEY_SPACE;
use index::disk::RealDisk;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A mount over the data would hide them from the broker; data in the mount would be journals.
pub fn refuse_nested(data: &Path, other: &Path) -> Result<(), Error> {
    let (at, beside) = (whole(data)?, whole(other)?);
    if at.starts_with(&beside) || beside.starts_with(&at) {
        return Err(Error::Nested(data.display().to_string(), other.display().to_string()));
    }
    Ok(())
}

/// In a mount of ours files are journals: a data directory there would be one of journals, written
/// by its own broker perhaps.
pub fn refuse_mounted(place: &Path) -> Result<(), Error> {
    let mounts = table::read().map_err(Error::io(format!("read {}", table::TABLE)))?;
    let at = whole(place)?;
    // The innermost mount; of those that are stacked at one point any tells the kind that matters.
    let above = mounts.iter().filter(|mount| at.starts_with(&mount.point));
    let innermost = above.max_by_key(|mount| mount.point.components().count());
    match innermost.filter(|mount| mount.kind == KIND && shows_journals(&mount.point)) {
        Some(mount) => {
            Err(Error::Mounted(place.display().to_string(), mount.point.display().to_string()))
        }
        None => Ok(()),
    }
}

/// Whether a mount of our kind shows journals, as one whose daemon does not answer is taken to do.
/// What others make with our crates may have no control directory.
fn shows_journals(point: &Path) -> bool {
    !matches!(mountpoint::status(point), Err(mountpoint::Error::Untold(_)))
}

/// A directory that has entries, none of which says that it is a data directory, keeps what it has:
/// ours would be spread among somebody else's.
pub fn refuse_foreign(data: &Path) -> Result<(), Error> {
    let entries = match fs::read_dir(data) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(Error::reading(data))?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let mut names = names.map_err(Error::reading(data))?;
    if is_data(data)? {
        return Ok(());
    }
    names.sort();
    match names.iter().find(|name| !is_ours(name) || *name == index::FORMAT_FILE) {
        Some(name) => {
            let name = Path::new(name).display().to_string();
            Err(Error::Foreign(data.display().to_string(), name))
        }
        None => Ok(()),
    }
}

/// Whether a directory that is there is a data directory: it has the mark of one, or a log and
/// mirrors. A file that happens to be called as the mark makes none.
pub fn is_data(data: &Path) -> Result<bool, Error> {
    let has = |name: &str| data.join(name).try_exists().map_err(Error::reading(&data.join(name)));
    if has(index::log::DIR)? && has(index::mirror::DIR)? {
        return Ok(true);
    }
    let disk = RealDisk::new(data).map_err(Error::reading(data))?;
    match index::check_format(&disk) {
        Ok(is_marked) => Ok(is_marked),
        Err(index::Error::Damaged(..)) => Ok(false),
        Err(error) => Err(Error::data(data)(error)),
    }
}

/// Whether a data directory may have an entry of this name: a start that was cut short leaves some
/// before its mark.
fn is_ours(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    index::is_part(name) || [KEY_SPACE, STORE, ADDRESS, STAGING].contains(&name)
}

/// The path from the root, without symbolic links as far as it is there.
fn whole(path: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(path).map_err(Error::io("find this directory"))?;
    for above in absolute.ancestors() {
        // What can't be asked, as a mount whose daemon is gone, is taken as it is called.
        if let Ok(real) = above.canonicalize() {
            let rest = absolute.strip_prefix(above).expect("it is an ancestor");
            return Ok(real.join(rest));
        }
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_mount_lie_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().join("real");
        fs::create_dir(&real).expect("it is new");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&real, &link).expect("it is new");
        let behind = link.join("journals");
        // Case: data, mount, whether they may be used together
        let cases = [
            (Path::new("./courant-data"), Path::new("./journals"), true),
            (Path::new("/d/data"), Path::new("/d/data2"), true),
            (Path::new("/d"), Path::new("/d"), false),
            (Path::new("/d"), Path::new("/d/journals"), false),
            (Path::new("journals/data"), Path::new("./journals"), false),
            (&real, &behind, false),
            (&link, &real, false),
        ];
        for (data, mount, expected) in cases {
            let found = refuse_nested(data, mount);
            assert_eq!(found.is_ok(), expected, "{} {}", data.display(), mount.display());
        }
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        // Case: what is there, and the entry that is named, if any
        let cases: [(&[&str], Option<&str>); 7] = [
            (&[], None),
            (&["lost+found"], None),
            (&["log", "mirror", "staging", "lock"], None),
            (&["format", "notes.txt"], None),
            (&["notes.txt", "log"], Some("notes.txt")),
            (&["Cargo.toml", ".git"], Some(".git")),
            (&["lost+found", "other/format"], Some("format")),
        ];
        for (entries, named) in cases {
            let folder = tempfile::tempdir().expect("a folder");
            for entry in entries {
                let content = if *entry == "format" { "courant data format 1\n" } else { "" };
                let name = Path::new(entry).file_name().expect("it is a name");
                fs::write(folder.path().join(name), content).expect("it is new");
            }
            let refused = refuse_foreign(folder.path()).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), named.is_some(), "{entries:?}: {refused:?}");
            for word in named.into_iter().chain(named.map(|_| "--data")) {
                assert!(refused.iter().all(|line| line.contains(word)), "{entries:?}: {refused:?}");
            }
        }
        // Case: it is not there
        let folder = tempfile::tempdir().expect("a folder");
        refuse_foreign(&folder.path().join("new")).expect("it will be made");
    }

    #[test]
    fn a_directory_outside_of_mounts_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        refuse_mounted(&folder.path().join("a/b")).expect("no mount of ours is there");
    }
}
