//! File systems made for a test: small ones, such that lack something, and disks of their own.

use crate::ground;
use crate::patience;
use crate::shell;
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

/// An ext4 of its own in a file, by way of a loop device. It goes with its owner.
#[derive(Debug)]
pub struct Ext4 {
    path: PathBuf,
    device: String,
    folder: TempDir,
}

impl Ext4 {
    /// One of a size as truncate(1) takes it.
    #[track_caller]
    pub fn new(size: &str) -> Ext4 {
        let folder = ground::folder("disk-");
        let path = folder.path().canonicalize().expect("it was just made").join("root");
        let line = "truncate -s $1 image && mkdir root
            mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 image";
        shell::bash(folder.path(), line, &[size]).ok();
        let mut disk = Ext4 { path, device: String::new(), folder };
        disk.mount();
        disk
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its device, such as `loop0`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Ends it as a cut of the power does: what is not on the disk will never be, and every call
    /// fails (`EXT4_IOC_SHUTDOWN` in fs/ext4/ioctl.c, without a flush of the journal).
    #[track_caller]
    pub fn cut(&self) {
        let line = "python3 -c 'import fcntl, os, struct
fcntl.ioctl(os.open(\".\", os.O_RDONLY), 0x8004587D, struct.pack(\"I\", 2))'";
        shell::bash(&self.path, line, &[]).ok();
    }

    /// Has an error make it read-only under whoever has files open, as `errors=remount-ro` does
    /// (`trigger_fs_error` in fs/ext4/sysfs.c). Only another mount makes it writable again.
    #[track_caller]
    pub fn make_read_only(&self) {
        let line = "mount -o remount,errors=remount-ro root &&
            echo test > /sys/fs/ext4/$1/trigger_fs_error";
        shell::bash(self.folder.path(), line, &[&self.device]).ok();
    }

    /// Mounts it anew after a cut. Nobody may have a file of it open any more.
    #[track_caller]
    pub fn again(&mut self) {
        unmount(&self.path, UnmountFlags::empty()).expect("nobody has a file open");
        // Mount namespaces of processes that ended, or of other tests, have it for a while longer:
        // until then what it had not written could still be, under the next one.
        let backing = format!("/sys/block/{}/loop/backing_file", self.device);
        patience::until("its device is free", || !Path::new(&backing).exists());
        self.mount();
    }

    #[track_caller]
    fn mount(&mut self) {
        // A device tells whoever syncs it next of what its last file system could not write. It
        // goes with the mount.
        let line = "device=$(losetup -f --show image) && { sync $device 2>&1 || true; } &&
            mount -o nodev $device root && losetup -d $device && echo $device";
        let device = shell::bash(self.folder.path(), line, &[]).ok().text();
        device.rsplit('/').next().expect("a path has a last part").clone_into(&mut self.device);
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}
