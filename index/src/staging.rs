//! Where content waits until it is complete, and until the mirror above it is synced.
//!
//! Content over [`crate::limits::INLINE_MAX`] lies here, and its record names the place. Content
//! that came in one piece goes to a shared file and stays in memory until a sync of that file
//! returned; content that came as a stream has a file of its own, synced before its record. A file
//! lives until a checkpoint lies beyond the last record that names it, and is then used again.

use crate::Error;
use crate::disk::{Disk, DiskFile, Open};
use crate::limits;
use crate::record::{Position, Staged};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The directory of staging files, below the data directory.
pub const DIR: &str = "staging";

/// See the module.
#[derive(Debug)]
pub struct Staging {
    disk: Arc<dyn Disk>,
    inner: Mutex<Inner>,
    /// Held by the one sync that is under way.
    syncing: Mutex<()>,
    /// Bytes of content that wait in memory for a sync.
    unsynced_len: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    /// The file that takes the next content in one piece, and where.
    shared: Option<(u64, u64)>,
    live: BTreeMap<u64, Live>,
    pool: Vec<(u64, Arc<dyn DiskFile>)>,
    unsynced: Vec<Unsynced>,
    is_new: bool,
    since_checkpoint: u64,
    /// The last sync failed: what it dropped is not dirty any more, so that the next one would
    /// succeed and write nothing.
    has_failed: bool,
}

#[derive(Debug)]
struct Live {
    file: Arc<dyn DiskFile>,
    /// Contents placed and not yet recorded.
    pending: u32,
    last_record: Option<Position>,
}

#[derive(Debug)]
struct Unsynced {
    file: u64,
    offset: u64,
    content: Bytes,
}

/// The path of a staging file.
pub(crate) fn path_of(file: u64) -> PathBuf {
    Path::new(DIR).join(format!("{file:016x}"))
}

/// Content in a staging file, complete, and not yet named by a record. Dropping it gives it up.
#[derive(Debug)]
pub struct Placed {
    staging: Arc<Staging>,
    file: Arc<dyn DiskFile>,
    pub(crate) at: Staged,
    pub(crate) len: u64,
    pub(crate) crc: u32,
}

impl Placed {
    /// A record at `position` names the content now.
    pub(crate) fn recorded(&self, position: Position) {
        if let Some(live) = self.staging.inner().live.get_mut(&self.at.file) {
            live.last_record = live.last_record.max(Some(position));
        }
    }

    /// Reads a part of the content, from `at` on.
    pub(crate) fn read(&self, at: u64, buf: &mut [u8]) -> Result<(), Error> {
        crate::disk::read_exact_at(&*self.file, buf, self.at.offset + at)
            .map_err(Error::disk("read", path_of(self.at.file)))
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let mut inner = self.staging.inner();
        if let Some(live) = inner.live.get_mut(&self.at.file) {
            live.pending -= 1;
        }
        inner.release(Position::default());
    }
}

impl Staging {
    /// An empty staging area. Files that an earlier life left must be gone.
    pub fn new(disk: Arc<dyn Disk>) -> Self {
        let inner = Mutex::new(Inner { next: 1, ..Inner::default() });
        Staging { disk, inner, syncing: Mutex::default(), unsynced_len: AtomicU64::new(0) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of staging panics")
    }

    /// Writes content in one piece. It is kept in memory until a sync covered it.
    pub fn place(self: &Arc<Self>, content: &Bytes, crc: u32) -> Result<Placed, Error> {
        let len = content.len() as u64;
        let (id, offset) = self.inner().shared.unwrap_or_default();
        let (id, offset, file) = match self.claim(id, offset, len) {
            Some(file) => (id, offset, file),
            None => {
                let (id, file) = self.open_next()?;
                self.inner().shared = Some((id, len));
                (id, 0, file)
            }
        };
        let placed = Placed {
            staging: self.clone(),
            file: file.clone(),
            at: Staged { file: id, offset },
            len,
            crc,
        };
        file.write_at(content, offset).map_err(Error::disk("write", path_of(id)))?;
        let mut inner = self.inner();
        inner.since_checkpoint += len;
        self.unsynced_len.fetch_add(len, Ordering::Relaxed);
        inner.unsynced.push(Unsynced { file: id, offset, content: content.clone() });
        Ok(placed)
    }

    /// Takes room in the shared file, if it has some.
    fn claim(&self, id: u64, offset: u64, len: u64) -> Option<Arc<dyn DiskFile>> {
        let mut inner = self.inner();
        if inner.shared != Some((id, offset)) || offset + len > limits::STAGING_FILE_LEN {
            return None;
        }
        let live = inner.live.get_mut(&id)?;
        live.pending += 1;
        let file = live.file.clone();
        inner.shared = Some((id, offset + len));
        Some(file)
    }

    /// A file of its own, for content that comes as a stream.
    pub fn begin(self: &Arc<Self>) -> Result<Upload, Error> {
        let (id, file) = self.open_next()?;
        let at = Staged { file: id, offset: 0 };
        let placed = Placed { staging: self.clone(), file, at, len: 0, crc: 0 };
        Ok(Upload { placed, asked: 0 })
    }

    /// A pooled or a new file, with one content pending.
    fn open_next(&self) -> Result<(u64, Arc<dyn DiskFile>), Error> {
        let mut inner = self.inner();
        let (id, file) = match inner.pool.pop() {
            Some(pooled) => pooled,
            None => {
                let id = inner.next;
                let path = path_of(id);
                let file = self.disk.open(&path, Open::Any).map_err(Error::disk("open", &path))?;
                inner.next += 1;
                inner.is_new = true;
                (id, file)
            }
        };
        inner.live.insert(id, Live { file: file.clone(), pending: 1, last_record: None });
        Ok((id, file))
    }

    /// Bytes that wait in memory for a sync.
    pub fn unsynced_len(&self) -> u64 {
        self.unsynced_len.load(Ordering::Relaxed)
    }

    pub fn since_checkpoint(&self) -> u64 {
        self.inner().since_checkpoint
    }

    /// Makes durable what was placed before the call. A failing sync is tried once more after the
    /// content was written again; what fails then stays in memory, and the next call begins with
    /// writing it.
    pub fn sync(&self) -> Result<(), Error> {
        let _only = self.syncing.lock().expect("no sync panics");
        let (count, files, is_new, has_failed) = {
            let mut inner = self.inner();
            let mut files: Vec<u64> = inner.unsynced.iter().map(|unsynced| unsynced.file).collect();
            files.sort_unstable();
            files.dedup();
            let files: Vec<(u64, Arc<dyn DiskFile>)> = files
                .into_iter()
                .filter_map(|id| inner.live.get(&id).map(|live| (id, live.file.clone())))
                .collect();
            (inner.unsynced.len(), files, std::mem::take(&mut inner.is_new), inner.has_failed)
        };
        if is_new && let Err(error) = self.disk.sync_dir(Path::new(DIR)) {
            self.inner().is_new = true;
            return Err(Error::disk("sync", DIR)(error));
        }
        for (id, file) in &files {
            if has_failed {
                self.rewrite(*id, &**file)?;
            }
            if let Err(first) = file.sync() {
                tracing::warn!(error = %first, "a staging file's sync failed; it is written again");
                self.inner().has_failed = true;
                self.rewrite(*id, &**file)?;
                file.sync().map_err(Error::disk("sync", path_of(*id)))?;
            }
        }
        let synced: Vec<Unsynced> = {
            let mut inner = self.inner();
            inner.has_failed = false;
            inner.unsynced.drain(..count).collect()
        };
        let synced: u64 = synced.iter().map(|synced| synced.content.len() as u64).sum();
        self.unsynced_len.fetch_sub(synced, Ordering::Relaxed);
        Ok(())
    }

    fn rewrite(&self, id: u64, file: &dyn DiskFile) -> Result<(), Error> {
        let inner = self.inner();
        inner.unsynced.iter().filter(|unsynced| unsynced.file == id).try_for_each(|unsynced| {
            file.write_at(&unsynced.content, unsynced.offset)
                .map_err(Error::disk("write", path_of(id)))
        })
    }

    /// A checkpoint lies at `start`: files that only earlier records name are free again.
    pub fn checkpointed(&self, start: Position) -> Result<(), Error> {
        let surplus = {
            let mut inner = self.inner();
            inner.since_checkpoint = 0;
            inner.release(start);
            let keep = inner.pool.len().min(limits::STAGING_POOL);
            inner.pool.split_off(keep)
        };
        self.remove(surplus)
    }

    /// Gives the room of idle files back: the disk is full.
    pub fn shrink(&self) -> Result<(), Error> {
        let surplus = std::mem::take(&mut self.inner().pool);
        self.remove(surplus)
    }

    fn remove(&self, files: Vec<(u64, Arc<dyn DiskFile>)>) -> Result<(), Error> {
        files.into_iter().try_for_each(|(id, _)| {
            let path = path_of(id);
            self.disk.remove(&path).map_err(Error::disk("remove", &path))
        })
    }
}

impl Inner {
    /// Moves to the pool what nothing needs: no content pending, no record at `start` or later, and
    /// not the shared file.
    fn release(&mut self, start: Position) {
        let shared = self.shared.map(|(id, _)| id);
        let unsynced = &self.unsynced;
        let free: Vec<u64> = self
            .live
            .iter()
            .filter(|(id, live)| {
                live.pending == 0
                    && live.last_record.is_none_or(|last| last < start)
                    && Some(**id) != shared
                    && !unsynced.iter().any(|unsynced| unsynced.file == **id)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in free {
            let live = self.live.remove(&id).expect("just seen");
            self.pool.push((id, live.file));
        }
    }
}

/// Content that comes as a stream into its own file. Dropping it gives it up.
#[derive(Debug)]
pub struct Upload {
    placed: Placed,
    /// Up to here the disk was asked to write.
    asked: u64,
}

impl Upload {
    /// Writes the next piece. Blocks on the disk.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), Error> {
        let path = path_of(self.placed.at.file);
        self.placed.file.write_at(piece, self.placed.len).map_err(Error::disk("write", path))?;
        self.placed.crc = crc32c::crc32c_append(self.placed.crc, piece);
        self.placed.len += piece.len() as u64;
        let fresh = self.placed.len - self.asked;
        if fresh >= limits::WRITTEN_SOON_LEN {
            self.placed.file.write_soon(self.asked, fresh);
            self.asked = self.placed.len;
        }
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.placed.len
    }

    pub fn is_empty(&self) -> bool {
        self.placed.len == 0
    }

    /// The content is complete: it is synced, so that its record may follow. Blocks on the disk.
    pub fn finish(self) -> Result<Placed, Error> {
        let id = self.placed.at.file;
        self.placed.file.sync().map_err(Error::disk("sync", path_of(id)))?;
        let staging = self.placed.staging.clone();
        // Whoever takes the mark of new files syncs their names before anybody else goes on.
        let _only = staging.syncing.lock().expect("no sync panics");
        let is_new = std::mem::take(&mut staging.inner().is_new);
        if is_new && let Err(error) = staging.disk.sync_dir(Path::new(DIR)) {
            staging.inner().is_new = true;
            return Err(Error::disk("sync", DIR)(error));
        }
        staging.inner().since_checkpoint += self.placed.len;
        Ok(self.placed)
    }
}
