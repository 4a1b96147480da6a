//! The bytes under the embedded key space: one file, through a seam that tests can fill.

use std::fmt::Debug;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// One file that is read and written at positions. Calls block; the caller picks the thread.
#[expect(clippy::len_without_is_empty, reason = "the length of a file, which may fail")]
pub trait Backing: Send + Sync + Debug {
    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills `buf` from position `at`; an error if the file ends before.
    fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Writes all of `buf` at position `at`.
    fn write(&self, at: u64, buf: &[u8]) -> io::Result<()>;

    /// Returns when all that was written, and the length, survives a power cut.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
}

/// A file in memory, for tests and simulations.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: Mutex<Vec<u8>>,
}

impl Memory {
    pub fn new(bytes: Vec<u8>) -> Self {
        Memory { bytes: Mutex::new(bytes) }
    }

    /// A copy of what the file holds, synced or not.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().expect("no holder panics")
    }
}

impl Backing for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().len() as u64)
    }

    fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.lock();
        let from = position(at)?;
        let source = from.checked_add(buf.len()).and_then(|to| bytes.get(from..to));
        buf.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, at: u64, buf: &[u8]) -> io::Result<()> {
        let mut bytes = self.lock();
        let from = position(at)?;
        let to = from.checked_add(buf.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if to > bytes.len() {
            bytes.resize(to, 0);
        }
        bytes[from..to].copy_from_slice(buf);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.lock().resize(position(len)?, 0);
        Ok(())
    }
}

fn position(at: u64) -> io::Result<usize> {
    usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

/// A [`Backing`] as redb wants it. It remembers that a sync failed: the kernel then drops the pages
/// it could not write, or calls them clean, and what is read back may never reach the disk.
#[derive(Debug, Clone)]
pub(crate) struct Adapter {
    backing: Arc<dyn Backing>,
    is_unsynced: Arc<AtomicBool>,
}

impl Adapter {
    pub fn new(backing: Arc<dyn Backing>) -> Self {
        Adapter { backing, is_unsynced: Arc::default() }
    }

    pub fn is_unsynced(&self) -> bool {
        self.is_unsynced.load(Ordering::Acquire)
    }

    /// Empties a file whose creation was cut short.
    ///
    /// redb writes its first bytes last, after a sync, and refuses a file without them. Such a file
    /// holds nothing yet when all that follows its header is zero; any other byte there means
    /// damage, which is left for redb to name.
    pub fn clear_unfinished(&self) -> io::Result<()> {
        if self.backing.len()? > 0 && self.is_blank()? {
            self.backing.set_len(0)?;
        }
        Ok(())
    }

    /// Whether nothing was ever committed to the file.
    pub fn is_blank(&self) -> io::Result<bool> {
        const HEADER: u64 = 512;
        let len = self.backing.len()?;
        Ok(self.is_zero(0, len.min(9))? && self.is_zero(len.min(HEADER), len)?)
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; position(self.backing.len()?)?];
        self.backing.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes the whole file again, and syncs it. A sync that failed in an earlier process left its
    /// pages clean in the page cache and nowhere else: what is read there is as good as lost, and
    /// redb would build on it.
    pub fn renew(&self) -> io::Result<()> {
        const STEP: u64 = 1 << 20;
        let len = self.backing.len()?;
        let mut buf = vec![0; position(len.min(STEP))?];
        let mut at = 0;
        while at < len {
            let step = (len - at).min(STEP);
            let part = &mut buf[..position(step)?];
            self.backing.read(at, part)?;
            self.backing.write(at, part)?;
            at += step;
        }
        self.backing.sync()
    }

    fn is_zero(&self, begin: u64, end: u64) -> io::Result<bool> {
        let mut buf = [0; 4096];
        let mut at = begin;
        while at < end {
            let step = (end - at).min(buf.len() as u64);
            let part = &mut buf[..position(step)?];
            self.backing.read(at, part)?;
            if part.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += step;
        }
        Ok(true)
    }
}

impl redb::StorageBackend for Adapter {
    fn len(&self) -> io::Result<u64> {
        self.backing.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backing.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.backing.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.backing.sync();
        if synced.is_err() {
            self.is_unsynced.store(true, Ordering::Release);
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backing.write(offset, data)
    }
}
