//! The local bytes of one journal: byte *o* of the journal is at *o - first* of a sparse file.
//!
//! The file with `first` 0 has the journal's bytes at their own offsets and is the one that a
//! passthrough reader may be given. Bytes beyond a gap, or beyond what a file can hold, go to a
//! further file, named by its first offset. What of a file is the journal's is what the commit log
//! says, never what the file system calls data.

use crate::Error;
use crate::disk::{Disk, DiskFile, Open, remove_if_there};
use crate::limits::{BLOCK, MIRROR_FILE_MAX, RESERVE_MAX, RESERVE_MIN, RESTED_TICKS};
use protocol::{Life, Offset, Span};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// The directory of mirrors, below the data directory.
pub const DIR: &str = "mirror";

/// See the module.
#[derive(Debug)]
pub struct Mirror {
    disk: Arc<dyn Disk>,
    life: Life,
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    /// By first offset; opened when first used.
    open: BTreeMap<u64, Option<Arc<dyn DiskFile>>>,
    /// Bytes were written since the last sync.
    is_dirty: bool,
    /// A sync failed: what it dropped has to be written again before another one counts.
    has_failed: bool,
    /// A file was made since the directory was last synced.
    is_new: bool,
    /// Up to here space is reserved.
    reserved: u64,
    /// Ticks since a file was last used.
    rested: u32,
}

/// The offset at which a file begins, and the file.
type Held = (u64, Arc<dyn DiskFile>);

/// A part of a file.
struct Place {
    file: Arc<dyn DiskFile>,
    /// The file begins at this offset.
    first: u64,
    at: u64,
    len: usize,
}

/// The path of a mirror file.
pub fn path_of(life: Life, first: u64) -> PathBuf {
    let name = if first == 0 { life.to_string() } else { format!("{life}.{first:016x}") };
    Path::new(DIR).join(name)
}

/// Whose file `name` is, and which offset it begins at.
pub fn parse_name(name: &str) -> Option<(Life, u64)> {
    match name.split_once('.') {
        None => Some((name.parse().ok()?, 0)),
        Some((life, first)) => Some((life.parse().ok()?, u64::from_str_radix(first, 16).ok()?)),
    }
}

impl Mirror {
    /// A mirror over the files that begin at `firsts`, none of which is touched yet.
    pub fn new(disk: Arc<dyn Disk>, life: Life, firsts: impl IntoIterator<Item = u64>) -> Self {
        let open = firsts.into_iter().map(|first| (first, None)).collect();
        Mirror { disk, life, files: Mutex::new(Files { open, ..Files::default() }) }
    }

    /// An empty mirror that takes bytes at any offset in any order, as a cache does: one file from
    /// 0 on, which replaces what is there of this life.
    pub fn sparse(disk: Arc<dyn Disk>, life: Life) -> Result<Self, Error> {
        let path = path_of(life, 0);
        remove_if_there(&*disk, &path).map_err(Error::disk("remove", &path))?;
        disk.open(&path, Open::New).map_err(Error::disk("make", path))?;
        Ok(Mirror::new(disk, life, [0]))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().expect("no holder of a mirror's files panics")
    }

    /// The file that holds `offset` and the offset at which it begins, made if `create`.
    fn file(&self, offset: u64, create: bool) -> Result<Option<Held>, Error> {
        let mut files = self.files();
        files.rested = 0;
        let known = files.open.range(..=offset).next_back().map(|(first, _)| *first);
        let first = match known {
            Some(first) if offset - first < MIRROR_FILE_MAX => first,
            _ if create => offset / BLOCK * BLOCK,
            _ => return Ok(None),
        };
        if let Some(Some(file)) = files.open.get(&first) {
            return Ok(Some((first, file.clone())));
        }
        let path = path_of(self.life, first);
        // A file that is known and gone must not come back empty.
        let is_new = create && known != Some(first);
        let how = if is_new { Open::Any } else { Open::Existing };
        let file = match self.disk.open(&path, how) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !create => {
                return Ok(None);
            }
            other => other.map_err(Error::disk("open", &path))?,
        };
        files.is_new |= is_new;
        files.open.insert(first, Some(file.clone()));
        Ok(Some((first, file)))
    }

    fn file_made(&self, offset: u64) -> Result<Held, Error> {
        Ok(self.file(offset, true)?.expect("a file is made where there is none"))
    }

    /// Bytes after a gap begin at `offset`: they go to a file of their own, unless they share a
    /// block with what is there.
    pub fn begin_file(&self, offset: Offset) -> Result<(), Error> {
        let first = offset.as_u64() / BLOCK * BLOCK;
        let ends_before = match self.files().open.keys().next_back() {
            Some(last) => *last < first,
            None => first > 0,
        };
        if !ends_before || self.extents()?.iter().any(|span| span.end().as_u64() > first) {
            return Ok(());
        }
        let path = path_of(self.life, first);
        let file = self.disk.open(&path, Open::Any).map_err(Error::disk("open", &path))?;
        let mut files = self.files();
        files.open.insert(first, Some(file));
        files.is_new = true;
        Ok(())
    }

    /// Reserves space for `span`, and ahead of it by what is there; `Full` when there is none.
    pub fn reserve(&self, span: Span) -> Result<(), Error> {
        let end = span.end().as_u64();
        if end <= self.files().reserved {
            return Ok(());
        }
        let (first, file) = self.file_made(span.begin().as_u64())?;
        let begin = span.begin().as_u64() - first;
        let ahead = (begin / 8).clamp(RESERVE_MIN, RESERVE_MAX);
        let wanted = span.len().max(ahead);
        let reserved = match file.reserve(begin, wanted) {
            Ok(()) => wanted,
            Err(_) => {
                let exactly = file.reserve(begin, span.len());
                exactly.map_err(|error| self.no_space(span.len(), error))?;
                span.len()
            }
        };
        self.files().reserved = span.begin().as_u64() + reserved;
        Ok(())
    }

    fn no_space(&self, needed: u64, error: std::io::Error) -> Error {
        if error.kind() == std::io::ErrorKind::StorageFull {
            let free = self.disk.space().map_or(0, |space| space.free);
            return Error::Full { needed, free };
        }
        Error::disk("reserve space in", path_of(self.life, 0))(error)
    }

    /// Writes `content` at `offset`.
    pub fn write(&self, mut offset: Offset, mut content: &[u8]) -> Result<(), Error> {
        while !content.is_empty() {
            let (first, file) = self.file_made(offset.as_u64())?;
            let at = offset.as_u64() - first;
            let room = usize::try_from(MIRROR_FILE_MAX - at).unwrap_or(usize::MAX);
            let (part, rest) = content.split_at(content.len().min(room));
            let written = file.write_at(part, at);
            // After the write: a sync that begins before it must not take the mark away.
            self.files().is_dirty = true;
            written.map_err(|error| Error::disk("write", path_of(self.life, first))(error))?;
            offset = offset.plus(part.len() as u64);
            content = rest;
        }
        Ok(())
    }

    /// Has what was written there written to the disk soon, so that the next sync has less to wait
    /// for: a hint, as [`DiskFile::write_soon`].
    pub fn write_soon(&self, offset: Offset, len: usize) {
        if let Ok(place) = self.place(offset, len) {
            place.file.write_soon(place.at, place.len as u64);
        }
    }

    /// Reads up to `buf.len()` bytes at `offset`, which the caller knows to be local. May stop at
    /// the end of a file.
    pub fn read(&self, offset: Offset, buf: &mut [u8]) -> Result<usize, Error> {
        let place = self.place(offset, buf.len())?;
        let n = place.file.read_at(&mut buf[..place.len], place.at);
        n.map_err(|error| Error::disk("read", path_of(self.life, place.first))(error))
    }

    /// As [`Mirror::read`], into memory of its own.
    pub fn read_new(&self, offset: Offset, len: usize) -> Result<Vec<u8>, Error> {
        let place = self.place(offset, len)?;
        let bytes = place.file.read_new(place.len, place.at);
        bytes.map_err(|error| Error::disk("read", path_of(self.life, place.first))(error))
    }

    /// Whether such a read would likely not wait for the disk.
    pub fn is_cached(&self, offset: Offset, len: usize) -> bool {
        self.place(offset, len).is_ok_and(|place| place.file.is_cached(place.at, place.len))
    }

    /// Where `offset` is, and how much of `len` the same file may have from there on.
    fn place(&self, offset: Offset, len: usize) -> Result<Place, Error> {
        let Some((first, file)) = self.file(offset.as_u64(), false)? else {
            return Err(Error::NotLocal { life: self.life, offset });
        };
        let at = offset.as_u64() - first;
        let room = usize::try_from(MIRROR_FILE_MAX - at).unwrap_or(usize::MAX);
        Ok(Place { file, first, at, len: len.min(room) })
    }

    /// The CRC32C of a local span.
    pub fn checksum(&self, span: Span) -> Result<u32, Error> {
        let mut crc = 0;
        let mut at = span.begin();
        let mut buf = vec![0; span.len().min(1 << 20) as usize];
        while at < span.end() {
            let len = span.end().since(at).min(buf.len() as u64) as usize;
            let n = self.read(at, &mut buf[..len])?;
            if n == 0 {
                let gone = std::io::ErrorKind::UnexpectedEof.into();
                return Err(Error::disk("read", path_of(self.life, 0))(gone));
            }
            crc = crc32c::crc32c_append(crc, &buf[..n]);
            at = at.plus(n as u64);
        }
        Ok(crc)
    }

    /// Makes all that was written durable.
    pub fn sync(&self) -> Result<(), Error> {
        let (was_dirty, was_new, open) = {
            let mut files = self.files();
            let open: Vec<_> =
                files.open.iter().map(|(first, file)| (*first, file.clone())).collect();
            (std::mem::take(&mut files.is_dirty), std::mem::take(&mut files.is_new), open)
        };
        let synced = open.iter().filter(|_| was_dirty).try_for_each(|(first, file)| {
            let file = match file {
                Some(file) => file.clone(),
                // It was closed while somebody still wrote to it.
                None => match self.file(*first, false)? {
                    Some((_, file)) => file,
                    None => return Ok(()),
                },
            };
            file.sync().map_err(|error| {
                self.files().has_failed = true;
                Error::disk("sync", path_of(self.life, *first))(error)
            })
        });
        let synced = synced.and_then(|()| match was_new {
            true => self.disk.sync_dir(Path::new(DIR)).map_err(Error::disk("sync", DIR)),
            false => Ok(()),
        });
        if synced.is_err() {
            let mut files = self.files();
            files.is_dirty |= was_dirty;
            files.is_new |= was_new;
        }
        synced
    }

    /// Whether a sync failed since the content was last [written again](Self::rewritten): the next
    /// one would succeed, and write nothing of what the failed one dropped.
    pub fn must_be_rewritten(&self) -> bool {
        self.files().has_failed
    }

    /// All that no sync covered was written again.
    pub fn rewritten(&self) {
        self.files().has_failed = false;
    }

    /// What was found in the files may be in the page cache alone.
    pub fn distrust(&self) {
        self.files().is_dirty = true;
    }

    /// Called once a tick. Whether it has files open, and none was used for many ticks.
    pub fn rests(&self) -> bool {
        let mut files = self.files();
        files.rested = files.rested.saturating_add(1);
        files.rested > RESTED_TICKS && files.open.values().any(Option::is_some)
    }

    /// Closes what is synced, until it is used again: descriptors are few, and journals many.
    pub fn close(&self) {
        let mut files = self.files();
        if !files.is_dirty && !files.is_new {
            files.open.values_mut().for_each(|file| *file = None);
        }
    }

    pub fn close_rested(&self) {
        if self.files().rested > RESTED_TICKS {
            self.close();
        }
    }

    pub fn is_dirty(&self) -> bool {
        let files = self.files();
        files.is_dirty || files.is_new
    }

    /// Frees the whole blocks within `span`, which the index has given up. `false` when somebody
    /// outside this process still has the file open: a passthrough handle of an earlier life would
    /// read zeros (fuse-passthrough handles outlive their daemon).
    pub fn free(&self, span: Span) -> Result<bool, Error> {
        let firsts: Vec<u64> = self.files().open.keys().copied().collect();
        for first in firsts {
            let Some((_, file)) = self.file(first, false)? else { continue };
            let held = file.is_held_elsewhere();
            if held.map_err(Error::disk("ask for the holders of", path_of(self.life, first)))? {
                return Ok(false);
            }
        }
        self.punch(span).map(|()| true)
    }

    fn punch(&self, span: Span) -> Result<(), Error> {
        let spans: Vec<(u64, u64)> = {
            let files = self.files();
            let firsts: Vec<u64> = files.open.keys().copied().collect();
            let ends = firsts.iter().skip(1).copied().chain([u64::MAX]);
            firsts.iter().copied().zip(ends).collect()
        };
        for (first, next) in spans {
            let begin = span.begin().as_u64().max(first);
            let end = span.end().as_u64().min(next);
            let (begin, end) = (begin.next_multiple_of(BLOCK), end / BLOCK * BLOCK);
            if begin >= end {
                continue;
            }
            if let Some((first, file)) = self.file(begin, false)? {
                file.punch(begin - first, end - begin)
                    .map_err(Error::disk("free a part of", path_of(self.life, first)))?;
                self.files().is_dirty = true;
            }
        }
        Ok(())
    }

    /// Cuts off what lies beyond `head`: content that no record names.
    pub fn truncate(&self, head: Offset) -> Result<(), Error> {
        let firsts: Vec<u64> = self.files().open.keys().copied().collect();
        for first in firsts {
            let end = head.as_u64().saturating_sub(first);
            let path = path_of(self.life, first);
            let Some((_, file)) = self.file(first, false)? else { continue };
            if file.len().map_err(Error::disk("stat", &path))? > end {
                file.set_len(end).map_err(Error::disk("cut", &path))?;
                self.files().is_dirty = true;
            }
        }
        self.files().reserved = 0;
        Ok(())
    }

    /// How far each file reaches, as offsets of the journal.
    pub fn extents(&self) -> Result<Vec<Span>, Error> {
        let firsts: Vec<u64> = self.files().open.keys().copied().collect();
        let mut extents = Vec::new();
        for first in firsts {
            let path = path_of(self.life, first);
            let len = self.disk.stat(&path).map_err(Error::disk("stat", &path))?;
            let begin = Offset::try_from(first).expect("a file name holds an offset");
            extents.push(Span::at(begin, len.map_or(0, |entry| entry.len)));
        }
        Ok(extents)
    }

    /// Bytes on disk.
    pub fn allocated(&self) -> Result<u64, Error> {
        let open: Vec<u64> = self.files().open.keys().copied().collect();
        open.into_iter().try_fold(0, |sum, first| match self.file(first, false)? {
            None => Ok(sum),
            Some((_, file)) => {
                let taken =
                    file.allocated().map_err(Error::disk("stat", path_of(self.life, first)));
                Ok(sum + taken?)
            }
        })
    }

    /// The one file that begins at 0, if there is no other: what may be lent for passthrough.
    pub fn only_file(&self) -> Result<Option<Arc<dyn DiskFile>>, Error> {
        if self.files().open.keys().copied().ne([0]) {
            return Ok(None);
        }
        Ok(self.file(0, false)?.map(|(_, file)| file))
    }

    /// Removes the files: the journal's life has ended.
    pub fn remove(&self) -> Result<(), Error> {
        let firsts: Vec<u64> = self.files().open.keys().copied().collect();
        for first in firsts {
            let path = path_of(self.life, first);
            match self.disk.remove(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other.map_err(Error::disk("remove", &path))?,
            }
        }
        self.disk.sync_dir(Path::new(DIR)).map_err(Error::disk("sync", DIR))
    }
}

/// Reads a whole span that is local.
pub fn read_span(mirror: &Mirror, span: Span) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; usize::try_from(span.len()).unwrap_or(usize::MAX)];
    let mut done = 0;
    while done < bytes.len() {
        match mirror.read(span.begin().plus(done as u64), &mut bytes[done..])? {
            0 => return Err(Error::NotLocal { life: mirror.life, offset: span.begin() }),
            n => done += n,
        }
    }
    Ok(bytes)
}
