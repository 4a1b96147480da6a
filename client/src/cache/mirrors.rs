//! All mirrors of a cache: found by journal, bounded by the budget, put away at a clean stop.

use super::kept::{Kept, State};
use super::limits::{MIRRORS_MAX, REST};
use super::recall::Recalls;
use super::refused::Refused;
use super::saved::{self, Saved, SavedMirror};
use super::totals::{Sums, Totals};
use super::usage::Piece;
use crate::{Loan, Stat};
use index::Error;
use index::disk::{Disk, Lock};
use index::mirror::{self, Mirror};
use protocol::{Journal, Life, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::time::Instant;

/// The file that is locked while a mount has the cache.
const LOCK: &str = "lock";

/// See the module.
pub(super) struct Mirrors {
    disk: Arc<dyn Disk>,
    totals: Arc<Totals>,
    table: Mutex<BTreeMap<Journal, Arc<Kept>>>,
    /// Counts uses.
    ticks: Arc<AtomicU64>,
    /// Nothing is written before this: the local disk failed.
    rests_until: Mutex<Option<Instant>>,
    pub recalls: Recalls,
    /// Held while bytes are freed: one does it for all.
    freeing: Mutex<()>,
    /// Where the journals come from: another source has other lives of the same number.
    source: String,
    _lock: Lock,
}

/// What was freed, and whether it is what was needed.
struct Freed {
    len: u64,
    is_enough: bool,
}

impl Mirrors {
    /// Takes the directory, with what a clean stop left there of this boot and source, and removes
    /// everything else in it.
    pub fn open(disk: Arc<dyn Disk>, budget: u64, source: String) -> Result<Self, Refused> {
        let dir = Path::new(mirror::DIR);
        disk.create_dir(dir).map_err(Refused::disk(&*disk, dir))?;
        let lock = disk.lock(Path::new(LOCK)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => Refused::InUse(disk.place(Path::new(""))),
            _ => Refused::Disk(disk.place(Path::new(LOCK)), error),
        })?;
        let mirrors = Mirrors {
            totals: Arc::new(Totals::new(budget)),
            table: Mutex::default(),
            ticks: Arc::new(AtomicU64::new(1)),
            rests_until: Mutex::default(),
            recalls: Recalls::default(),
            freeing: Mutex::default(),
            source,
            _lock: lock,
            disk,
        };
        // Removed by being read: whatever ends this process otherwise leaves no list.
        let saved = saved::take(&*mirrors.disk, &mirrors.source)?;
        mirrors.adopt(saved)?;
        mirrors.free_excess();
        Ok(mirrors)
    }

    /// Takes over what was put away, and removes the files that nobody knows.
    fn adopt(&self, saved: Vec<SavedMirror>) -> Result<(), Refused> {
        let dir = Path::new(mirror::DIR);
        let mut known: BTreeSet<PathBuf> = BTreeSet::new();
        for saved in saved {
            let path = mirror::path_of(saved.life(), 0);
            if let Some(kept) = self.adopted(saved) {
                known.insert(path);
                self.table().insert(kept.journal.clone(), Arc::new(kept));
            }
        }
        for entry in self.disk.list(dir).map_err(Refused::disk(&*self.disk, dir))? {
            let path = dir.join(entry.name);
            if !known.contains(&path) {
                self.disk.remove(&path).map_err(Refused::disk(&*self.disk, &path))?;
            }
        }
        Ok(())
    }

    /// A mirror that was put away, if its file still has its bytes.
    fn adopted(&self, saved: SavedMirror) -> Option<Kept> {
        let (journal, life) = (saved.journal(), saved.life());
        let state: State = saved.into_state();
        let end = state.local.iter().next_back()?.end();
        let mirror = Mirror::new(self.disk.clone(), life, [0]);
        let reaches = mirror.extents().ok()?.first()?.end();
        if reaches < end || mirror.truncate(end).is_err() {
            return None;
        }
        let kept = Kept::over(mirror, self.totals.clone(), journal, life, state);
        kept.touch(self.tick());
        Some(kept)
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<Journal, Arc<Kept>>> {
        self.table.lock().expect("no holder panics")
    }

    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub fn sums(&self) -> Sums {
        self.totals.sums()
    }

    pub fn budget(&self) -> u64 {
        self.totals.budget()
    }

    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// The mirror of a journal, whatever its life.
    pub fn find(&self, journal: &Journal) -> Option<Arc<Kept>> {
        self.table().get(journal).filter(|kept| !kept.is_gone()).cloned()
    }

    /// The mirror of one life of a journal.
    pub fn of(&self, journal: &Journal, life: Life) -> Option<Arc<Kept>> {
        self.find(journal).filter(|kept| kept.life == life)
    }

    /// Notes what a journal is. A mirror of another life of it is removed.
    pub fn learn(&self, stat: &Stat) -> Option<Arc<Kept>> {
        let kept = self.find(&stat.journal)?;
        if kept.life != stat.life {
            self.forget(&kept);
            return None;
        }
        kept.learn(stat);
        Some(kept)
    }

    /// The mirror of the journal that `stat` is of, made if there is none. `None` while the local
    /// disk rests.
    pub fn make(&self, stat: &Stat) -> Option<Arc<Kept>> {
        if let Some(kept) = self.learn(stat) {
            return Some(kept);
        }
        if self.rests() {
            return None;
        }
        let mut table = self.table();
        // Two readers may make it at once: the second finds the first's.
        match table.get(&stat.journal) {
            Some(kept) if kept.is_gone() => kept.removed(),
            Some(kept) => return (kept.life == stat.life).then(|| kept.clone()),
            None => {}
        }
        let made = Kept::new(self.disk.clone(), self.totals.clone(), stat);
        let kept = Arc::new(made.map_err(|error| self.failed(&error)).ok()?);
        table.insert(stat.journal.clone(), kept.clone());
        let is_over = table.len() > MIRRORS_MAX;
        drop(table);
        if is_over {
            self.drop_oldest();
        }
        Some(kept)
    }

    /// The journal's life has ended: its bytes go.
    pub fn forget(&self, kept: &Arc<Kept>) {
        kept.remove();
        let mut table = self.table();
        if table.get(&kept.journal).is_some_and(|found| Arc::ptr_eq(found, kept)) {
            table.remove(&kept.journal);
        }
    }

    pub fn lend(&self, journal: &Journal) -> Option<(Arc<Kept>, Loan)> {
        let kept = self.find(journal)?;
        if self.recalls.has(kept.life) {
            if kept.is_lent() {
                return None;
            }
            // It was named just when the last loan came back.
            self.recalls.returned(kept.life);
        }
        let loan = super::loan::lend(&kept, &self.ticks)?;
        Some((kept, loan))
    }

    /// Whether it would be lent, which this does not do: nothing is used by being looked at.
    pub fn may_lend(&self, journal: &Journal, life: Life) -> bool {
        let kept = self.of(journal, life).filter(|_| !self.recalls.has(life));
        kept.is_some_and(|kept| super::loan::may_lend(&kept))
    }

    /// Keeps bytes, and the budget. `false` where they are not kept.
    pub fn keep(&self, kept: &Kept, offset: Offset, content: &[u8]) -> bool {
        let tick = self.tick();
        self.write(kept, || kept.keep(offset, content, tick))
    }

    /// Keeps what was appended here, where the bytes before it are kept.
    pub fn keep_next(&self, kept: &Kept, span: Span, content: &[u8]) -> bool {
        let tick = self.tick();
        self.write(kept, || kept.keep_next(span, content, tick))
    }

    /// Does what writes to a mirror, unless the local disk rests. Its failure is nobody else's:
    /// what is not kept is read from elsewhere.
    fn write(&self, kept: &Kept, write: impl Fn() -> Result<bool, Error>) -> bool {
        if !self.takes(kept) {
            return false;
        }
        let written = match write() {
            // Somebody else filled the disk: others' bytes make room for what comes.
            Err(error) if error.is_full() && self.free(|| self.totals.budget() / 16, 0).len > 0 => {
                write()
            }
            written => written,
        };
        match written {
            Ok(is_kept) => {
                self.free_excess();
                is_kept
            }
            Err(error) => {
                self.failed(&error);
                false
            }
        }
    }

    /// Whether bytes for a mirror are written for now. Readers of one that is lent have nothing
    /// else, so that it is tried each time.
    pub fn takes(&self, kept: &Kept) -> bool {
        !self.rests() || kept.is_lent()
    }

    fn rests(&self) -> bool {
        let mut rests_until = self.rests_until.lock().expect("no holder panics");
        if rests_until.is_some_and(|until| Instant::now() >= until) {
            *rests_until = None;
        }
        rests_until.is_some()
    }

    fn failed(&self, error: &Error) {
        let until = Instant::now() + REST;
        let before = self.rests_until.lock().expect("no holder panics").replace(until);
        if before.is_none() {
            tracing::warn!(%error, rest = ?REST, "the cache takes nothing for a while");
        }
    }

    /// Whether there is more than the budget has room for.
    pub fn is_over(&self) -> bool {
        self.totals.excess() > 0
    }

    /// Frees what is over the budget.
    pub fn free_excess(&self) {
        let over_lent = self.totals.over_lent();
        if over_lent == 0 {
            self.recalls.end();
        }
        if !self.is_over() {
            return;
        }
        // A little more, so that not every new byte asks for another round.
        let freed = self.free(|| self.totals.excess(), self.totals.budget() / 16);
        // A file that a handle of an earlier life has open is not punched, but can be removed.
        if !freed.is_enough && self.totals.own_len() > 0 {
            self.drop_oldest();
        }
        if self.is_over() {
            self.recalls.name_largest(&self.all(), over_lent);
        }
    }

    fn all(&self) -> Vec<Arc<Kept>> {
        self.table().values().cloned().collect()
    }

    /// Frees the pieces that were read once, the oldest first, and where these are not `needed`
    /// bytes, those that were not used for longest: with `ahead` bytes more. What is lent stays.
    fn free(&self, needed: impl FnOnce() -> u64, ahead: u64) -> Freed {
        let _freeing = self.freeing.lock().expect("no holder panics");
        // Others may have freed something meanwhile.
        let needed = needed();
        if needed == 0 || self.totals.own_len() == 0 {
            return Freed { len: 0, is_enough: needed == 0 };
        }
        let mut pieces: Vec<(Piece, Arc<Kept>)> = Vec::new();
        for kept in self.all() {
            pieces.extend(kept.evictable().into_iter().map(|piece| (piece, kept.clone())));
        }
        pieces.sort_by_key(|(piece, _)| piece.used);
        let (cold, others): (Vec<_>, Vec<_>) = pieces.iter().partition(|(piece, _)| piece.is_cold);
        let mut freed = 0;
        for pieces in [cold, others] {
            if freed >= needed {
                break;
            }
            for (piece, kept) in pieces {
                if freed >= needed + ahead {
                    break;
                }
                freed += kept.evict(piece.span);
            }
        }
        Freed { len: freed, is_enough: freed >= needed }
    }

    /// Removes the mirror that was not used for longest and is not lent.
    fn drop_oldest(&self) {
        let all = self.all();
        let oldest = all.iter().map(|kept| (kept.last_used(), kept)).min_by_key(|(used, _)| *used);
        if let Some((used, kept)) = oldest
            && used < u64::MAX
        {
            self.forget(kept);
        }
    }

    /// Writes the list of what is here, which the next start on this boot goes on with.
    pub fn save(&self) -> std::io::Result<()> {
        let mirrors = self.all();
        let mirrors = mirrors.iter().filter_map(|kept| SavedMirror::of(kept)).collect();
        let boot = self.disk.boot_id()?;
        saved::put(&*self.disk, &Saved { source: self.source.clone(), boot, mirrors })
    }
}
