//! Where a copy goes: beside its name until it is whole.

use crate::Error;
use index::disk::RealDisk;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory `NAME.partial`, which becomes `NAME`.
#[derive(Debug)]
pub struct Target {
    partial: PathBuf,
    name: PathBuf,
}

impl Target {
    /// Makes the directory. Refuses a name that is taken, unless by an empty directory, and what an
    /// earlier copy left that did not end.
    pub fn make(name: &Path) -> Result<Target, Error> {
        let attempt = || format!("make {}", name.display());
        match fs::read_dir(name).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(Error::Taken(name.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::Io(attempt(), error)),
        }
        let last = name.file_name();
        let last = last.ok_or_else(|| Error::Io(attempt(), io::ErrorKind::InvalidInput.into()))?;
        let mut partial = OsString::from(last);
        partial.push(".partial");
        let partial = name.with_file_name(partial);
        match fs::create_dir(&partial) {
            Ok(()) => Ok(Target { partial, name: name.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Error::Unfinished(partial.display().to_string()))
            }
            Err(error) => Err(Error::Io(format!("make {}", partial.display()), error)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.partial
    }

    pub fn disk(&self) -> Result<Arc<RealDisk>, Error> {
        let disk = RealDisk::new(&self.partial);
        Ok(Arc::new(disk.map_err(Error::io(format!("open {}", self.partial.display())))?))
    }

    /// The copy is whole and durable: it gets its name, durably.
    pub fn keep(self) -> Result<(), Error> {
        let renamed = fs::rename(&self.partial, &self.name).and_then(|()| {
            let above = self.name.parent().filter(|above| !above.as_os_str().is_empty());
            File::open(above.unwrap_or(Path::new(".")))?.sync_all()
        });
        renamed.map_err(Error::io(format!("name the copy {}", self.name.display())))
    }

    /// Removes what there is of the copy. What can't be removed keeps its name, which says that it
    /// is not whole.
    pub fn discard(self) {
        if let Err(error) = fs::remove_dir_all(&self.partial) {
            tracing::warn!(%error, partial = %self.partial.display(), "half a copy stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_there_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("copy");
        // Case: nothing is there, and the copy fails
        Target::make(&name).expect("free").discard();
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        // Case: an empty directory is there; the copy is whole
        fs::create_dir(&name).expect("free");
        let target = Target::make(&name).expect("it is empty");
        fs::write(target.path().join("file"), "1").expect("it is a directory");
        target.keep().expect("it is empty still");
        assert_eq!(fs::read_to_string(name.join("file")).expect("it was named"), "1");
        // Case: something is there
        let refused = Target::make(&name).expect_err("it is taken").to_string();
        assert!(refused.contains("copy") && refused.contains("another"), "{refused}");
        // Case: an earlier copy did not end
        let other = folder.path().join("other");
        let earlier = Target::make(&other).expect("free");
        let refused = Target::make(&other).expect_err("half a copy is there").to_string();
        assert!(refused.contains("other.partial") && refused.contains("remove it"), "{refused}");
        drop(earlier);
    }
}
