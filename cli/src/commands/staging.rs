//! Where a mount keeps what waits to be committed: with its data, in its cache, or in a directory
//! of its own among the temporary ones.

use crate::Error;
use client::crc32c_append;
use fs::Staging;
use index::disk::RealDisk;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A staging directory, and whether it goes with a mount that ends and leaves nothing.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    is_private: bool,
}

impl Place {
    /// A directory below one that the mount has anyway.
    pub fn within(directory: &Path, name: &str) -> Place {
        Place { path: directory.join(name), is_private: false }
    }

    /// A private directory of who runs this and of the mount point, so that the same command finds
    /// what was left after a crash.
    pub fn private(mountpoint: &Path) -> Result<Place, Error> {
        let absolute = std::path::absolute(mountpoint);
        let absolute = absolute.map_err(Error::io("find this directory"))?;
        let uid = rustix::process::geteuid().as_raw();
        let hash = crc32c_append(0, absolute.as_os_str().as_bytes());
        let path = std::env::temp_dir().join(format!("courant-{uid}-{hash:08x}"));
        Ok(Place { path, is_private: true })
    }

    /// Takes it for one mount, with so many bytes at most.
    pub fn open(&self, bytes_max: u64) -> Result<Staging, Error> {
        let path = self.path.display();
        if self.is_private {
            make_private(&self.path).map_err(Error::io(format!("use {path} for staging")))?;
        }
        let disk = RealDisk::new(&self.path);
        let opened = disk.and_then(|disk| Staging::open(Arc::new(disk), bytes_max));
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::StagingInUse(path.to_string()),
            _ => Error::Io(format!("use {path} for staging"), error),
        })
    }

    /// Takes a private directory away, if nothing was left in it.
    pub fn tidy(&self) {
        if self.is_private && std::fs::remove_dir(self.path.join("aside")).is_ok() {
            let removed = std::fs::remove_file(self.path.join("lock"));
            let removed = removed.and_then(|()| std::fs::remove_dir(&self.path));
            if let Err(error) = removed {
                tracing::info!(%error, path = %self.path.display(), "what waits stays there");
            }
        }
    }
}

/// Makes the directory for us alone. Others can write where it lies, so one that is there counts
/// only if it is ours.
fn make_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let meta = std::fs::symlink_metadata(path)?;
            let is_ours = meta.is_dir()
                && meta.uid() == rustix::process::geteuid().as_raw()
                && meta.mode() & 0o077 == 0;
            let refusal = "somebody else can write to it: give this mount a --cache";
            if is_ours { Ok(()) } else { Err(io::Error::other(refusal)) }
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_directory_is_ours_alone_and_goes_when_it_is_empty() {
        let ground = tempfile::tempdir().unwrap();
        let place = Place { path: ground.path().join("private"), is_private: true };
        let staging = place.open(1 << 20).unwrap();
        assert_eq!(fs::metadata(&place.path).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(place.open(1), Err(Error::StagingInUse(_))), "one mount at a time");
        drop(staging);
        // Case: something is left
        fs::write(place.path.join("000000000001.draft"), "x").unwrap();
        place.tidy();
        assert!(place.path.join("000000000001.draft").exists());
        fs::remove_file(place.path.join("000000000001.draft")).unwrap();
        drop(place.open(1 << 20).unwrap());
        place.tidy();
        assert!(!place.path.exists());
        // Case: others may enter it
        fs::create_dir(&place.path).unwrap();
        fs::set_permissions(&place.path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(place.open(1).unwrap_err().to_string().contains("--cache"));
    }

    #[test]
    fn a_mount_point_has_one_directory() {
        let place = |path: &str| Place::private(Path::new(path)).unwrap().path;
        assert_eq!(place("/srv/a"), place("/srv/a"));
        assert_ne!(place("/srv/a"), place("/srv/b"));
    }
}
