//! A directory to mount on, which is free of mounts when its owner goes, whatever became of the
//! daemon.

use crate::ground;
use mount::mountpoint::table::{self, Mount};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
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

    /// The mounts that lie here, of whatever kind: one while a daemon serves it.
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
        for mount in self.mounts() {
            // Before it is unmounted: then another test's mount may get its number.
            abort(&mount);
            let _ = unmount(&self.path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        }
        if !self.mounts().is_empty() {
            // Removing the folder would delete what the mount shows.
            self.folder.take().map(TempDir::keep);
        }
    }
}

/// Ends the connection of a mount: a process that waits for a daemon which never answers is freed
/// by nothing else.
fn abort(found: &Mount) {
    let abort = Path::new(CONNECTIONS).join(found.device.1.to_string()).join("abort");
    if !abort.exists() {
        // Where no init system did it.
        let _ = mount("fusectl", CONNECTIONS, "fusectl", MountFlags::empty(), None);
    }
    let _ = std::fs::write(abort, "1");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience;
    use crate::running::Running;
    use ::mount::mountpoint::MountPoint;
    use std::process::Command;

    #[test]
    fn a_daemon_that_never_answers_leaves_no_mount_and_no_waiting_process() {
        let directory = MountDir::new();
        let point = MountPoint::claim(directory.path()).unwrap();
        // The connection stays open, as with a daemon that hangs, and nobody serves it.
        let (_device, attached) = point.attach().unwrap();
        std::mem::forget(attached);
        assert_eq!(directory.mounts().len(), 1);
        let mut waiting = Running::start(Command::new("stat").arg(directory.path()));
        patience::pause(std::time::Duration::from_millis(200));
        assert_eq!(waiting.ended(), None);

        let path = directory.path().to_path_buf();
        drop(directory);
        patience::until("the waiting process ends", || waiting.ended().is_some());
        assert!(table::read().unwrap().iter().all(|mount| mount.point != path));
    }
}
