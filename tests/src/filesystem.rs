//! File systems made for a test: small ones, and such that lack something.

use crate::ground;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file system in memory that goes with its owner.
#[derive(Debug)]
pub struct Filesystem {
    path: PathBuf,
    _folder: TempDir,
}

impl Filesystem {
    /// A tmpfs that takes so many MiB.
    #[track_caller]
    pub fn small(mebibytes: u32) -> Filesystem {
        Filesystem::mount("tmpfs", &format!("size={mebibytes}m"))
    }

    /// A ramfs: no part of a file can be freed there (fallocate is EOPNOTSUPP).
    #[track_caller]
    pub fn without_holes() -> Filesystem {
        Filesystem::mount("ramfs", "")
    }

    #[track_caller]
    fn mount(kind: &str, options: &str) -> Filesystem {
        let folder = ground::folder("filesystem-");
        let path = folder.path().canonicalize().expect("it was just made").join("root");
        std::fs::create_dir(&path).expect("the folder is ours");
        let options = CString::new(options).expect("options hold no NUL");
        mount(kind, &path, kind, MountFlags::NODEV, options.as_c_str())
            .unwrap_or_else(|errno| panic!("mounting a {kind} needs root: {errno}"));
        Filesystem { path, _folder: folder }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Filesystem {
    fn drop(&mut self) {
        // Detached, so that a process which holds a file does not keep it in place.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}
