//! The directory that is mounted on: claimed, cleared of what a dead daemon left there, let go.
//!
//! We call mount(2) ourselves, since fuser as root ignores the subtype, and `fuse.courant` is how a
//! later start recognises a mount of ours. Nothing here touches the inside of a mount: a daemon
//! that asks a mount of its own waits for itself, beyond SIGKILL.

pub mod table;

mod attached;
mod fusermount;
mod probe;

pub use attached::Attached;

use ::fs::names::{CONTROL, STATUS};
use attached::detach;
use probe::Daemon;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::{Mount, Table};

/// The file system type of a mount of ours, as /proc/self/mountinfo shows it.
pub const KIND: &str = "fuse.courant";

/// What /proc/mounts shows as the source of a mount that says nothing better.
const SOURCE: &str = "courant";

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
    #[error(
        "mounting as another user than root needs fusermount3: install it (the package fuse3), or \
         run as root"
    )]
    NoFusermount,
    #[error("fusermount3 can't {attempt} {path}: {complaint}")]
    Fusermount { attempt: &'static str, path: PathBuf, complaint: String },
    #[error("mount point {0} is not a directory")]
    NotDirectory(PathBuf),
    #[error("mount point {0} is not empty: it holds {1}")]
    NotEmpty(PathBuf, PathBuf),
    #[error("{0} is already mounted by a running courant: end it, or choose another mount point")]
    AlreadyMounted(PathBuf),
    #[error("{0} is mounted by a courant that does not answer: end it, or run courant umount {0}")]
    Silent(PathBuf),
    #[error("the courant that served {0} is gone: start it again, or run courant umount {0}")]
    Dead(PathBuf),
    #[error("{0} tells nothing of itself: who mounted it, or root, may ask")]
    Untold(PathBuf),
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
    source: String,
}

impl MountPoint {
    /// Claims the directory at `path`, which is made when it is missing. Mounts of ours whose
    /// daemon is dead are taken away first, however many are stacked there.
    pub fn claim(path: &Path) -> Result<MountPoint, Error> {
        let path = locate(path, Missing::Make)?;
        clear_stale(&path)?;
        make_directory(&path)?;
        require_empty(&path)?;
        Ok(MountPoint { path, source: SOURCE.to_owned() })
    }

    /// Where it is: absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same, with what /proc/mounts shows as the mount's source: an address or a path, of which
    /// what might be secret is left out.
    #[must_use]
    pub fn showing(self, source: &str) -> MountPoint {
        MountPoint { source: shown(source), ..self }
    }

    /// Mounts, and returns the connection to the kernel, which must be served at once: until INIT
    /// is answered whoever looks into the mount waits. Who is not root needs fusermount3(1) for it.
    pub fn attach(self) -> Result<(OwnedFd, Attached), Error> {
        Attached::attach(&self.path, &self.source)
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

/// The mounts of ours that this process sees, uppermost or not.
pub fn mounts() -> Result<Vec<Mount>, Error> {
    let mut mounts =
        table::read().map_err(|cause| system("read", Path::new(table::TABLE), cause))?;
    mounts.retain(|mount| mount.kind == KIND);
    Ok(mounts)
}

/// What the daemon of the mount at `point` says of it: the text of `.courant/status`. It is asked
/// by another process and for a few seconds, so that one which is stuck keeps nobody.
pub fn status(point: &Path) -> Result<String, Error> {
    let file = point.join(CONTROL).join(STATUS);
    let told = probe::read(&file, ANSWER_LIMIT).map_err(|cause| system("ask", point, cause))?;
    match told {
        Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(Daemon::Dead) => Err(Error::Dead(point.into())),
        Err(Daemon::Silent) => Err(Error::Silent(point.into())),
        Err(Daemon::Lives) => Err(Error::Untold(point.into())),
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

/// A URL without the parts that may hold a password or a token: all before `@` in its authority,
/// and its query and fragment.
fn shown(source: &str) -> String {
    let source = source.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = source.split_once("://") else { return source.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    let from = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[from..])
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
