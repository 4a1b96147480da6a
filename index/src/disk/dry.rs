//! A disk that reads through to another and keeps every change in memory: recovery can be tried on
//! a data directory without touching it.

use super::{Disk, DiskFile, Entry, Lock, Open, Space};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

const PAGE: u64 = 4096;

/// See the module.
#[derive(Debug)]
pub struct DryDisk {
    under: Arc<dyn Disk>,
    /// What a name means here, where it differs: a file, or nothing.
    names: Mutex<BTreeMap<PathBuf, Option<Arc<DryFile>>>>,
}

#[derive(Debug)]
struct DryFile {
    under: Option<Arc<dyn DiskFile>>,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    pages: BTreeMap<u64, Box<[u8]>>,
    len: u64,
    /// Bytes of the file below that still count: a cut is for good.
    under_len: u64,
}

impl DryDisk {
    pub fn new(under: Arc<dyn Disk>) -> Self {
        DryDisk { under, names: Mutex::default() }
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<Arc<DryFile>>>> {
        self.names.lock().expect("no holder of the names panics")
    }

    /// The file called `path`, taken over from below when it is first met.
    fn find(&self, path: &Path) -> io::Result<Option<Arc<DryFile>>> {
        if let Some(known) = self.names().get(path) {
            return Ok(known.clone());
        }
        let under = match self.under.open(path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let len = under.len()?;
        let changes = Changes { pages: BTreeMap::new(), len, under_len: len };
        let file = Arc::new(DryFile { under: Some(under), changes: Mutex::new(changes) });
        self.names().insert(path.to_owned(), Some(file.clone()));
        Ok(Some(file))
    }
}

impl DryFile {
    fn new() -> Self {
        let changes = Changes { pages: BTreeMap::new(), len: 0, under_len: 0 };
        DryFile { under: None, changes: Mutex::new(changes) }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().expect("no holder of the changes panics")
    }

    /// The bytes of a page as they are below.
    fn page_under(&self, number: u64, under_len: u64) -> io::Result<Box<[u8]>> {
        let mut page = vec![0; PAGE as usize].into_boxed_slice();
        let at = number * PAGE;
        let len = under_len.saturating_sub(at).min(PAGE) as usize;
        if let Some(under) = &self.under
            && len > 0
        {
            super::read_exact_at(&**under, &mut page[..len], at)?;
        }
        Ok(page)
    }

    fn change(
        &self,
        mut at: u64,
        end: u64,
        mut with: impl FnMut(&mut [u8], u64),
    ) -> io::Result<()> {
        let mut changes = self.changes();
        while at < end {
            let (number, inside) = (at / PAGE, at % PAGE);
            let n = (PAGE - inside).min(end - at);
            if !changes.pages.contains_key(&number) {
                let page = self.page_under(number, changes.under_len)?;
                changes.pages.insert(number, page);
            }
            let page = changes.pages.get_mut(&number).expect("just put in");
            with(&mut page[inside as usize..(inside + n) as usize], at);
            at += n;
        }
        Ok(())
    }
}

impl DiskFile for DryFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let changes = self.changes();
        let (number, inside) = (at / PAGE, (at % PAGE) as usize);
        let room = changes.len.saturating_sub(at).min(buf.len() as u64) as usize;
        let n = room.min(PAGE as usize - inside);
        match changes.pages.get(&number) {
            Some(page) => buf[..n].copy_from_slice(&page[inside..inside + n]),
            None => {
                let page = self.page_under(number, changes.under_len)?;
                buf[..n].copy_from_slice(&page[inside..inside + n]);
            }
        }
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        let end = at + buf.len() as u64;
        self.change(at, end, |page, from| {
            let from = (from - at) as usize;
            page.copy_from_slice(&buf[from..from + page.len()]);
        })?;
        let mut changes = self.changes();
        changes.len = changes.len.max(end);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.changes().len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let old = self.changes().len;
        if len < old {
            self.change(len, len.next_multiple_of(PAGE).min(old), |page, _| page.fill(0))?;
        }
        let mut changes = self.changes();
        changes.under_len = changes.under_len.min(len);
        changes.pages.retain(|number, _| number * PAGE < len);
        changes.len = len;
        Ok(())
    }

    fn reserve(&self, _at: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    /// What is given up reads as before: a look at the bytes must not cost memory.
    fn punch(&self, _at: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.under.as_ref().map_or(Ok(0), |under| under.allocated())
    }

    fn is_held_elsewhere(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Disk for DryDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let file = match (self.find(path)?, how) {
            (Some(_), Open::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => file,
            (None, Open::Read | Open::Existing) => return Err(io::ErrorKind::NotFound.into()),
            (None, Open::New | Open::Any) => {
                let file = Arc::new(DryFile::new());
                self.names().insert(path.to_owned(), Some(file.clone()));
                file
            }
        };
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.find(from)?.ok_or(io::ErrorKind::NotFound)?;
        let mut names = self.names();
        names.insert(from.to_owned(), None);
        names.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.find(path)?.ok_or(io::ErrorKind::NotFound)?;
        self.names().insert(path.to_owned(), None);
        Ok(())
    }

    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = match self.under.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            other => other?,
        };
        for (path, file) in self.names().iter().filter(|(path, _)| path.parent() == Some(dir)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            entries.retain(|entry| entry.name != name);
            if let Some(file) = file {
                let modified = std::time::UNIX_EPOCH;
                let len = file.changes().len;
                entries.push(Entry { name, is_dir: false, len, modified });
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        match self.names().get(path) {
            None => self.under.stat(path),
            Some(file) => Ok(file.as_ref().map(|file| Entry {
                name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                is_dir: false,
                len: file.changes().len,
                modified: std::time::UNIX_EPOCH,
            })),
        }
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn place(&self, path: &Path) -> PathBuf {
        self.under.place(path)
    }

    fn space(&self) -> io::Result<Space> {
        self.under.space()
    }

    fn boot_id(&self) -> io::Result<String> {
        self.under.boot_id()
    }

    /// Nobody else may change what is looked at; who may only read it can see to that.
    fn lock(&self, path: &Path) -> io::Result<Lock> {
        self.under.lock_shared(path)
    }
}
