//! A mount of ours in the mount table: put there, and taken away.

use super::table::{self, Table};
use super::{Error, KIND, fusermount, system, top_of};
use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

/// The FUSE device and its number (Documentation/admin-guide/devices.txt of the kernel).
const DEVICE: &str = "/dev/fuse";
const DEVICE_NUMBER: (u32, u32) = (10, 229);

/// A mount of ours in place. It is detached when dropped: handles that are open live on until they
/// are closed, so the parked replies are answered before.
#[derive(Debug)]
pub struct Attached {
    mount: table::Mount,
    table: Arc<Table>,
}

impl Attached {
    /// Mounts at `path`.
    pub(super) fn attach(path: &Path, source: &str) -> Result<(OwnedFd, Attached), Error> {
        let table =
            Table::open().map_err(|cause| system("open", Path::new(table::TABLE), cause))?;
        let device = match rustix::process::geteuid().is_root() {
            true => mount(path, source)?,
            false => fusermount::mount(path, source)?,
        };
        let Some(mount) = top_of(&table, path)? else {
            return Err(Error::NotMounted(path.into()));
        };
        Ok((device, Attached { mount, table: Arc::new(table) }))
    }

    pub fn path(&self) -> &Path {
        &self.mount.point
    }

    /// The mount's number in this mount namespace, as `/proc/PID/fdinfo/FD` tells it of a file.
    pub fn mnt_id(&self) -> u64 {
        self.mount.id
    }

    /// The device of its files: major, minor.
    pub fn device(&self) -> (u32, u32) {
        self.mount.device
    }

    /// The mount table, open.
    pub fn table(&self) -> Arc<Table> {
        self.table.clone()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Somebody may have unmounted it already, or mounted another one here.
        match top_of(&self.table, self.path()) {
            Ok(Some(mount)) if mount.id == self.mnt_id() => {
                if let Err(error) = detach(self.path()) {
                    tracing::warn!(%error, "the mount stays");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the mount may stay"),
        }
    }
}

fn mount(path: &Path, source: &str) -> Result<OwnedFd, Error> {
    let device = open_device()?;
    let options = mount_options(&device);
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount(source, path, KIND, flags, options.as_c_str()).map_err(
        |errno| match errno {
            Errno::PERM => Error::NotRoot(path.into()),
            _ => system("mount on", path, errno.into()),
        },
    )?;
    Ok(device.into())
}

fn open_device() -> Result<File, Error> {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|cause| {
        match cause.kind() {
            io::ErrorKind::NotFound => Error::NoDevice,
            // ENODEV, ENXIO: the node is there, the module is not.
            _ if matches!(Errno::from_io_error(&cause), Some(Errno::NODEV | Errno::NXIO)) => {
                Error::NoDevice
            }
            _ => Error::Device(cause),
        }
    })?;
    let found = device.metadata().map_err(Error::Device)?;
    let number = (major(found.rdev()), minor(found.rdev()));
    if found.file_type().is_char_device() && number == DEVICE_NUMBER {
        Ok(device)
    } else {
        Err(Error::WrongDevice)
    }
}

/// The options of mount(2) (fs/fuse/inode.c of the kernel, `fuse_fs_parameters`). `rootmode` gives
/// the root's type alone: its permissions come by GETATTR.
fn mount_options(device: &File) -> CString {
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions,allow_other",
        device.as_raw_fd(),
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    CString::new(options).expect("numbers and option names hold no NUL")
}

/// Takes the uppermost mount at `path` away. Open handles keep working until they are closed.
pub(super) fn detach(path: &Path) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        return fusermount::unmount(path);
    }
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    rustix::mount::unmount(path, flags).map_err(|errno| match errno {
        Errno::PERM => Error::NotRoot(path.into()),
        _ => system("unmount", path, errno.into()),
    })
}
