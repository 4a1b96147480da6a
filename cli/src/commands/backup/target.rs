//! Where a copy goes: beside its name until it is whole.

use crate::Error;
use index::disk::RealDisk;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory `NAME.partial`, which becomes `NAME`.
#[derive(Debug)]
pub struct Target {
    partial: PathBuf,
    name: PathBuf,
}

impl Target {
    /// Makes the directory, which whoever may enter `data` may enter. Refuses a name that is taken,
    /// unless by an empty directory, and what an earlier copy left that did not end.
    pub fn make(name: &Path, data: &Path) -> Result<Target, Error> {
        let attempt = || format!("make {}", name.display());
        let mode = fs::metadata(data).map_err(Error::reading(data))?.permissions();
        match fs::read_dir(name).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => return Err(Error::Taken(name.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::reading(name)(error)),
        }
        let last = name.file_name();
        let last = last.ok_or_else(|| Error::Io(attempt(), io::ErrorKind::InvalidInput.into()))?;
        let mut partial = OsString::from(last);
        partial.push(".partial");
        let partial = name.with_file_name(partial);
        match fs::DirBuilder::new().mode(0o700).create(&partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Unfinished(partial.display().to_string()));
            }
            Err(error) => return Err(Error::making(name)(error)),
        }
        let target = Target { partial, name: name.to_owned() };
        // Whatever the umask is.
        match fs::set_permissions(&target.partial, mode) {
            Ok(()) => Ok(target),
            Err(error) => {
                target.discard();
                Err(Error::making(name)(error))
            }
        }
    }

    /// The directory, of which errors speak by the name that it will have.
    pub fn disk(&self) -> Result<Arc<RealDisk>, Error> {
        let disk = RealDisk::new(&self.partial).map_err(Error::making(&self.name))?;
        Ok(Arc::new(disk.called(&self.name)))
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
    use index::disk::Disk;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn nothing_that_is_there_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let (name, data) = (folder.path().join("copy"), folder.path().join("data"));
        fs::create_dir(&data).expect("free");
        // Case: nothing is there, and the copy fails
        Target::make(&name, &data).expect("free").discard();
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        // Case: an empty directory is there; the copy is whole
        fs::create_dir(&name).expect("free");
        let target = Target::make(&name, &data).expect("it is empty");
        fs::write(target.partial.join("file"), "1").expect("it is a directory");
        target.keep().expect("it is empty still");
        assert_eq!(fs::read_to_string(name.join("file")).expect("it was named"), "1");
        // Case: something is there
        let refused = Target::make(&name, &data).expect_err("it is taken").to_string();
        assert!(refused.contains("copy") && refused.contains("another"), "{refused}");
        // Case: an earlier copy did not end
        let other = folder.path().join("other");
        let earlier = Target::make(&other, &data).expect("free");
        let refused = Target::make(&other, &data).expect_err("half a copy is there").to_string();
        assert!(refused.contains("other.partial") && refused.contains("remove it"), "{refused}");
        drop(earlier);
    }

    #[test]
    fn a_copy_is_as_open_as_its_original() {
        let folder = tempfile::tempdir().expect("a folder");
        for mode in [0o700, 0o750, 0o775] {
            let at = |name: &str| folder.path().join(format!("{name}-{mode:o}"));
            let (data, copy) = (at("data"), at("copy"));
            fs::create_dir(&data).expect("free");
            fs::set_permissions(&data, Permissions::from_mode(mode)).expect("it is ours");
            Target::make(&copy, &data).expect("free").keep().expect("its name is free");
            let found = fs::metadata(&copy).expect("it is there").permissions().mode();
            assert_eq!(found & 0o7777, mode, "{mode:o}");
        }
    }

    #[test]
    fn errors_name_what_was_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
        fs::create_dir(&data).expect("free");
        let target = Target::make(&copy, &data).expect("free");
        let place = target.disk().expect("it was made").place(Path::new("log/a"));
        assert_eq!(place, copy.join("log/a"));
        // Case: the directory above is not there
        let refused = Target::make(&folder.path().join("none/copy"), &data).expect_err("no parent");
        let refused = refused.to_string();
        assert!(refused.contains("none/copy:") && !refused.contains("partial"), "{refused}");
    }
}
