//! Opening a data directory after any kind of stop.
//!
//! The checkpoint's ledgers are folded on with every record behind it, and content moves into the
//! mirrors again. Recovery ends with a checkpoint of its own, so that an earlier log is read once:
//! a decision about a torn end is made one time, and stands.

use crate::checkpoint::Checkpoint;
use crate::datadir::{LOST_AND_FOUND, exists};
use crate::disk::{Disk, Lock, Open};
use crate::ledger::{Ledger, offset};
use crate::limits;
use crate::log::{self, Log, Scan};
use crate::mirror::{self, Mirror};
use crate::record::{self, Body, Frame, Position};
use crate::{Error, staging};
use protocol::{Journal, Life, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";
const ASIDE: &str = "aside";

/// What recovery did, for the log and for `inspect`.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    pub journals: u64,
    /// Records read behind the checkpoint.
    pub records: u64,
    /// Content that was moved into mirrors again.
    pub bytes: u64,
    pub is_clean: bool,
    pub is_other_boot: bool,
    /// Spans given to nobody since a power cut.
    pub lost: Vec<(Journal, Span)>,
    pub damaged: Vec<(Journal, Span)>,
    /// Places of the log that were synced and do not verify.
    pub damaged_log: Vec<(Position, Position)>,
    /// Records that were cut off: none was acknowledged at `disk`.
    pub cut_records: u64,
    /// Local files that belong to no journal, and were moved to `lost+found`.
    pub orphans: Vec<String>,
}

pub(crate) fn make_dirs(disk: &dyn Disk) -> Result<(), Error> {
    for dir in ["", log::DIR, mirror::DIR, staging::DIR, ASIDE, LOST_AND_FOUND] {
        disk.create_dir(Path::new(dir)).map_err(Error::disk("create", dir))?;
    }
    disk.sync_dir(Path::new("")).map_err(Error::disk("sync", "the data directory"))
}

pub(crate) fn take_lock(disk: &dyn Disk) -> Result<Lock, Error> {
    disk.lock(Path::new(LOCK_FILE)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::InUse(LOCK_FILE.into()),
        _ => Error::disk("lock", LOCK_FILE)(error),
    })
}

/// The format is named in a file of its own, which even a release that knows nothing else of a
/// directory can read.
pub(crate) fn check_format(disk: &dyn Disk) -> Result<(), Error> {
    let path = Path::new(FORMAT_FILE);
    if !exists(disk, path)? {
        let text = format!("courant data format {}\n", record::FORMAT);
        return crate::disk::replace(disk, path, text.as_bytes())
            .map_err(Error::disk("write", path));
    }
    let file = disk.open(path, Open::Read).map_err(Error::disk("open", path))?;
    let len = file.len().map_err(Error::disk("stat", path))?.min(256);
    let text = mirror::read_file(&*file, 0, len).map_err(Error::disk("read", path))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let number = text.trim().strip_prefix("courant data format ").and_then(|n| n.parse().ok());
    match number {
        Some(found) if found > record::FORMAT => {
            Err(Error::NewerFormat { found, known: record::FORMAT })
        }
        Some(_) => Ok(()),
        None => Err(Error::Damaged(path.into(), format!("it says {:?}", text.trim()))),
    }
}

/// Tries a hole on a file of two blocks.
pub(crate) fn check_punch(disk: &dyn Disk) -> Result<(), Error> {
    let path = Path::new("punch-probe");
    let file = disk.open(path, Open::Any).map_err(Error::disk("open", path))?;
    let probed = file
        .write_at(&[1; 2 * limits::BLOCK as usize], 0)
        .and_then(|()| file.punch(0, limits::BLOCK));
    drop(file);
    let removed = disk.remove(path);
    match probed {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Err(Error::NoPunch("the data directory".into()))
        }
        // A disk too full for two blocks still opens: what is there must be readable.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(()),
        Err(error) => Err(Error::disk("probe", path)(error)),
        Ok(()) => removed.map_err(Error::disk("remove", path)),
    }
}

/// The journals that recovery found, with the mirrors they own.
pub(crate) type Journals = Vec<(Ledger, Mirror)>;

pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    segment_len: u64,
) -> Result<(Log, Journals, Recovered), Error> {
    let checkpoint = Checkpoint::read(&**disk)?;
    let is_new = checkpoint.is_none();
    let mut checkpoint = checkpoint.unwrap_or_default();
    let ledgers = std::mem::take(&mut checkpoint.ledgers);
    let mut replay = Replay::begin(disk.clone(), ledgers)?;
    let scan = log::scan(&**disk, checkpoint.start, |frame| replay.take(frame))?;
    let boot_id = disk.boot_id().map_err(Error::disk("read", "boot id"))?;
    let last_boot = if scan.boot_id.is_empty() { &checkpoint.boot_id } else { &scan.boot_id };
    let is_other_boot = !is_new && *last_boot != boot_id;
    replay.settle_suspects(is_other_boot)?;
    replay.close_gaps(is_other_boot)?;
    replay.fit_mirrors()?;
    replay.sync()?;

    // The checkpoint comes before the segment it begins at, so that what it frees makes room; and
    // before both, on a full disk, goes what was kept for this.
    drop_ballast(&**disk)?;
    drop_spare(&**disk, &scan)?;
    let number = scan.last_number.max(checkpoint.start.segment()) + 1;
    let start = Position::new(number, 0);
    let ledgers = replay.journals.values().map(|(ledger, _)| ledger.clone()).collect();
    Checkpoint { start, boot_id, ledgers }.write(&**disk)?;
    clear(&**disk, &scan, number)?;
    let log = Log::begin(disk.clone(), number, scan.end, scan.chain, segment_len)?;
    log.sync()?;
    replay.find_orphans()?;

    let mut recovered = replay.recovered;
    recovered.journals = replay.journals.len() as u64;
    recovered.is_clean = scan.is_clean || is_new;
    recovered.is_other_boot = is_other_boot;
    recovered.cut_records += scan.cut_frames;
    recovered.damaged_log = scan.damaged;
    Ok((log, replay.journals.into_values().collect(), recovered))
}

/// Room that is kept for a start on a full disk.
const BALLAST: &str = "ballast";

/// Takes the room that a start on a full disk needs: a checkpoint and a segment.
pub(crate) fn keep_ballast(disk: &dyn Disk) -> Result<(), Error> {
    let path = Path::new(BALLAST);
    if exists(disk, path)? {
        return Ok(());
    }
    let space = disk.space().map_err(Error::disk("stat", "the file system"))?;
    let len = (space.total / 64).clamp(limits::BALLAST_MIN, limits::BALLAST_MAX);
    if space.free < 4 * len {
        return Ok(());
    }
    let file = disk.open(path, Open::Any).map_err(Error::disk("open", path))?;
    file.reserve(0, len).map_err(Error::disk("reserve space in", path))
}

/// Gives the room back.
pub(crate) fn drop_ballast(disk: &dyn Disk) -> Result<(), Error> {
    match disk.remove(Path::new(BALLAST)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::disk("remove", BALLAST)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a segment that was made and never begun.
fn drop_spare(disk: &dyn Disk, scan: &Scan) -> Result<(), Error> {
    let last = log::path_of(scan.last_number);
    if scan.last_number > scan.end.segment() && scan.cut_frames == 0 && exists(disk, &last)? {
        disk.remove(&last).map_err(Error::disk("remove", &last))?;
    }
    Ok(())
}

struct Replay {
    disk: Arc<dyn Disk>,
    journals: BTreeMap<Life, (Ledger, Mirror)>,
    /// Lives that ended in the records that were read.
    ended: BTreeSet<Life>,
    /// Mirror files on disk that no journal has claimed, by life.
    files: BTreeMap<Life, Vec<u64>>,
    /// Journals with an append whose staged content does not verify: what they were before it, and
    /// where its record lies.
    suspects: BTreeMap<Life, (Ledger, Position)>,
    /// How far the log was synced, by its own word.
    synced: Position,
    staged: BTreeMap<u64, Arc<dyn crate::disk::DiskFile>>,
    recovered: Recovered,
}

impl Replay {
    fn begin(disk: Arc<dyn Disk>, ledgers: Vec<Ledger>) -> Result<Self, Error> {
        let mut files: BTreeMap<Life, Vec<u64>> = BTreeMap::new();
        let entries =
            disk.list(Path::new(mirror::DIR)).map_err(Error::disk("list", mirror::DIR))?;
        for (life, first) in entries.iter().filter_map(|entry| mirror::parse_name(&entry.name)) {
            files.entry(life).or_default().push(first);
        }
        let mut replay = Replay {
            disk,
            journals: BTreeMap::new(),
            ended: BTreeSet::new(),
            files,
            suspects: BTreeMap::new(),
            synced: Position::default(),
            staged: BTreeMap::new(),
            recovered: Recovered::default(),
        };
        ledgers.into_iter().for_each(|ledger| replay.add(ledger));
        Ok(replay)
    }

    fn add(&mut self, ledger: Ledger) {
        let firsts = self.files.remove(&ledger.life).unwrap_or_default();
        let mirror = Mirror::new(self.disk.clone(), ledger.life, firsts);
        self.journals.insert(ledger.life, (ledger, mirror));
    }

    fn take(&mut self, frame: &Frame) -> Result<(), Error> {
        self.recovered.records += 1;
        self.synced = self.synced.max(frame.synced);
        let position = frame.position;
        match &frame.body {
            Body::Segment(_) | Body::Stop(_) => Ok(()),
            Body::Created(created) => {
                let life = Life::new(created.life);
                if let Ok(name) = Journal::new(&created.name)
                    && !self.journals.contains_key(&life)
                {
                    self.add(Ledger::new(life, name, position));
                }
                Ok(())
            }
            Body::Deleted(mark) => {
                let life = Life::new(mark.life);
                self.ended.insert(life);
                self.suspects.remove(&life);
                match self.journals.remove(&life) {
                    Some((_, mirror)) => mirror.remove(),
                    None => Ok(()),
                }
            }
            Body::Append(append) => self.append(append, position),
            Body::Rolled(record::Rolled { life, .. })
            | Body::Persisted(record::Persisted { life, .. })
            | Body::Synced(record::Synced { life, .. })
            | Body::Evicted(record::Mark { life, .. })
            | Body::Trimmed(record::Mark { life, .. })
            | Body::Lost(record::Mark { life, .. })
            | Body::Damaged(record::Mark { life, .. })
            | Body::Adopted(record::Mark { life, .. })
            | Body::Ceiling(record::Mark { life, .. })
            | Body::Gathered(record::Mark { life, .. }) => {
                if let Some((ledger, _)) = self.journals.get_mut(&Life::new(*life))
                    && position > ledger.as_of
                {
                    ledger.apply(&frame.body, position);
                }
                Ok(())
            }
        }
    }

    fn append(&mut self, append: &record::Append, position: Position) -> Result<(), Error> {
        let life = Life::new(append.life);
        let content = self.content(append)?;
        let Some((ledger, mirror)) = self.journals.get_mut(&life) else { return Ok(()) };
        let span = Span::at(offset(append.begin), append.len);
        let is_folded = position <= ledger.as_of;
        if is_folded {
            if !ledger.local.covers(span) {
                return Ok(());
            }
        } else {
            close_damage(ledger, span.begin(), offset(append.spool_begin), position);
        }
        let is_good = match &content {
            Some(content) => {
                mirror.write(span.begin(), content)?;
                self.recovered.bytes += span.len();
                true
            }
            // The move may have been done already, and the staging file used again.
            None => mirror.checksum(span).is_ok_and(|crc| crc == append.crc),
        };
        if !is_folded {
            if !is_good {
                self.suspects.entry(life).or_insert_with(|| (ledger.clone(), position));
            }
            ledger.apply(&Body::Append(append.clone()), position);
        }
        if !is_good {
            let mark = mark(life, span);
            fold(ledger, Body::Damaged(mark));
        }
        Ok(())
    }

    /// The content of an append, if it is all there.
    fn content(&mut self, append: &record::Append) -> Result<Option<bytes::Bytes>, Error> {
        let Some(staged) = append.staged else { return Ok(Some(append.content.clone())) };
        if !self.staged.contains_key(&staged.file) {
            let path = staging_path(staged.file);
            match self.disk.open(&path, Open::Read) {
                Ok(file) => self.staged.insert(staged.file, file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Error::disk("open", path)(error)),
            };
        }
        let file = &self.staged[&staged.file];
        let content = mirror::read_file(&**file, staged.offset, append.len);
        Ok(content.ok().filter(|bytes| crc32c::crc32c(bytes) == append.crc).map(Into::into))
    }

    /// Staged content that does not verify ends its journal there, if the log was never synced
    /// beyond its record; else it is damage, and what follows stays.
    fn settle_suspects(&mut self, is_other_boot: bool) -> Result<(), Error> {
        for (life, (before, position)) in std::mem::take(&mut self.suspects) {
            let Some((ledger, mirror)) = self.journals.get_mut(&life) else { continue };
            if is_other_boot && position >= self.synced {
                mirror.truncate(before.head)?;
                *ledger = before;
                self.recovered.cut_records += 1;
            }
        }
        Ok(())
    }

    /// After another boot a head resumes at its ceiling: offsets below it may have been shown.
    fn close_gaps(&mut self, is_other_boot: bool) -> Result<(), Error> {
        for (ledger, mirror) in self.journals.values_mut() {
            if is_other_boot && ledger.ceiling > ledger.head {
                if !ledger.spool_is_empty() {
                    fold(ledger, Body::Rolled(ledger.rolled()));
                }
                let lost = Span::between(ledger.head, ledger.ceiling);
                fold(ledger, Body::Lost(mark(ledger.life, lost)));
                mirror.begin_file(lost.end())?;
                self.recovered.lost.push((ledger.name.clone(), lost));
            }
        }
        Ok(())
    }

    /// Cuts mirrors to their heads, frees what was evicted, and finds what is missing.
    fn fit_mirrors(&mut self) -> Result<(), Error> {
        for (ledger, mirror) in self.journals.values_mut() {
            mirror.truncate(ledger.head)?;
            let there: crate::spans::SpanSet = mirror.extents()?.into_iter().collect();
            let missing: Vec<Span> =
                ledger.local.iter().flat_map(|span| there.gaps(span)).collect();
            for span in missing {
                let in_store = |closed: &&crate::ledger::Closed| closed.persisted.is_some();
                let stored = ledger.closed.iter().filter(in_store).map(|closed| closed.span);
                let stored: crate::spans::SpanSet = stored.collect();
                let body = match stored.covers(span) {
                    true => Body::Evicted(mark(ledger.life, span)),
                    false => Body::Damaged(mark(ledger.life, span)),
                };
                fold(ledger, body);
            }
            // Evictions that were recorded, and whose bytes were not freed before the stop.
            let slack = limits::BLOCK * 2 * (1 + ledger.local.iter().count() as u64);
            if mirror.allocated()? > ledger.local.len() + slack {
                for gap in ledger.local.gaps(Span::between(Offset::ZERO, ledger.head)) {
                    mirror.free(gap)?;
                }
            }
            let name = &ledger.name;
            let damaged = ledger.damaged.iter().map(|span| (name.clone(), span));
            self.recovered.damaged.extend(damaged);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        let mirrors = self.journals.values().map(|(_, mirror)| mirror);
        mirrors.filter(|mirror| mirror.is_dirty()).try_for_each(Mirror::sync)
    }

    /// Local files that no journal owns are kept, out of the way, and named.
    fn find_orphans(&mut self) -> Result<(), Error> {
        for (life, firsts) in std::mem::take(&mut self.files) {
            if self.ended.contains(&life) {
                let mirror = Mirror::new(self.disk.clone(), life, firsts);
                mirror.remove()?;
                continue;
            }
            for first in firsts {
                self.recovered.orphans.push(move_file(&*self.disk, &mirror::path_of(life, first))?);
            }
        }
        Ok(())
    }
}

/// Records are missing before an append that begins beyond the head: the log was damaged there.
fn close_damage(ledger: &mut Ledger, begin: Offset, spool_begin: Offset, position: Position) {
    if begin > ledger.head {
        if !ledger.spool_is_empty() {
            ledger.apply(&Body::Rolled(ledger.rolled()), position);
        }
        let missing = Span::between(ledger.head, begin);
        ledger.apply(&Body::Damaged(mark(ledger.life, missing)), position);
    } else if spool_begin == begin && !ledger.spool_is_empty() {
        ledger.apply(&Body::Rolled(ledger.rolled()), position);
    }
}

fn mark(life: Life, span: Span) -> record::Mark {
    record::Mark { life: life.get(), begin: span.begin().get(), end: span.end().get() }
}

/// Folds in what recovery found out. No record says so: the checkpoint does.
fn fold(ledger: &mut Ledger, body: Body) {
    let as_of = ledger.as_of;
    ledger.apply(&body, as_of);
}

fn staging_path(file: u64) -> PathBuf {
    Path::new(staging::DIR).join(format!("{file:016x}"))
}

/// Removes what the new checkpoint made needless; a log with damage or a cut end is kept aside.
fn clear(disk: &dyn Disk, scan: &Scan, number: u32) -> Result<(), Error> {
    let keep = scan.cut_frames > 0 || !scan.damaged.is_empty();
    let entries = disk.list(Path::new(log::DIR)).map_err(Error::disk("list", log::DIR))?;
    for name in entries.iter().map(|entry| &entry.name) {
        let Some(old) = log::number_of(name).filter(|old| *old < number) else { continue };
        let path = log::path_of(old);
        if keep {
            let aside = Path::new(ASIDE).join(name);
            disk.rename(&path, &aside).map_err(Error::disk("rename", &aside))?;
        } else {
            disk.remove(&path).map_err(Error::disk("remove", &path))?;
        }
    }
    let entries = disk.list(Path::new(staging::DIR)).map_err(Error::disk("list", staging::DIR))?;
    for entry in entries {
        let path = Path::new(staging::DIR).join(entry.name);
        disk.remove(&path).map_err(Error::disk("remove", &path))?;
    }
    bound_aside(disk)
}

fn bound_aside(disk: &dyn Disk) -> Result<(), Error> {
    let entries = disk.list(Path::new(ASIDE)).map_err(Error::disk("list", ASIDE))?;
    let surplus = entries.len().saturating_sub(limits::ASIDE_FILES_MAX);
    for entry in entries.iter().take(surplus) {
        let path = Path::new(ASIDE).join(&entry.name);
        disk.remove(&path).map_err(Error::disk("remove", &path))?;
    }
    Ok(())
}

fn move_file(disk: &dyn Disk, path: &Path) -> Result<String, Error> {
    let name = path.file_name().unwrap_or_default();
    let lost = Path::new(LOST_AND_FOUND).join(name);
    disk.rename(path, &lost).map_err(Error::disk("rename", &lost))?;
    Ok(lost.to_string_lossy().into_owned())
}

/// Moves the mirror of a journal without a spec to `lost+found`, beside a file with its name.
pub(crate) fn move_to_lost(disk: &dyn Disk, life: Life, name: &Journal) -> Result<(), Error> {
    let note = Path::new(LOST_AND_FOUND).join(format!("{life}.name"));
    crate::disk::replace(disk, &note, format!("{name}\n").as_bytes())
        .map_err(Error::disk("write", &note))?;
    let entries = disk.list(Path::new(mirror::DIR)).map_err(Error::disk("list", mirror::DIR))?;
    for (owner, first) in entries.iter().filter_map(|entry| mirror::parse_name(&entry.name)) {
        if owner == life {
            move_file(disk, &mirror::path_of(life, first))?;
        }
    }
    Ok(())
}

/// Writes into a mirror again what the log still has for it: its sync failed, and its page cache
/// can't be believed.
pub(crate) fn rewrite_mirror(disk: &dyn Disk, life: Life, mirror: &Mirror) -> Result<(), Error> {
    let start = Checkpoint::read(disk)?.unwrap_or_default().start;
    log::scan(disk, start, |frame| {
        let Body::Append(append) = &frame.body else { return Ok(()) };
        if append.life != life.get() {
            return Ok(());
        }
        let content = match append.staged {
            None => append.content.to_vec(),
            Some(staged) => {
                let path = staging_path(staged.file);
                let file = disk.open(&path, Open::Read).map_err(Error::disk("open", &path))?;
                mirror::read_file(&*file, staged.offset, append.len)
                    .map_err(Error::disk("read", &path))?
            }
        };
        if crc32c::crc32c(&content) == append.crc {
            mirror.write(offset(append.begin), &content)?;
        }
        Ok(())
    })?;
    Ok(())
}
