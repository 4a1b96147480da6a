//! The key space's file, on the disk of the data directory.

use cluster::Backing;
use index::disk::{Disk, DiskFile, Open, read_exact_at};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file of the embedded key space, below the data directory.
pub(crate) const KEY_SPACE: &str = "keyspace.redb";

/// A file of a disk as the backing of a key space.
#[derive(Debug)]
pub(crate) struct FileBacking {
    file: Arc<dyn DiskFile>,
}

impl FileBacking {
    /// Opens the file, or makes it, durably.
    pub fn open(disk: &dyn Disk) -> io::Result<Self> {
        let file = disk.open(Path::new(KEY_SPACE), Open::Any)?;
        disk.sync_dir(Path::new(""))?;
        Ok(FileBacking { file })
    }
}

impl Backing for FileBacking {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        read_exact_at(&*self.file, buf, at)
    }

    fn write(&self, at: u64, buf: &[u8]) -> io::Result<()> {
        self.file.write_at(buf, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}
