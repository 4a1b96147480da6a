//! Folding the records behind a checkpoint into the ledgers, and moving their content again.

use super::Recovered;
use super::damage::{self, fold, mark};
use super::moving::Moving;
use crate::checkpoint::Checkpoint;
use crate::datadir::LOST_AND_FOUND;
use crate::disk::{Disk, DiskFile, Open, read_file};
use crate::ledger::{Ledger, offset};
use crate::log;
use crate::lost::{life_of, move_file};
use crate::mirror::{self, Mirror};
use crate::record::{self, Body, Frame, Position};
use crate::spans::SpanSet;
use crate::{Error, ground, limits, staging};
use protocol::{Journal, Life, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(super) struct Replay {
    disk: Arc<dyn Disk>,
    pub journals: BTreeMap<Life, (Ledger, Mirror)>,
    /// Lives that ended in the records that were read.
    ended: BTreeSet<Life>,
    /// Mirror files on disk that no journal has claimed, by life.
    files: BTreeMap<Life, Vec<u64>>,
    /// Journals with an append whose staged content does not verify: what they were before it, and
    /// where its record lies.
    suspects: BTreeMap<Life, (Ledger, Position)>,
    staged: BTreeMap<u64, Arc<dyn DiskFile>>,
    /// What the checkpoint has in mirrors and the files did not reach, before any content was moved
    /// again: a write further on would hide it behind a hole.
    missing: BTreeMap<Life, SpanSet>,
    /// Journals without a ledger, and how far they reached.
    headless: BTreeMap<Life, Offset>,
    /// What the checkpoint and the records say is damaged.
    told: BTreeMap<Life, SpanSet>,
    pub moving: Moving,
    log: ReadLog,
    pub recovered: Recovered,
}

impl Replay {
    pub fn begin(
        disk: Arc<dyn Disk>,
        ledgers: Vec<Ledger>,
        start: Position,
    ) -> Result<Self, Error> {
        let mut files: BTreeMap<Life, Vec<u64>> = BTreeMap::new();
        let entries =
            disk.list(Path::new(mirror::DIR)).map_err(Error::disk("list", mirror::DIR))?;
        for (life, first) in entries.iter().filter_map(|entry| mirror::parse_name(&entry.name)) {
            files.entry(life).or_default().push(first);
        }
        let log = ReadLog { disk: disk.clone(), start, synced: start, durable: None, end: start };
        let mut replay = Replay {
            disk,
            journals: BTreeMap::new(),
            ended: BTreeSet::new(),
            files,
            suspects: BTreeMap::new(),
            staged: BTreeMap::new(),
            missing: BTreeMap::new(),
            headless: BTreeMap::new(),
            told: BTreeMap::new(),
            moving: Moving::default(),
            log,
            recovered: Recovered::default(),
        };
        for ledger in ledgers {
            let (life, local) = (ledger.life, ledger.local.clone());
            replay.told.insert(life, ledger.damaged.clone());
            replay.add(ledger);
            let (_, mirror) = &replay.journals[&life];
            let missing = missing(&local, mirror)?;
            if !missing.is_empty() {
                replay.missing.insert(life, missing);
            }
        }
        Ok(replay)
    }

    fn add(&mut self, ledger: Ledger) {
        let firsts = self.files.remove(&ledger.life).unwrap_or_default();
        let mirror = Mirror::new(self.disk.clone(), ledger.life, firsts);
        self.journals.insert(ledger.life, (ledger, mirror));
    }

    pub fn take(&mut self, frame: &Frame) -> Result<(), Error> {
        self.recovered.records += 1;
        let position = frame.position;
        self.log.synced = self.log.synced.max(frame.synced);
        self.log.end = Position(position.0 + u64::from(frame.len));
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
                self.moving.forget(life);
                match self.journals.remove(&life) {
                    Some((_, mirror)) => {
                        self.log.sync()?;
                        mirror.remove()
                    }
                    None => Ok(()),
                }
            }
            Body::Append(append) => self.append(append, frame),
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
                let life = Life::new(*life);
                if let Body::Damaged(mark) = &frame.body {
                    let span = Span::between(offset(mark.begin), offset(mark.end));
                    self.told.entry(life).or_default().insert(span);
                }
                match self.journals.get_mut(&life) {
                    Some((ledger, _)) if position > ledger.as_of => {
                        damage::before_mark(ledger, &frame.body);
                        ledger.apply(&frame.body, position);
                    }
                    Some(_) => {}
                    None => self.saw(life, damage::implied_end(&frame.body)),
                }
                Ok(())
            }
        }
    }

    /// A record of a journal whose creation no record tells: that one was damaged.
    fn saw(&mut self, life: Life, end: Offset) {
        if !self.ended.contains(&life) {
            let known = self.headless.entry(life).or_default();
            *known = end.max(*known);
        }
    }

    /// `append` is what the frame has.
    fn append(&mut self, append: &record::Append, frame: &Frame) -> Result<(), Error> {
        let position = frame.position;
        let life = Life::new(append.life);
        let content = self.content(append)?;
        let span = Span::at(offset(append.begin), append.len);
        let Some((ledger, _)) = self.journals.get_mut(&life) else {
            self.saw(life, span.end());
            return Ok(());
        };
        let is_folded = position <= ledger.as_of;
        if is_folded {
            if !ledger.local.covers(span) {
                return Ok(());
            }
        } else {
            damage::before_append(ledger, span.begin(), offset(append.spool_begin));
        }
        let is_good = match &content {
            Some(content) => {
                self.put(life, span.begin(), content)?;
                if let Some(missing) = self.missing.get_mut(&life) {
                    missing.remove(span);
                }
                self.recovered.bytes += span.len();
                true
            }
            // The move may have been done already, and the staging file used again.
            None => {
                self.settle_one(life)?;
                let (_, mirror) = &self.journals[&life];
                mirror.distrust();
                mirror.checksum(span).is_ok_and(|crc| crc == append.crc)
            }
        };
        let (ledger, _) = self.journals.get_mut(&life).expect("it was there");
        if !is_folded {
            if !is_good {
                self.suspects.entry(life).or_insert_with(|| (ledger.clone(), position));
            }
            ledger.apply(&frame.body, position);
        }
        if !is_good {
            let mark = mark(life, span);
            fold(ledger, Body::Damaged(mark));
        }
        if self.moving.is_full() {
            self.settle()?;
        }
        Ok(())
    }

    /// Writes what mirrors do not have yet. Due when the last record was taken.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.moving.lives().into_iter().try_for_each(|life| self.settle_one(life))
    }

    /// The same for one journal, which is there: what is held is forgotten with it.
    fn settle_one(&mut self, life: Life) -> Result<(), Error> {
        self.with_room(|journals, moving| {
            let (ledger, mirror) = &journals[&life];
            moving.settle(ledger, mirror)
        })
    }

    fn put(&mut self, life: Life, begin: Offset, content: &[u8]) -> Result<(), Error> {
        self.with_room(|journals, moving| {
            let (ledger, mirror) = &journals[&life];
            moving.put(ledger, mirror, begin, content)
        })
    }

    /// Does what writes into mirrors; where the disk is full, again when there is room.
    fn with_room(
        &mut self,
        mut write: impl FnMut(&BTreeMap<Life, (Ledger, Mirror)>, &mut Moving) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut written = write(&self.journals, &mut self.moving);
        for makes_room in [Replay::make_room, Replay::take_reserve] {
            match written {
                Err(error) if error.is_full() => {
                    tracing::warn!(%error, "the disk is full: what is not needed goes first");
                    makes_room(self)?;
                    written = write(&self.journals, &mut self.moving);
                }
                written => return written,
            }
        }
        written
    }

    /// Frees what was kept for a start.
    fn take_reserve(&mut self) -> Result<(), Error> {
        ground::drop_ballast(&*self.disk)
    }

    /// Frees what the log needs no more, by what of it was read: a power cut may have undone that
    /// it was freed, and the room that was reserved for content with it. All of it goes at the end
    /// of a recovery in any case.
    fn make_room(&mut self) -> Result<(), Error> {
        self.log.sync()?;
        let is_old = |number: &u32| *number < self.log.start.segment();
        for path in log::numbers(&*self.disk)?.filter(is_old).map(log::path_of) {
            self.disk.remove(&path).map_err(Error::disk("remove", &path))?;
        }
        for (ledger, mirror) in self.journals.values() {
            // What is known of one with a suspect may be taken back.
            if !self.suspects.contains_key(&ledger.life) {
                self.log.free_gaps(ledger, mirror)?;
                mirror.close();
            }
        }
        Ok(())
    }

    /// The content of an append, if it is all there.
    fn content(&mut self, append: &record::Append) -> Result<Option<bytes::Bytes>, Error> {
        let Some(staged) = append.staged else { return Ok(Some(append.content.clone())) };
        if !self.staged.contains_key(&staged.file) {
            let path = staging::path_of(staged.file);
            match self.disk.open(&path, Open::Read) {
                Ok(file) => self.staged.insert(staged.file, file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(Error::disk("open", path)(error)),
            };
        }
        let file = &self.staged[&staged.file];
        let content = read_file(&**file, staged.offset, append.len);
        Ok(content.ok().filter(|bytes| crc32c::crc32c(bytes) == append.crc).map(Into::into))
    }

    /// Staged content that does not verify ends its journal there, if the log was never synced
    /// beyond its record; else it is damage, and what follows stays.
    pub fn settle_suspects(&mut self, is_other_boot: bool) -> Result<(), Error> {
        for (life, (mut before, position)) in std::mem::take(&mut self.suspects) {
            let Some((ledger, mirror)) = self.journals.get_mut(&life) else { continue };
            if is_other_boot && position >= self.log.synced {
                before.keep_given_up(ledger);
                mirror.truncate(before.head)?;
                *ledger = before;
                self.recovered.cut_records += 1;
            }
        }
        Ok(())
    }

    /// Without a checkpoint a journal goes on behind all that may have been shown: what its mirror
    /// had is damaged, since nothing vouches for it, and after another boot so much more is lost as
    /// a ceiling may have been above it.
    pub fn keep_ends(
        &mut self,
        ends: &BTreeMap<Life, Offset>,
        is_other_boot: bool,
    ) -> Result<(), Error> {
        for (life, (ledger, mirror)) in &mut self.journals {
            let end = ends.get(life).copied().unwrap_or_default();
            if end > ledger.head {
                damage::close(ledger, end);
                mirror.begin_file(end)?;
            }
            if is_other_boot && ledger.head > Offset::ZERO {
                let above = ledger.head.checked_add(limits::CEILING_STEP_MAX);
                ledger.ceiling = ledger.ceiling.max(above.unwrap_or(ledger.head));
            }
        }
        Ok(())
    }

    /// After another boot a head resumes at its ceiling: offsets below it may have been shown.
    pub fn close_gaps(&mut self, is_other_boot: bool) -> Result<(), Error> {
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
    pub fn fit_mirrors(&mut self) -> Result<(), Error> {
        for (ledger, mirror) in self.journals.values_mut() {
            mirror.truncate(ledger.head)?;
            let mut missing = missing(&ledger.local, mirror)?;
            let hidden = self.missing.remove(&ledger.life).unwrap_or_default();
            hidden.iter().for_each(|span| missing.insert(span));
            // Of what was evicted or trimmed since nothing is missed.
            let missing = missing.iter().flat_map(|span| ledger.local.overlaps(span));
            for span in missing.collect::<Vec<_>>() {
                let stored = ledger.closed.iter().filter(|closed| damage::is_stored(closed));
                let stored = stored.map(|closed| closed.span);
                let stored: SpanSet = stored.collect();
                let body = match stored.covers(span) {
                    true => Body::Evicted(mark(ledger.life, span)),
                    false => Body::Damaged(mark(ledger.life, span)),
                };
                fold(ledger, body);
            }
            self.log.free_gaps(ledger, mirror)?;
            mirror.close();
            let name = &ledger.name;
            let damaged = ledger.damaged.iter().map(|span| (name.clone(), span));
            self.recovered.damaged.extend(damaged);
            let told = self.told.remove(&ledger.life).unwrap_or_default();
            let found = ledger.damaged.iter().flat_map(|span| told.gaps(span));
            self.recovered.found_damaged.extend(found.map(|span| (name.clone(), span)));
        }
        Ok(())
    }

    /// Makes the mirrors durable, for a checkpoint.
    pub fn sync(&self) -> Result<(), Error> {
        for (_, mirror) in self.journals.values().filter(|(_, mirror)| mirror.is_dirty()) {
            mirror.sync()?;
            mirror.close();
        }
        // A life that was killed before its checkpoint has not synced the names of its files.
        self.disk.sync_dir(Path::new(mirror::DIR)).map_err(Error::disk("sync", mirror::DIR))
    }

    /// Finds what records said that are damaged: the ends of journals, by their mirrors; and, where
    /// the log itself says that it has damage, what was freed since.
    pub fn find_damage(&mut self, log_is_damaged: bool) -> Result<(), Error> {
        for (ledger, mirror) in self.journals.values_mut() {
            damage::keep_end(ledger, mirror)?;
            if log_is_damaged {
                damage::verify(ledger, mirror)?;
            }
        }
        Ok(())
    }

    /// Journals without a ledger, and where they end: by records that named them, and by files of
    /// theirs that were moved out of the way.
    pub fn headless(&self) -> Result<BTreeMap<Life, Offset>, Error> {
        let mut headless = self.headless.clone();
        let lost = Path::new(LOST_AND_FOUND);
        for entry in self.disk.list(lost).map_err(Error::disk("list", lost))? {
            // One of which nothing was local has no mirror.
            if let Some(life) = life_of(&entry.name) {
                headless.entry(life).or_default();
                continue;
            }
            let Some((life, first)) = mirror::parse_name(&entry.name) else { continue };
            let end = Offset::try_from(first.saturating_add(entry.len)).unwrap_or_default();
            let known = headless.entry(life).or_default();
            *known = end.max(*known);
        }
        Ok(headless)
    }

    /// Removes the local files that no journal owns: of a copy, whose original has them.
    pub fn remove_orphans(&mut self) -> Result<(), Error> {
        for (life, firsts) in std::mem::take(&mut self.files) {
            Mirror::new(self.disk.clone(), life, firsts).remove()?;
        }
        Ok(())
    }

    /// Local files that no journal owns are kept, out of the way, and named.
    pub fn find_orphans(&mut self) -> Result<(), Error> {
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

/// The log that is read. What was read may be in the page cache alone, after the death of a
/// process: nothing may go by its word before it is durable.
struct ReadLog {
    disk: Arc<dyn Disk>,
    start: Position,
    /// How far it was synced, by its own word.
    synced: Position,
    /// How far it was made durable here.
    durable: Option<Position>,
    /// How far it was read.
    end: Position,
}

impl ReadLog {
    fn sync(&mut self) -> Result<(), Error> {
        if self.durable.is_none_or(|durable| durable < self.end) {
            // By the checkpoint's name it begins where it does.
            self.disk.sync_dir(Path::new("")).map_err(Error::disk("sync", "the directory"))?;
            let from = self.durable.unwrap_or(self.start).max(self.synced);
            log::rewrite(&*self.disk, from, self.end)?;
            self.durable = Some(self.end);
        }
        Ok(())
    }

    /// Frees bytes whose eviction was recorded, and that were not freed before the stop.
    fn free_gaps(&mut self, ledger: &Ledger, mirror: &Mirror) -> Result<(), Error> {
        let local = &ledger.local;
        let slack = limits::BLOCK * 2 * (1 + local.iter().count() as u64);
        if mirror.allocated()? <= local.len() + slack {
            return Ok(());
        }
        self.sync()?;
        // What is damaged is nobody's to read, and stays for whoever wants to save some of it.
        let mut kept = local.clone();
        ledger.damaged.iter().for_each(|span| kept.insert(span));
        let gaps = kept.gaps(Span::between(Offset::ZERO, ledger.head));
        gaps.into_iter().try_for_each(|gap| mirror.free(gap).map(drop))
    }
}

/// The parts of `local` that the files do not reach.
fn missing(local: &SpanSet, mirror: &Mirror) -> Result<SpanSet, Error> {
    let there: SpanSet = mirror.extents()?.into_iter().collect();
    Ok(local.iter().flat_map(|span| there.gaps(span)).collect())
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
                let path = staging::path_of(staged.file);
                let file = disk.open(&path, Open::Read).map_err(Error::disk("open", &path))?;
                read_file(&*file, staged.offset, append.len).map_err(Error::disk("read", &path))?
            }
        };
        if crc32c::crc32c(&content) == append.crc {
            mirror.write(offset(append.begin), &content)?;
        }
        Ok(())
    })?;
    Ok(())
}
