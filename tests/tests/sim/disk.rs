//! The local disk of one machine: each operation is a line of the trace, and a machine that died
//! is told at once. Faults are [aimed](Aims) at operations to come.

mod aim;

pub use aim::{Aim, Fate, Part};

use crate::trace::Trace;
use aim::Aims;
use index::disk::{Crash, Disk, DiskFile, Entry, ForgetfulDisk, Lock, Open, Space};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// See the module. Clones are one disk.
#[derive(Debug, Clone)]
pub struct SimDisk {
    inner: ForgetfulDisk,
    name: &'static str,
    trace: Trace,
    died: Arc<Notify>,
    aims: Aims,
}

impl SimDisk {
    pub fn new(name: &'static str, trace: &Trace) -> Self {
        let inner = ForgetfulDisk::new();
        let (died, aims) = (Arc::default(), Aims::default());
        SimDisk { inner, name, trace: trace.clone(), died, aims }
    }

    pub fn inner(&self) -> &ForgetfulDisk {
        &self.inner
    }

    /// What becomes of an operation to come.
    pub fn aim(&self, aim: Aim, fate: Fate) {
        self.trace.line(format_args!("{} aim {aim:?} {fate:?}", self.name));
        self.aims.add(aim, fate);
    }

    /// When an operation last failed as it was told to.
    pub fn last_failure(&self) -> Option<Instant> {
        self.aims.last_failure()
    }

    /// Waits until an operation failed as it was told to.
    pub async fn failed(&self) {
        self.aims.failed().await;
    }

    /// No failure is to come any more, and there is room.
    pub fn heal(&self) {
        self.aims.clear();
        self.inner.forgive();
        self.inner.set_capacity(None);
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
        let inner = self.inner.crash(crash);
        SimDisk { inner, died: Arc::default(), aims: Aims::default(), ..self.clone() }
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
        self.aims.meet(&self.inner, "open", path)?;
        let opened = self.inner.open(path, how);
        let file = self.note(format_args!("open {} {how:?}", path.display()), opened)?;
        Ok(Arc::new(SimFile { file, path: path.to_owned(), disk: self.clone() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.aims.meet(&self.inner, "rename", to)?;
        let done = self.inner.rename(from, to);
        self.note(format_args!("rename {} {}", from.display(), to.display()), done)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.aims.meet(&self.inner, "remove", path)?;
        let done = self.inner.remove(path);
        self.note(format_args!("remove {}", path.display()), done)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.aims.meet(&self.inner, "create_dir", path)?;
        let done = self.inner.create_dir(path);
        self.note(format_args!("create_dir {}", path.display()), done)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.aims.meet(&self.inner, "list", dir)?;
        let done = self.inner.list(dir);
        self.note(format_args!("list {}", dir.display()), done)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        let done = self.inner.stat(path);
        self.note(format_args!("stat {}", path.display()), done)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.aims.meet(&self.inner, "sync_dir", dir)?;
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
    /// Does an operation, unless it is to fail, and notes it.
    fn op<T>(
        &self,
        what: &'static str,
        (at, len): (u64, u64),
        op: impl FnOnce(&dyn DiskFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let SimDisk { inner, aims, .. } = &self.disk;
        let done = aims.meet(inner, what, &self.path).and_then(|()| op(&*self.file));
        self.disk.note(format_args!("{what} {} {at}+{len}", self.path.display()), done)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.op("read", (at, buf.len() as u64), |file| file.read_at(buf, at))
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.op("write", (at, buf.len() as u64), |file| file.write_at(buf, at))
    }

    fn sync(&self) -> io::Result<()> {
        self.op("sync", (0, 0), |file| file.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.op("set_len", (len, 0), |file| file.set_len(len))
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.op("reserve", (at, len), |file| file.reserve(at, len))
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        self.op("punch", (at, len), |file| file.punch(at, len))
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
