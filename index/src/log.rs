//! The commit log: one for all journals of a data directory, in pre-written segments.
//!
//! One sync serves every append of every journal that waits. Invariant: frames lie one after the
//! other without a hole, each chained to the one before; a frame that could not be written whole is
//! written over by the next. Frames stay in memory until a sync that covered them returned, so that
//! what a failed sync may have dropped is written again from here, not from a page cache that lies.

mod scan;

pub use scan::{Scan, scan};

use crate::Error;
use crate::disk::{Disk, DiskFile, Open, read_file};
use crate::limits;
use crate::record::{self, Body, Position, Record, Segment};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The directory of segments, below the data directory.
pub const DIR: &str = "log";

/// Who asks for room: marks may use the reserve that appends may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Append,
    Mark,
}

/// See the module.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    boot_id: String,
    segment_len: u64,
    inner: Mutex<Inner>,
    /// Held by the one who makes the next segment's file, before `inner`.
    preparing: Mutex<()>,
    /// Held by the one sync that is under way. Whether the last one failed: what it dropped is not
    /// dirty any more, so that the next sync of it would succeed and write nothing.
    syncing: Mutex<bool>,
    synced: AtomicU64,
    /// Bytes of the frames that wait in memory for a sync.
    unsynced_len: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    current: OpenSegment,
    at: u32,
    chain: u32,
    /// The pre-written next segment.
    spare: Option<OpenSegment>,
    older: BTreeMap<u32, OpenSegment>,
    unsynced: VecDeque<Unsynced>,
}

#[derive(Debug, Clone)]
struct OpenSegment {
    number: u32,
    file: Arc<dyn DiskFile>,
    len: u32,
}

#[derive(Debug)]
struct Unsynced {
    position: Position,
    file: Arc<dyn DiskFile>,
    frame: Bytes,
}

/// The path of a segment.
pub fn path_of(number: u32) -> PathBuf {
    Path::new(DIR).join(format!("{number:08x}.seg"))
}

/// The number of the segment called `name`.
pub fn number_of(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_suffix(".seg")?, 16).ok()
}

/// The numbers of the segments on disk.
pub(crate) fn numbers(disk: &dyn Disk) -> Result<impl Iterator<Item = u32>, Error> {
    let entries = disk.list(Path::new(DIR)).map_err(Error::disk("list", DIR))?;
    Ok(entries.into_iter().filter_map(|entry| number_of(&entry.name)))
}

/// Whether the page cache has nothing of the log from `start` on: what was not synced is gone,
/// though the machine may have gone on, as where a file system that failed was mounted anew. Due
/// before anything of it is read.
pub(crate) fn is_forgotten(disk: &dyn Disk, start: Position) -> Result<bool, Error> {
    let mut is_there = false;
    for path in numbers(disk)?.filter(|number| *number >= start.segment()).map(path_of) {
        let file = disk.open(&path, Open::Read).map_err(Error::disk("open", &path))?;
        if !file.is_forgotten() {
            return Ok(false);
        }
        is_there = true;
    }
    Ok(is_there)
}

/// Makes durable what the segments have between two places, and their names. It is written again
/// first: after a sync that failed it may be in the page cache alone, where the next one finds
/// nothing to do.
pub(crate) fn rewrite(disk: &dyn Disk, from: Position, to: Position) -> Result<(), Error> {
    const PIECE: u64 = 1 << 20;
    let is_meant = |number: &u32| (from.segment()..=to.segment()).contains(number);
    for number in numbers(disk)?.filter(is_meant) {
        let path = path_of(number);
        let file = disk.open(&path, Open::Existing).map_err(Error::disk("open", &path))?;
        let len = file.len().map_err(Error::disk("stat", &path))?;
        let mut at = if number == from.segment() { u64::from(from.offset()) } else { 0 };
        let end = if number == to.segment() { u64::from(to.offset()).min(len) } else { len };
        while at < end {
            let bytes = read_file(&*file, at, PIECE.min(end - at));
            let bytes = bytes.map_err(Error::disk("read", &path))?;
            file.write_at(&bytes, at).map_err(Error::disk("write", &path))?;
            at += bytes.len() as u64;
        }
        file.sync().map_err(Error::disk("sync", path))?;
    }
    disk.sync_dir(Path::new(DIR)).map_err(Error::disk("sync", DIR))
}

impl Log {
    /// Begins segment `number`, which follows a log that ends at `previous_end`: in a file of full
    /// length that has its name, else in a small new one. One that has the next name is its spare.
    pub fn begin(
        disk: Arc<dyn Disk>,
        number: u32,
        previous_end: Position,
        chain: u32,
        segment_len: u64,
    ) -> Result<Log, Error> {
        let boot_id = disk.boot_id().map_err(Error::disk("read", "boot id"))?;
        let recycled = |number| OpenSegment::recycled(&*disk, number, segment_len);
        let first_len = segment_len.min(limits::FIRST_SEGMENT_LEN);
        let (current, spare) = match recycled(number)? {
            Some(current) => (current, recycled(number + 1)?),
            None => match prewrite(&*disk, number, first_len) {
                // A full disk must still open, if only to be read and freed.
                Err(full) if full.is_full() => {
                    (prewrite(&*disk, number, segment_len.min(limits::SEGMENT_LEN_MIN))?, None)
                }
                other => (other?, None),
            },
        };
        let inner = Inner {
            current,
            at: 0,
            chain,
            spare,
            older: BTreeMap::new(),
            unsynced: VecDeque::new(),
        };
        let log = Log {
            disk,
            boot_id,
            segment_len,
            inner: Mutex::new(inner),
            preparing: Mutex::new(()),
            syncing: Mutex::new(false),
            synced: AtomicU64::new(0),
            unsynced_len: AtomicU64::new(0),
        };
        let header = log.header(previous_end);
        log.write(&mut log.inner(), &header)?;
        Ok(log)
    }

    fn header(&self, previous_end: Position) -> Record {
        let boot_id = self.boot_id.clone();
        let segment = Segment { format: record::FORMAT, boot_id, previous_end: previous_end.0 };
        Record { body: Some(Body::Segment(segment)) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of the log panics")
    }

    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// Where the next frame goes.
    pub fn position(&self) -> Position {
        self.inner().position()
    }

    /// Everything below is durable.
    pub fn synced(&self) -> Position {
        Position(self.synced.load(Ordering::Acquire))
    }

    /// Bytes of frames that wait in memory for a sync.
    pub fn unsynced_len(&self) -> u64 {
        self.unsynced_len.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint would free segments.
    pub fn has_older(&self) -> bool {
        !self.inner().older.is_empty()
    }

    /// Full segments that no checkpoint has freed yet.
    pub fn older_segments(&self) -> usize {
        self.inner().older.len()
    }

    /// Bytes that the log's files take.
    pub fn footprint(&self) -> u64 {
        let inner = self.inner();
        let older: u64 = inner.older.values().map(|segment| u64::from(segment.len)).sum();
        let spare = inner.spare.as_ref().map_or(0, |spare| spare.len);
        older + u64::from(inner.current.len) + u64::from(spare)
    }

    /// Writes one record, in the page cache. `Full` when no segment has room. Blocks on the disk
    /// where the next segment was not prepared in time: then a small one is written at once.
    pub fn append(&self, record: &Record, purpose: Purpose) -> Result<Position, Error> {
        let len = record::framed_len(record);
        let small = self.segment_len.min(limits::FIRST_SEGMENT_LEN);
        if u64::from(len) > small / 2 {
            return Err(Error::TooLarge { len: u64::from(len), max: small / 2 });
        }
        let mut prepared = Ok(());
        loop {
            let mut inner = self.inner();
            let room = inner.current.len - inner.at;
            if len.saturating_add(self.reserve(&inner, purpose)) <= room {
                return self.write(&mut inner, record);
            }
            let may_roll = self.may_roll(&inner, purpose);
            let rolled = match (may_roll, inner.spare.take()) {
                (Ok(()), Some(spare)) => self.roll(&mut inner, spare),
                (Ok(()), None) if prepared.is_ok() => {
                    drop(inner);
                    prepared = self.prepare(small);
                    continue;
                }
                (Ok(()), None) => std::mem::replace(&mut prepared, Ok(())),
                (full, spare) => {
                    inner.spare = spare;
                    full
                }
            };
            // A mark that still fits may use the last of the segment when there is no other.
            if rolled.is_ok() || purpose == Purpose::Mark && len <= room {
                return self.write(&mut inner, record);
            }
            rolled?;
        }
    }

    /// Bytes of the current segment that are not for everybody.
    fn reserve(&self, inner: &Inner, purpose: Purpose) -> u32 {
        match (purpose, &inner.spare) {
            (Purpose::Append, None) => limits::MARKS_RESERVE.min(self.segment_len / 4) as u32,
            _ => 0,
        }
    }

    fn may_roll(&self, inner: &Inner, purpose: Purpose) -> Result<(), Error> {
        if purpose == Purpose::Append && inner.older.len() >= limits::SEGMENTS_MAX {
            return Err(Error::LogFull { segments: inner.older.len() });
        }
        Ok(())
    }

    /// Goes on in the spare segment, whose first frame says where this one ends.
    fn roll(&self, inner: &mut Inner, spare: OpenSegment) -> Result<(), Error> {
        let header = self.header(inner.position());
        let before = (inner.current.clone(), inner.at);
        inner.current = spare;
        inner.at = 0;
        if let Err(error) = self.write(inner, &header) {
            inner.spare = Some(std::mem::replace(&mut inner.current, before.0));
            inner.at = before.1;
            return Err(error);
        }
        inner.older.insert(before.0.number, before.0);
        Ok(())
    }

    fn write(&self, inner: &mut Inner, record: &Record) -> Result<Position, Error> {
        let position = inner.position();
        let (frame, checksum) = record::encode(record, position, self.synced(), inner.chain);
        let segment = &inner.current;
        segment
            .file
            .write_at(&frame, u64::from(position.offset()))
            // The path is made only for an error: this runs once an append.
            .map_err(|error| Error::disk("write", path_of(segment.number))(error))?;
        let file = segment.file.clone();
        inner.at += frame.len() as u32;
        inner.chain = checksum;
        self.unsynced_len.fetch_add(frame.len() as u64, Ordering::Relaxed);
        inner.unsynced.push_back(Unsynced { position, file, frame });
        Ok(position)
    }

    /// Makes everything durable that lies below `target`, which is [`Log::position`] at a moment
    /// before the caller synced what those records name: a record that came later may be durable as
    /// well, but its staged content need not be, so the log does not say that it was synced that
    /// far.
    ///
    /// A failing sync is tried once more after all unsynced frames were written again; if that
    /// fails too they stay in memory, and the next call begins with writing them.
    pub fn sync(&self, target: Position) -> Result<(), Error> {
        let mut has_failed = self.syncing.lock().expect("no sync panics");
        if target <= self.synced() {
            return Ok(());
        }
        let files = self.inner().unsynced_files();
        if *has_failed {
            self.rewrite()?;
        }
        if let Err(first) = sync_all(&files) {
            tracing::warn!(error = %first, "the log's sync failed; its frames are written again");
            *has_failed = true;
            self.rewrite()?;
            sync_all(&files)?;
        }
        *has_failed = false;
        self.synced.store(target.0, Ordering::Release);
        let mut inner = self.inner();
        while let Some(synced) = inner.unsynced.pop_front_if(|frame| frame.position < target) {
            self.unsynced_len.fetch_sub(synced.frame.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        let inner = self.inner();
        inner.unsynced.iter().try_for_each(|unsynced| {
            let Unsynced { position, file, frame } = unsynced;
            file.write_at(frame, u64::from(position.offset()))
                .map_err(Error::disk("write", path_of(position.segment())))
        })
    }

    /// Pre-writes the next segment, if there is none. Slow: not for a thread that replies.
    pub fn prepare_spare(&self) -> Result<(), Error> {
        if self.inner().spare.is_some() {
            return Ok(());
        }
        // To find out by filling the disk would take the room from everybody else.
        let (needed, space) = (self.segment_len, self.disk.space());
        let free = space.map_err(Error::disk("stat", "the file system"))?.free;
        if free < needed {
            return Err(Error::Full { needed, free });
        }
        self.prepare(needed)
    }

    fn prepare(&self, len: u64) -> Result<(), Error> {
        // The file's name is that of the segment to come: of two who make it, one would fill with
        // zeros, replace or remove what the other has brought into use.
        let _only = self.preparing();
        let number = {
            let inner = self.inner();
            if inner.spare.is_some() {
                return Ok(());
            }
            inner.current.number + 1
        };
        let spare = prewrite(&*self.disk, number, len)?;
        self.offer(spare);
        Ok(())
    }

    fn preparing(&self) -> MutexGuard<'_, ()> {
        self.preparing.lock().expect("no maker of a segment panics")
    }

    /// Makes a segment the spare, for the holder of `preparing`.
    fn offer(&self, spare: OpenSegment) {
        let mut inner = self.inner();
        // Invariant: nobody rolls without a spare, and nobody else makes one.
        assert!(inner.spare.is_none() && inner.current.number + 1 == spare.number);
        inner.spare = Some(spare);
    }

    /// Frees the segments below `start`, keeping one as the spare if there is none.
    pub fn free_below(&self, start: Position) -> Result<(), Error> {
        let _only = self.preparing();
        loop {
            let (oldest, recycle_as) = {
                let mut inner = self.inner();
                let Some(oldest) = inner.older.first_entry() else { return Ok(()) };
                if *oldest.key() >= start.segment() {
                    return Ok(());
                }
                let oldest = oldest.remove();
                let recycle = inner.spare.is_none() && u64::from(oldest.len) == self.segment_len;
                (oldest, recycle.then(|| inner.current.number + 1))
            };
            let old_path = path_of(oldest.number);
            match recycle_as {
                Some(number) => {
                    let path = path_of(number);
                    self.disk.rename(&old_path, &path).map_err(Error::disk("rename", &path))?;
                    self.sync_dir()?;
                    self.offer(OpenSegment { number, ..oldest });
                }
                None => {
                    self.disk.remove(&old_path).map_err(Error::disk("remove", &old_path))?;
                }
            }
        }
    }

    fn sync_dir(&self) -> Result<(), Error> {
        self.disk.sync_dir(Path::new(DIR)).map_err(Error::disk("sync", DIR))
    }
}

impl OpenSegment {
    /// The segment whose place on disk an earlier one has left it, if that is as long.
    fn recycled(disk: &dyn Disk, number: u32, len: u64) -> Result<Option<Self>, Error> {
        let path = path_of(number);
        let entry = disk.stat(&path).map_err(Error::disk("stat", &path))?;
        if entry.is_none_or(|entry| entry.len != len) {
            return Ok(None);
        }
        let file = disk.open(&path, Open::Existing).map_err(Error::disk("open", &path))?;
        let len = u32::try_from(len).expect("segments are at most 64 MiB");
        Ok(Some(OpenSegment { number, file, len }))
    }
}

impl Inner {
    fn position(&self) -> Position {
        Position::new(self.current.number, self.at)
    }

    /// The files that hold unsynced frames, oldest first.
    fn unsynced_files(&self) -> Vec<(u32, Arc<dyn DiskFile>)> {
        let mut files: Vec<(u32, Arc<dyn DiskFile>)> = Vec::new();
        for frame in &self.unsynced {
            let number = frame.position.segment();
            if files.last().is_none_or(|(last, _)| *last != number) {
                files.push((number, frame.file.clone()));
            }
        }
        files
    }
}

fn sync_all(files: &[(u32, Arc<dyn DiskFile>)]) -> Result<(), Error> {
    files
        .iter()
        .try_for_each(|(number, file)| file.sync().map_err(Error::disk("sync", path_of(*number))))
}

/// Writes a segment full of zeros and makes it durable, so that later syncs move no metadata.
fn prewrite(disk: &dyn Disk, number: u32, len: u64) -> Result<OpenSegment, Error> {
    let path = path_of(number);
    let file = disk.open(&path, Open::Any).map_err(Error::disk("open", &path))?;
    let filled = (|| {
        // Page by page: what is written in large pieces lies in large folios, and each small write
        // into one walks all its buffers (ext4_block_write_begin).
        let zeros = vec![0; len.min(limits::BLOCK) as usize];
        let mut at = 0;
        while at < len {
            let part = (len - at).min(zeros.len() as u64);
            file.write_at(&zeros[..part as usize], at)?;
            at += part;
        }
        file.sync()?;
        disk.sync_dir(Path::new(DIR))
    })();
    if let Err(error) = filled {
        // Half a segment only takes room; a failure to remove it is the smaller one of the two.
        let _ = disk.remove(&path);
        return Err(Error::disk("pre-write", path)(error));
    }
    let len = u32::try_from(len).expect("segments are at most 64 MiB");
    Ok(OpenSegment { number, file, len })
}
