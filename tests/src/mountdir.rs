//! A directory to mount on, which is free of mounts when its owner goes, whatever became of the
//! daemon.

use crate::ground;
use mount::mountpoint::table::{self, Mount};
use rustix::mount::{UnmountFlags, unmount};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where the kernel shows its FUSE connections, by the minor number of the device of their mounts.
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

/// An empty directory of its own.
#[derive(Debug)]
pub struct MountDir {
    /// The folder around it, so that the mount point itself is never looked at to remove it.
    folder: Option<TempDir>,
    path: PathBuf,
}

impl MountDir {
    /// A directory that does not exist yet: the daemon makes it.
    pub fn new() -> MountDir {
        let folder = ground::folder("mount-");
        let above = folder.path().canonicalize().expect("it was just made");
        MountDir { path: above.join("journals"), folder: Some(folder) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mounts that lie here: one while a daemon serves it.
    pub fn mounts(&self) -> Vec<Mount> {
        let mut mounts = table::read().expect("/proc/self/mountinfo is readable");
        mounts.retain(|mount| mount.point == self.path);
        mounts
    }
}

impl Default for MountDir {
    fn default() -> Self {
        MountDir::new()
    }
}

impl Drop for MountDir {
    fn drop(&mut self) {
        let mounts = self.mounts();
        for _ in &mounts {
            let _ = unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
        for mount in mounts {
            abort(&mount);
        }
        if !self.mounts().is_empty() {
            // Removing the folder would delete what the mount shows.
            self.folder.take().map(TempDir::keep);
        }
    }
}

/// Ends the connection, if it still is one: a process that waits for a daemon which never answers
/// is freed by nothing else. The directory of a connection goes with its last open file.
fn abort(mount: &Mount) {
    let connections = Path::new(CONNECTIONS);
    let abort = connections.join(mount.device.1.to_string()).join("abort");
    let _ = std::fs::write(abort, "1");
}
