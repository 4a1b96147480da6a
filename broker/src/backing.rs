//! The key space's file, on the disk of the data directory.

use crate::Error;
use cluster::{Backing, Change, Embedded, Expect, KeySpace, Template};
use index::disk::{Disk, DiskFile, DryDisk, Open, read_exact_at};
use protocol::{Journal, JournalSpec, Life, Selector};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file of the embedded key space, below the data directory.
pub const KEY_SPACE: &str = "keyspace.redb";

/// The journals of the key space in a data directory, by their lives; nothing is changed there.
/// None where there is no key space yet.
pub fn names(disk: Arc<dyn Disk>) -> Result<BTreeMap<Life, Journal>, Error> {
    let fault = |source| index::Error::Disk { operation: "open", path: KEY_SPACE.into(), source };
    if disk.stat(Path::new(KEY_SPACE)).map_err(fault)?.is_none() {
        return Ok(BTreeMap::new());
    }
    let backing = FileBacking::open(&DryDisk::new(disk)).map_err(fault)?;
    let keys = Embedded::open(Arc::new(backing), 0)?;
    let entries = keys.list(&Selector::default()).entries;
    Ok(entries.iter().map(|entry| (entry.life, entry.spec.name.clone())).collect())
}

/// A key space that was made anew: its file, and the lives that journals have in it.
#[derive(Debug)]
pub struct Rebuilt {
    pub image: Vec<u8>,
    pub lives: BTreeMap<Journal, Life>,
}

/// Makes a key space of journals of which only the names are known, by the built-in template. Needs
/// a tokio runtime.
pub async fn rebuild(
    names: impl IntoIterator<Item = Journal>,
    entropy: u64,
) -> Result<Rebuilt, Error> {
    let keys = Embedded::in_memory(entropy);
    for name in names {
        let spec = JournalSpec { name, ..Template::built_in().spec() };
        keys.apply(vec![Change::Upsert { spec, expect: Expect::Absent }]).await?;
    }
    let entries = keys.list(&Selector::default()).entries;
    let lives = entries.iter().map(|entry| (entry.spec.name.clone(), entry.life)).collect();
    Ok(Rebuilt { image: keys.image().await?, lives })
}

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
