//! The directory that is mounted on: claimed, cleared of what a dead daemon left there, let go.
//!
//! We call mount(2) ourselves, since fuser as root ignores the subtype, and `fuse.courant` is how a
//! later start recognises a mount of ours. Nothing here touches the inside of a mount: a daemon
//! that asks a mount of its own waits for itself, beyond SIGKILL.

pub mod table;

mod probe;

use probe::Daemon;
use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use table::{Mount, Table};

/// The file system type of a mount of ours, as /proc/self/mountinfo shows it.
pub const KIND: &str = "fuse.courant";

/// The FUSE device and its number (Documentation/admin-guide/devices.txt of the kernel).
const DEVICE: &str = "/dev/fuse";
const DEVICE_NUMBER: (u32, u32) = (10, 229);

/// How long a mount of ours that is found at the mount point may take to say that it lives.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);

/// Dead mounts that are cleared from one mount point before we give up: each start leaves one.
const STALE_MAX: usize = 64;

/// Why a directory can't be mounted on, or let go.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "/dev/fuse is missing: load the kernel module (modprobe fuse), or start the container \
         with --device /dev/fuse"
    )]
    NoDevice,
    #[error("/dev/fuse is not the FUSE device: make it with mknod /dev/fuse c 10 229")]
    WrongDevice,
    #[error("/dev/fuse can't be opened ({0}): run as root, or give this user the right to it")]
    Device(io::Error),
    #[error("mounting on {0} needs root (the capability CAP_SYS_ADMIN)")]
    NotRoot(PathBuf),
    #[error("mount point {0} is not a directory")]
    NotDirectory(PathBuf),
    #[error("mount point {0} is not empty: it holds {1}")]
    NotEmpty(PathBuf, PathBuf),
    #[error("{0} is already mounted by a running courant: end it, or choose another mount point")]
    AlreadyMounted(PathBuf),
    #[error("{0} is mounted by a courant that does not answer: end it, or run courant umount {0}")]
    Silent(PathBuf),
    #[error("{0} is not mounted")]
    NotMounted(PathBuf),
    #[error("{0} is a mount of type {1}, not one of courant")]
    Foreign(PathBuf, String),
    #[error("can't {attempt} {path}: {cause}")]
    System { attempt: &'static str, path: PathBuf, cause: io::Error },
}

/// An empty directory on which no mount of ours is.
#[derive(Debug)]
pub struct MountPoint {
    path: PathBuf,
}

impl MountPoint {
    /// Claims the directory at `path`, which is made when it is missing. Mounts of ours whose
    /// daemon is dead are taken away first, however many are stacked there.
    pub fn claim(path: &Path) -> Result<MountPoint, Error> {
        let path = locate(path, Missing::Make)?;
        clear_stale(&path)?;
        make_directory(&path)?;
        require_empty(&path)?;
        Ok(MountPoint { path })
    }

    /// Where it is: absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Mounts, and returns the connection to the kernel, which must be served at once: until INIT
    /// is answered whoever looks into the mount waits.
    pub fn attach(self) -> Result<(OwnedFd, Attached), Error> {
        let device = open_device()?;
        let table =
            Table::open().map_err(|cause| system("open", Path::new(table::TABLE), cause))?;
        let options = mount_options(&device, rustix::process::geteuid().is_root());
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("courant", &self.path, KIND, flags, options.as_c_str())
            .map_err(|errno| mount_failed(&self.path, errno))?;
        let mnt_id = match top_of(&table, &self.path)? {
            Some(mount) => mount.id,
            None => return Err(Error::NotMounted(self.path)),
        };
        Ok((device.into(), Attached { path: self.path, mnt_id, table: Arc::new(table) }))
    }
}

/// A mount of ours in place. It is detached when dropped: handles that are open live on until they
/// are closed, so the parked replies are answered before.
#[derive(Debug)]
pub struct Attached {
    path: PathBuf,
    mnt_id: u64,
    table: Arc<Table>,
}

impl Attached {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The mount's number in this mount namespace, as `/proc/PID/fdinfo/FD` tells it of a file.
    pub fn mnt_id(&self) -> u64 {
        self.mnt_id
    }

    /// The mount table, open.
    pub fn table(&self) -> Arc<Table> {
        self.table.clone()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Somebody may have unmounted it already, or mounted another one here.
        match top_of(&self.table, &self.path) {
            Ok(Some(mount)) if mount.id == self.mnt_id => {
                if let Err(error) = detach(&self.path) {
                    tracing::warn!(%error, "the mount stays");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the mount may stay"),
        }
    }
}

/// Takes away the mount of ours at `path`, dead or alive. Open handles keep working until closed.
pub fn unmount(path: &Path) -> Result<(), Error> {
    let path = locate(path, Missing::Fail)?;
    match top(&path)? {
        None => Err(Error::NotMounted(path)),
        Some(mount) if mount.kind != KIND => Err(Error::Foreign(path, mount.kind)),
        Some(_) => detach(&path),
    }
}

/// What to do about a parent directory that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Fail,
}

/// The absolute path of a mount point. Its last part is not followed while something is mounted
/// there: an lstat of it would ask the daemon.
fn locate(path: &Path, missing: Missing) -> Result<PathBuf, Error> {
    let failed = |attempt| move |cause| system(attempt, path, cause);
    let Some(name) = path.file_name() else {
        return path.canonicalize().map_err(failed("find"));
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if missing == Missing::Make {
        fs::create_dir_all(parent).map_err(failed("make the parent of"))?;
    }
    let located = parent.canonicalize().map_err(failed("find"))?.join(name);
    let is_link = top(&located)?.is_none() && located.is_symlink();
    if is_link { located.canonicalize().map_err(failed("find")) } else { Ok(located) }
}

fn clear_stale(path: &Path) -> Result<(), Error> {
    for _ in 0..STALE_MAX {
        match top(path)? {
            Some(mount) if mount.kind == KIND => {}
            _ => return Ok(()),
        }
        let asked = probe::ask(path, ANSWER_LIMIT).map_err(|cause| system("ask", path, cause))?;
        match asked {
            Daemon::Lives => return Err(Error::AlreadyMounted(path.into())),
            Daemon::Silent => return Err(Error::Silent(path.into())),
            Daemon::Dead => detach(path)?,
        }
        tracing::info!(path = %path.display(), "took away the mount that a dead daemon left");
    }
    Err(Error::AlreadyMounted(path.into()))
}

fn make_directory(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Error::NotDirectory(path.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(path).map_err(|cause| system("make", path, cause))
        }
        Err(cause) => Err(system("look at", path, cause)),
    }
}

fn require_empty(path: &Path) -> Result<(), Error> {
    let failed = |cause| system("list", path, cause);
    match fs::read_dir(path).map_err(failed)?.next() {
        None => Ok(()),
        Some(Ok(entry)) => Err(Error::NotEmpty(path.into(), entry.file_name().into())),
        Some(Err(cause)) => Err(failed(cause)),
    }
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
fn mount_options(device: &File, for_everybody: bool) -> CString {
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions{}",
        device.as_raw_fd(),
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
        if for_everybody { ",allow_other" } else { "" },
    );
    CString::new(options).expect("numbers and option names hold no NUL")
}

fn mount_failed(path: &Path, errno: Errno) -> Error {
    match errno {
        Errno::PERM => Error::NotRoot(path.into()),
        _ => system("mount on", path, errno.into()),
    }
}

fn detach(path: &Path) -> Result<(), Error> {
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    rustix::mount::unmount(path, flags).map_err(|errno| match errno {
        Errno::PERM => Error::NotRoot(path.into()),
        _ => system("unmount", path, errno.into()),
    })
}

/// The mount that a look-up of `path` ends in, if one is right there.
fn top(path: &Path) -> Result<Option<Mount>, Error> {
    let table = Table::open().map_err(|cause| system("read", Path::new(table::TABLE), cause))?;
    top_of(&table, path)
}

/// The same, by a table that is open.
fn top_of(table: &Table, path: &Path) -> Result<Option<Mount>, Error> {
    let mounts = table.mounts().map_err(|cause| system("read", Path::new(table::TABLE), cause))?;
    Ok(table::top(&mounts, path).cloned())
}

fn system(attempt: &'static str, path: &Path, cause: io::Error) -> Error {
    Error::System { attempt, path: path.into(), cause }
}

#[cfg(test)]
mod tests;
