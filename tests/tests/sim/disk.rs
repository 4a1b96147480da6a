//! The local disk of one machine: each operation is a line of the trace, and a machine that died
//! is told at once.

use crate::trace::Trace;
use index::disk::{Crash, Disk, DiskFile, Entry, ForgetfulDisk, Lock, Open, Space};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;

/// See the module. Clones are one disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    inner: ForgetfulDisk,
    name: &'static str,
    trace: Trace,
    died: Arc<Notify>,
}

impl SimDisk {
    pub fn new(name: &'static str, trace: &Trace) -> Self {
        let inner = ForgetfulDisk::new();
        SimDisk { inner, name, trace: trace.clone(), died: Arc::default() }
    }

    pub fn inner(&self) -> &ForgetfulDisk {
        &self.inner
    }

    /// Waits until the disk has stopped at an operation.
    pub async fn died(&self) {
        self.died.notified().await;
    }

    /// The disk as the next process finds it; this one fails everything from here on.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> SimDisk {
        self.inner.stop();
        self.trace.line(format_args!("{} {crash:?}", self.name));
        SimDisk { inner: self.inner.crash(crash), died: Arc::default(), ..self.clone() }
    }

    fn note<T>(&self, what: std::fmt::Arguments, done: io::Result<T>) -> io::Result<T> {
        match &done {
            Ok(_) => self.trace.line(format_args!("{} {what}", self.name)),
            // What a dead machine still tries is no event.
            Err(_) if self.inner.is_stopped() => self.died.notify_one(),
            Err(error) => self.trace.line(format_args!("{} {what}: {error}", self.name)),
        }
        done
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let opened = self.inner.open(path, how);
        let file = self.note(format_args!("open {} {how:?}", path.display()), opened)?;
        Ok(Arc::new(SimFile { file, path: path.to_owned(), disk: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let done = self.inner.rename(from, to);
        self.note(format_args!("rename {} {}", from.display(), to.display()), done)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let done = self.inner.remove(path);
        self.note(format_args!("remove {}", path.display()), done)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let done = self.inner.create_dir(path);
        self.note(format_args!("create_dir {}", path.display()), done)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let done = self.inner.list(dir);
        self.note(format_args!("list {}", dir.display()), done)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        let done = self.inner.stat(path);
        self.note(format_args!("stat {}", path.display()), done)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let done = self.inner.sync_dir(dir);
        self.note(format_args!("sync_dir {}", dir.display()), done)
    }

    fn space(&self) -> io::Result<Space> {
        self.inner.space()
    }

    fn boot_id(&self) -> io::Result<String> {
        self.inner.boot_id()
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.inner.lock(path)
    }
}

#[derive(Debug)]
struct SimFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    disk: SimDisk,
}

impl SimFile {
    fn note<T>(&self, what: &str, at: u64, len: u64, done: io::Result<T>) -> io::Result<T> {
        self.disk.note(format_args!("{what} {} {at}+{len}", self.path.display()), done)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let (len, done) = (buf.len() as u64, self.file.read_at(buf, at));
        self.note("read", at, len, done)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        let done = self.file.write_at(buf, at);
        self.note("write", at, buf.len() as u64, done)
    }

    fn sync(&self) -> io::Result<()> {
        self.note("sync", 0, 0, self.file.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.note("set_len", len, 0, self.file.set_len(len))
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.note("reserve", at, len, self.file.reserve(at, len))
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.note("punch", at, len, self.file.punch(at, len))
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }

    fn is_held_elsewhere(&self) -> io::Result<bool> {
        self.file.is_held_elsewhere()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
