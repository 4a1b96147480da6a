//! The seam to local files: a few synchronous operations on one directory tree.
//!
//! Who may block decides the thread; this module only says what is asked of a disk. All paths are
//! relative to the disk's root. [`RealDisk`] is the file system; [`ForgetfulDisk`] is memory that
//! fails, fills up and forgets what was not synced.

mod dry;
mod forgetful;
mod lease;
mod real;

pub use dry::DryDisk;
pub use forgetful::{Crash, ForgetfulDisk, Trouble};
pub use real::RealDisk;

use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How `Disk::open` treats a name that exists or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// The file must exist; opened for reading only.
    Read,
    /// The file must exist; opened for reading and writing.
    Existing,
    /// The file must not exist.
    New,
    /// Either.
    Any,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
    pub len: u64,
    pub modified: SystemTime,
}

/// Room on the file system that holds the disk's root, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    pub free: u64,
}

/// Held while a process owns a directory; dropping it gives the directory back.
pub type Lock = Box<dyn Send + Sync>;

/// A directory tree of local files.
pub trait Disk: Debug + Send + Sync + 'static {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>>;
    /// Replaces `to` when it exists. Durable only after `sync_dir` of both directories.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the directory and its parents; one that exists is success.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Entries sorted by name.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// `None` when nothing is there.
    fn stat(&self, path: &Path) -> io::Result<Option<Entry>>;
    /// Makes creations, renames and removals in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    fn space(&self) -> io::Result<Space>;
    /// How people find the path: itself, unless the disk is a directory of the system.
    fn place(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
    /// Names the run of the kernel under us: page caches live as long as it does.
    fn boot_id(&self) -> io::Result<String>;
    /// Takes the exclusive lock at `path`; `WouldBlock` when another process holds it.
    fn lock(&self, path: &Path) -> io::Result<Lock>;
    /// Keeps others from taking the lock at `path`, and makes and writes nothing; `WouldBlock` when
    /// somebody has it. Where nothing is at `path` nobody ever had it, and nobody is kept out. A
    /// disk with one kind of lock takes that.
    fn lock_shared(&self, path: &Path) -> io::Result<Lock> {
        self.lock(path)
    }
}

/// An open local file. All writes are positioned; a failed write may have written a part.
#[allow(clippy::len_without_is_empty, reason = "the length of a file, which is no container")]
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// Reads up to `buf.len()` bytes at `at`; 0 at the end of the file.
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize>;
    /// Reads up to `len` bytes at `at` into memory of their own; none at the end of the file.
    fn read_new(&self, len: usize, at: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let n = self.read_at(&mut bytes, at)?;
        bytes.truncate(n);
        Ok(bytes)
    }
    /// Whether a read there would likely not wait for the disk: a guess, for who would rather not
    /// be the one to wait.
    fn is_cached(&self, _at: u64, _len: usize) -> bool {
        true
    }
    /// Whether the page cache has nothing of the file, as after a boot and as after its file system
    /// was mounted anew. `false` where that can't be asked.
    fn is_forgotten(&self) -> bool {
        false
    }
    /// Writes all of `buf` at `at`.
    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()>;
    /// Makes content and size durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Has the bytes written soon, so that `sync` has less to wait for: a hint, which promises
    /// nothing and can't fail.
    fn write_soon(&self, _at: u64, _len: u64) {}
    fn len(&self) -> io::Result<u64>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `len` bytes at `at` without changing the size
    /// (fallocate, `FALLOC_FL_KEEP_SIZE`). Where the file system can't, this is success.
    fn reserve(&self, at: u64, len: u64) -> io::Result<()>;
    /// Frees the bytes; they read as zeros then (`FALLOC_FL_PUNCH_HOLE`).
    fn punch(&self, at: u64, len: u64) -> io::Result<()>;
    /// The next part at `at` or beyond that is no hole, from its begin to its end; `None` where
    /// only a hole follows. A disk that knows of no holes has none.
    fn next_data(&self, at: u64) -> io::Result<Option<Range<u64>>> {
        let len = self.len()?;
        Ok((at < len).then_some(at..len))
    }
    /// Bytes that the file takes on disk.
    fn allocated(&self) -> io::Result<u64>;
    /// Whether somebody outside this process has the file open or mapped. The caller has one handle
    /// of it and has lent none.
    fn is_held_elsewhere(&self) -> io::Result<bool>;
    /// The descriptor, where there is one: for passthrough, and for copies inside the kernel.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Reads exactly `buf.len()` bytes at `at`, or fails with `UnexpectedEof`.
pub fn read_exact_at(file: &dyn DiskFile, mut buf: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.read_at(buf, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                buf = &mut buf[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

/// Reads `len` bytes at `at`; an error where there are fewer.
pub(crate) fn read_file(file: &dyn DiskFile, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let mut bytes = file.read_new(len, at)?;
    while bytes.len() < len {
        let rest = file.read_new(len - bytes.len(), at + bytes.len() as u64)?;
        if rest.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&rest);
    }
    Ok(bytes)
}

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes `content` to `path` so that after a crash the old or the new content is there, whole.
pub fn replace(disk: &dyn Disk, path: &Path, content: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let dir = path.parent().unwrap_or(Path::new(""));
    let file = disk.open(&aside, Open::Any)?;
    file.set_len(0)?;
    file.write_at(content, 0)?;
    file.sync()?;
    disk.rename(&aside, path)?;
    disk.sync_dir(dir)
}
