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
/// `None` where there is no key space.
pub fn names(disk: Arc<dyn Disk>) -> Result<Option<BTreeMap<Life, Journal>>, Error> {
    let backing = Arc::new(FileBacking::open(&DryDisk::new(disk)).map_err(unopened)?);
    if Embedded::is_blank(backing.clone()).map_err(unopened)? {
        return Ok(None);
    }
    let keys = Embedded::open(backing, 0)?;
    let entries = keys.list(&Selector::default()).entries;
    Ok(Some(entries.iter().map(|entry| (entry.life, entry.spec.name.clone())).collect()))
}

/// Opens the key space of a data directory, or makes the one of a new directory: `has_journals`
/// says that it is none.
pub(crate) fn open(disk: &dyn Disk, entropy: u64, has_journals: bool) -> Result<Embedded, Error> {
    let backing = Arc::new(FileBacking::open(disk).map_err(unopened)?);
    if has_journals && Embedded::is_blank(backing.clone()).map_err(unopened)? {
        return Err(cluster::Error::Gone.into());
    }
    Ok(Embedded::open(backing, entropy)?)
}

fn unopened(source: io::Error) -> Error {
    index::Error::Disk { operation: "open", path: KEY_SPACE.into(), source }.into()
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
