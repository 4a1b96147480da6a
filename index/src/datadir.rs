//! A data directory: its log, its journals, and the rounds that keep both going.
//!
//! Nothing here runs by itself. [`crate::driver`] calls the rounds from its threads; a simulation
//! or a test calls them where it likes.

use crate::Error;
use crate::checkpoint::Checkpoint;
use crate::clock::Clock;
use crate::disk::{Disk, Lock};
use crate::ground;
use crate::hold::{Hold, Holds};
use crate::ledger::Ledger;
use crate::limits;
use crate::log::{Log, Purpose};
use crate::lost;
use crate::mirror::Mirror;
use crate::pins::Pins;
use crate::record::{self, Body, Position, Record};
use crate::recover::{self, Before, Recovered};
use crate::replica::Replica;
use crate::staging::{Staging, Upload};
use crate::unsynced::Unsynced;
use protocol::{Journal, Life, Offset};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Where local files that no journal owns are moved to. Nothing deletes them.
pub const LOST_AND_FOUND: &str = "lost+found";

/// How a data directory is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of a log segment; `None` takes it from the disk's size.
    pub segment_len: Option<u64>,
    /// Content up to here lies in its record.
    pub inline_max: u64,
    /// Local bytes beyond which persisted ones are evicted, and appends are refused where none can
    /// be. `None`: as the disk allows.
    pub local_budget: Option<u64>,
    /// Free bytes that eviction keeps; `None` takes a twentieth of the disk, at most 1 GiB.
    pub min_free: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_len: None,
            inline_max: limits::INLINE_MAX,
            local_budget: None,
            min_free: None,
        }
    }
}

impl Options {
    /// Those of who opens a directory for its own sake, and appends nothing: a log that is short.
    pub(crate) fn offline() -> Self {
        Options { segment_len: Some(limits::SEGMENT_LEN_MIN), ..Options::default() }
    }
}

/// What the journals of a directory share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub log: Log,
    /// Staged bytes past which a checkpoint is due.
    staged_max: u64,
    pub staging: Arc<Staging>,
    replicas: Mutex<BTreeMap<Life, Arc<Replica>>>,
    /// Replicas with records that no sync covered yet.
    dirty: Mutex<Vec<Arc<Replica>>>,
    wanted: Mutex<bool>,
    wake: Condvar,
    /// The same for who waits as a task.
    wake_task: tokio::sync::Notify,
    /// Replicas with synced content that is too large for the thread that syncs.
    large: Mutex<Vec<Arc<Replica>>>,
    large_wake: Condvar,
    large_wake_task: tokio::sync::Notify,
    /// The last round of moving failed, and left what it had to move.
    move_failed: AtomicBool,
    /// Tells those who wait for room in memory that a sync ended.
    synced: tokio::sync::Notify,
    closing: AtomicBool,
    /// Local bytes refused for now: the budget is used up and nothing can be evicted.
    over_budget: AtomicBool,
    local_len: AtomicU64,
    /// Local bytes that the kernel reads by itself.
    pub pins: Pins,
    pub unsynced: Unsynced,
    pub holds: Holds,
    /// Spools that rolled since the directory was opened.
    rolled: AtomicU64,
    /// Mirrors with open files that nobody uses.
    resting: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub struct DataDir {
    shared: Arc<Shared>,
    /// One checkpoint, creation or deletion at a time.
    changing: Mutex<()>,
    /// Journals that lost their records, until they are created again.
    headless: Mutex<recover::Headless>,
    _lock: LockGuard,
}

struct LockGuard(#[allow(dead_code, reason = "held for its drop")] Lock);

impl std::fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LockGuard")
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

impl Shared {
    /// Refuses content for which the budget has no room.
    pub fn admit(&self, len: u64) -> Result<(), Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::Closing);
        }
        match self.options.local_budget {
            Some(budget) if self.over_budget.load(Ordering::Relaxed) => {
                Err(Error::OverBudget { budget })
            }
            _ => {
                self.local_len.fetch_add(len, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// A spool has rolled.
    pub fn count_rolled(&self) {
        self.rolled.fetch_add(1, Ordering::Relaxed);
    }

    pub fn replica(&self, life: Life) -> Option<Arc<Replica>> {
        locked(&self.replicas).get(&life).cloned()
    }

    /// Puts a replica down for the next sync round, once.
    pub fn mark_dirty(&self, is_dirty: &mut bool, replica: impl FnOnce() -> Option<Arc<Replica>>) {
        if !std::mem::replace(is_dirty, true) {
            locked(&self.dirty).extend(replica());
        }
    }

    /// Somebody waits for a sync: the driver need not wait for its second.
    pub fn wake_sync(&self) {
        *locked(&self.wanted) = true;
        self.wake.notify_one();
        self.wake_task.notify_one();
    }

    /// A journal has more to move than the thread that found it may move.
    pub fn leave_to_mover(&self, replica: Arc<Replica>) {
        locked(&self.large).push(replica);
        self.wake_move();
    }

    fn wake_move(&self) {
        self.large_wake.notify_one();
        self.large_wake_task.notify_one();
    }

    /// Bytes that wait in memory for a sync.
    fn unsynced_len(&self) -> u64 {
        self.staging.unsynced_len() + self.log.unsynced_len()
    }

    /// Asks for a sync when much waits for one.
    pub fn sync_soon(&self) {
        if self.unsynced_len() > limits::UNSYNCED_SOON {
            self.wake_sync();
        }
    }

    /// Waits until what no sync covered is within its bound.
    pub async fn unsynced_room(&self) {
        while self.unsynced_len() > limits::UNSYNCED_MAX && !self.closing.load(Ordering::Acquire) {
            let synced = self.synced.notified();
            if self.unsynced_len() <= limits::UNSYNCED_MAX {
                return;
            }
            self.wake_sync();
            synced.await;
        }
    }
}

impl DataDir {
    /// Opens a directory, or makes a new one, and recovers what an earlier life left.
    ///
    /// Fails where another process holds it, where a newer release wrote it, and where the file
    /// system can't punch holes.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<(Arc<DataDir>, Recovered), Error> {
        DataDir::open_after(Before::Stop, disk, clock, options)
    }

    /// The same, for what is known to have been before.
    pub(crate) fn open_after(
        before: Before,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<(Arc<DataDir>, Recovered), Error> {
        // A directory of a newer release, or with such a file of somebody else, stays as it is.
        let is_marked = ground::check_format(&*disk)?;
        ground::make_dirs(&*disk)?;
        let lock = ground::take_lock(&*disk)?;
        let is_unmarked = !is_marked && ground::write_format(&*disk)?;
        ground::check_punch(&*disk)?;
        let space = disk.space().map_err(Error::disk("stat", "the file system"))?;
        let by_size = (space.total / 16).clamp(limits::SEGMENT_LEN_MIN, limits::SEGMENT_LEN);
        let segment_len = options.segment_len.unwrap_or(by_size);
        let (log, journals, headless, mut recovered) =
            recover::recover(&disk, segment_len, before)?;
        recovered.is_unmarked = is_unmarked;
        let local_len = journals.iter().map(|(ledger, _)| ledger.local.len()).sum();
        let room =
            options.local_budget.unwrap_or(u64::MAX).min(space.free.saturating_add(local_len));
        let shared = Arc::new(Shared {
            staging: Arc::new(Staging::new(disk.clone())),
            disk,
            clock,
            options,
            log,
            staged_max: (space.total / 16).min(limits::STAGED_PER_CHECKPOINT),
            replicas: Mutex::default(),
            dirty: Mutex::default(),
            wanted: Mutex::default(),
            wake: Condvar::new(),
            wake_task: tokio::sync::Notify::new(),
            large: Mutex::default(),
            large_wake: Condvar::new(),
            large_wake_task: tokio::sync::Notify::new(),
            move_failed: AtomicBool::new(false),
            synced: tokio::sync::Notify::new(),
            closing: AtomicBool::new(false),
            over_budget: AtomicBool::new(false),
            local_len: AtomicU64::new(local_len),
            pins: Pins::within(room),
            unsynced: Unsynced::default(),
            holds: Holds::default(),
            rolled: AtomicU64::new(0),
            resting: AtomicU64::new(0),
        });
        for (ledger, mirror) in journals {
            let replica = Replica::new(shared.clone(), ledger, mirror);
            locked(&shared.replicas).insert(replica.life(), replica);
        }
        let (changing, headless) = (Mutex::default(), Mutex::new(headless));
        let data = DataDir { shared, changing, headless, _lock: LockGuard(lock) };
        ground::keep_ballast(&**data.disk())?;
        Ok((Arc::new(data), recovered))
    }

    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.shared.disk
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub fn log(&self) -> &Log {
        &self.shared.log
    }

    pub fn replica(&self, life: Life) -> Option<Arc<Replica>> {
        self.shared.replica(life)
    }

    /// All journals, by life.
    pub fn replicas(&self) -> Vec<Arc<Replica>> {
        locked(&self.shared.replicas).values().cloned().collect()
    }

    /// Begins a journal's life here. Durable with the next sync. Where it began already, and its
    /// files were set aside, they are taken back; where the records of that are damaged, it goes on
    /// behind what is damaged.
    pub fn create(&self, life: Life, name: &Journal) -> Result<Arc<Replica>, Error> {
        let _changing = locked(&self.changing);
        if let Some(replica) = self.taken_back(life)? {
            return Ok(replica);
        }
        let mut replicas = locked(&self.shared.replicas);
        if replicas.contains_key(&life) {
            return Err(Error::Exists(life));
        }
        let created = record::Created { life: life.get(), name: name.as_str().to_owned() };
        let record = Record { body: Some(Body::Created(created)) };
        let position = self.shared.log.append(&record, Purpose::Append)?;
        let mut ledger = Ledger::new(life, name.clone(), position);
        let mirror = Mirror::new(self.shared.disk.clone(), life, []);
        let mut headless = locked(&self.headless);
        if let Some(end) = headless.get(&life).copied().filter(|end| *end > Offset::ZERO) {
            tracing::error!(%name, %life, %end, "its records are damaged: it goes on behind them");
            let damaged = record::Mark { life: life.get(), begin: 0, end: end.get() };
            let record = Record { body: Some(Body::Damaged(damaged)) };
            let position = self.shared.log.append(&record, Purpose::Mark)?;
            ledger.apply(record.body.as_ref().expect("was just put in"), position);
            mirror.begin_file(end)?;
        }
        headless.remove(&life);
        let replica = Replica::new(self.shared.clone(), ledger, mirror);
        replicas.insert(life, replica.clone());
        Ok(replica)
    }

    /// Takes a journal back whose files were set aside, if there are some.
    pub(crate) fn take_back(&self, life: Life) -> Result<Option<Arc<Replica>>, Error> {
        let _changing = locked(&self.changing);
        self.taken_back(life)
    }

    /// The same, for who holds `changing`: as at a start, where nothing holds the checkpoint yet.
    fn taken_back(&self, life: Life) -> Result<Option<Arc<Replica>>, Error> {
        // Files there are known to be of a journal without records.
        if self.replica(life).is_some() || !locked(&self.headless).contains_key(&life) {
            return Ok(None);
        }
        let Some((ledger, mirror)) = lost::take_back(self.disk(), life)? else { return Ok(None) };
        let replica = Replica::new(self.shared.clone(), ledger, mirror);
        locked(&self.shared.replicas).insert(life, replica.clone());
        // No record tells of it.
        self.write_checkpoint()?;
        locked(&self.headless).remove(&life);
        lost::forget(&**self.disk(), life)?;
        let (name, head) = (replica.name(), replica.head());
        tracing::warn!(%name, %head, "its files were in lost+found, and are taken back");
        Ok(Some(replica))
    }

    /// Ends a journal's life: the record is synced, then the files go.
    pub fn delete(&self, life: Life) -> Result<(), Error> {
        let replica = self.shared.replica(life).ok_or(Error::Deleted(life))?;
        {
            let _changing = locked(&self.changing);
            let mark = record::Mark { life: life.get(), ..record::Mark::default() };
            let record = Record { body: Some(Body::Deleted(mark)) };
            replica.end();
            self.shared.log.append(&record, Purpose::Mark)?;
            locked(&self.shared.replicas).remove(&life);
        }
        self.sync_round()?;
        self.shared.local_len.fetch_sub(replica.local_len(), Ordering::Relaxed);
        match self.shared.holds.defer(&replica) {
            true => Ok(()),
            false => replica.mirror().remove(),
        }
    }

    /// Has nothing freed until the hold is dropped. There is one at a time; see [`Hold`].
    pub fn hold(self: &Arc<Self>) -> Result<Hold, Error> {
        Hold::begin(self.clone())
    }

    /// Whether nothing may be freed at the moment.
    pub fn is_held(&self) -> bool {
        self.shared.holds.is_held()
    }

    pub(crate) fn holds(&self) -> &Holds {
        &self.shared.holds
    }

    /// Does something while no journal begins or ends, and no checkpoint is written.
    pub(crate) fn at_rest<T>(&self, doing: impl FnOnce(&Self) -> T) -> T {
        let _changing = locked(&self.changing);
        doing(self)
    }

    /// Makes durable what was recorded below a place of the log.
    pub(crate) fn sync_to(&self, target: Position) -> Result<(), Error> {
        self.shared.staging.sync()?;
        self.shared.log.sync(target)
    }

    /// A place for content that comes as a stream.
    pub fn stage(&self) -> Result<Upload, Error> {
        if self.shared.closing.load(Ordering::Acquire) {
            return Err(Error::Closing);
        }
        self.shared.staging.begin()
    }

    /// The time of the oldest append that no sync covered, in microseconds since the epoch. `None`
    /// where there is none; it is of use where some bytes are not synced.
    pub fn unsynced_since_us(&self) -> Option<u64> {
        self.shared.unsynced.since_us()
    }

    /// Makes durable all that is recorded, and moves on what waited for it. Blocks on the disk.
    pub fn sync_round(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let dirty = std::mem::take(&mut *locked(&shared.dirty));
        let snapshots: Vec<_> = dirty.iter().map(|replica| replica.snapshot()).collect();
        // Staged content before the records that name it.
        let target = shared.log.position();
        let since_us = shared.unsynced.begin();
        let synced = shared.staging.sync().and_then(|()| shared.log.sync(target));
        shared.synced.notify_waiters();
        if let Err(error) = synced {
            shared.unsynced.put_back(since_us);
            for replica in dirty {
                let again = replica.clone();
                shared.mark_dirty(replica.state().is_dirty_mut(), || Some(again));
            }
            return Err(error);
        }
        let mut result = Ok(());
        for (replica, snapshot) in dirty.iter().zip(snapshots) {
            match replica.on_synced(snapshot) {
                Ok(true) => {}
                Ok(false) => shared.leave_to_mover(replica.clone()),
                Err(error) => {
                    let again = replica.clone();
                    shared.mark_dirty(replica.state().is_dirty_mut(), || Some(again));
                    result = Err(error);
                }
            }
        }
        result
    }

    /// Moves a share of each large piece that other threads left, into its mirror; another round is
    /// wanted where something is left. Blocks on the disk.
    pub fn move_round(&self) -> Result<(), Error> {
        let large = std::mem::take(&mut *locked(&self.shared.large));
        let mut result = Ok(());
        for replica in large {
            match replica.drain_large() {
                Ok(true) => {}
                Ok(false) => self.shared.leave_to_mover(replica),
                Err(error) => {
                    locked(&self.shared.large).push(replica);
                    result = Err(error);
                }
            }
        }
        self.shared.move_failed.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Waits until there are large pieces, or for `at_most`; then does a round. After one that
    /// failed it waits for new ones only.
    pub fn wait_and_move(&self, at_most: Duration) -> Result<(), Error> {
        let large = locked(&self.shared.large);
        let rests = large.is_empty() || self.shared.move_failed.load(Ordering::Relaxed);
        if rests && !self.is_closing() {
            let waited = self.shared.large_wake.wait_timeout(large, at_most);
            drop(waited.expect("no holder of this lock panics"));
        } else {
            drop(large);
        }
        self.move_round()
    }

    /// Has a sync begun now, since somebody is likely to wait for it.
    pub fn sync_soon(&self) {
        self.shared.wake_sync();
    }

    /// Waits until somebody wants a sync, or for a second; then does a round.
    pub fn wait_and_sync(&self, at_most: Duration) -> Result<(), Error> {
        let mut wanted = locked(&self.shared.wanted);
        if !*wanted && !self.is_closing() {
            let waited = self.shared.wake.wait_timeout(wanted, at_most);
            wanted = waited.expect("no holder of this lock panics").0;
        }
        *wanted = false;
        drop(wanted);
        self.sync_round()
    }

    /// Waits until somebody wants a sync: for who does the rounds as a task.
    pub async fn sync_wanted(&self) {
        self.shared.wake_task.notified().await;
    }

    /// Waits until there are large pieces: for who does the rounds as a task.
    pub async fn move_wanted(&self) {
        self.shared.large_wake_task.notified().await;
    }

    /// The once-a-second work of every journal.
    pub fn tick(&self) -> Result<(), Error> {
        let now_us = self.shared.clock.now_us();
        let (mut local_len, mut resting) = (0, 0);
        for replica in self.replicas() {
            replica.tick(now_us)?;
            replica.recount_pinned();
            local_len += replica.local_len();
            resting += u64::from(replica.mirror().rests());
        }
        self.shared.local_len.store(local_len, Ordering::Relaxed);
        self.shared.resting.store(resting, Ordering::Relaxed);
        ground::keep_ballast(&*self.shared.disk)
    }

    /// Bytes of journals in mirrors.
    pub fn local_len(&self) -> u64 {
        self.shared.local_len.load(Ordering::Relaxed)
    }

    /// There are so many bytes for journals, the budget and the disk considered: half of them may
    /// be lent.
    pub fn set_room(&self, room: u64) {
        self.shared.pins.set_room(room);
    }

    /// Bytes of journals that are lent beyond what may be: what was lent has grown.
    pub fn over_lent(&self) -> u64 {
        self.shared.pins.len().saturating_sub(self.shared.pins.max())
    }

    /// Fragments that were closed since the directory was opened.
    pub fn rolled(&self) -> u64 {
        self.shared.rolled.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint would free something worth it.
    pub fn needs_checkpoint(&self) -> bool {
        let shared = &self.shared;
        if shared.holds.is_log_held() {
            return false;
        }
        shared.log.has_older()
            || shared.staging.since_checkpoint() > shared.staged_max
            || shared.resting.load(Ordering::Relaxed) > limits::RESTING_MAX
    }

    /// Writes a checkpoint and frees what lies before it; not while a hold keeps the last one.
    /// Blocks on the disk, for long where much was written.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.at_rest(|data| match data.shared.holds.is_log_held() {
            true => Ok(()),
            false => data.write_checkpoint(),
        })
    }

    /// The same, for who is alone in [`DataDir::at_rest`].
    pub(crate) fn write_checkpoint(&self) -> Result<(), Error> {
        let shared = &self.shared;
        let mut start = shared.log.position();
        let replicas = self.replicas();
        let mut ledgers = Vec::with_capacity(replicas.len());
        for replica in &replicas {
            let (ledger, oldest) = replica.checkpoint();
            start = start.min(oldest.unwrap_or(start));
            ledgers.push(ledger);
        }
        // The ledgers may be ahead of what is durable: first the records, then the mirrors.
        self.sync_to(shared.log.position())?;
        for replica in replicas.iter().filter(|replica| replica.mirror().is_dirty()) {
            self.sync_mirror(replica)?;
        }
        Checkpoint { start, boot_id: shared.log.boot_id().to_owned(), ledgers }
            .write(&*shared.disk)?;
        replicas.iter().for_each(|replica| replica.mirror().close_rested());
        shared.log.free_below(start)?;
        shared.staging.checkpointed(start)
    }

    /// Makes a mirror durable. Where a sync fails, its content is written again from the log first:
    /// the page cache calls clean what it could not write.
    fn sync_mirror(&self, replica: &Replica) -> Result<(), Error> {
        let mirror = replica.mirror();
        if !mirror.must_be_rewritten() {
            let Err(error) = mirror.sync() else { return Ok(()) };
            let journal = replica.name();
            tracing::warn!(%journal, %error, "a mirror's sync failed; it is written again");
        }
        recover::rewrite_mirror(&*self.shared.disk, replica.life(), mirror)?;
        mirror.rewritten();
        mirror.sync()
    }

    /// Pre-writes the log's next segment.
    pub fn prepare_log(&self) -> Result<(), Error> {
        self.shared.log.prepare_spare()
    }

    /// Says whether appends are refused because the budget is used up. What was said before.
    pub fn set_over_budget(&self, is_over: bool) -> bool {
        self.shared.over_budget.swap(is_over, Ordering::Relaxed)
    }

    /// Whether appends are refused because the budget is used up.
    pub fn is_over_budget(&self) -> bool {
        self.shared.over_budget.load(Ordering::Relaxed)
    }

    /// Gives idle room back: the disk is full.
    pub fn shrink(&self) -> Result<(), Error> {
        self.shared.staging.shrink()
    }

    /// Gives the room back that is kept for a start on a full disk, to somebody who is about to
    /// free more: a deletion must be possible there.
    pub fn give_room(&self) -> Result<(), Error> {
        ground::drop_ballast(&*self.shared.disk)
    }

    pub fn is_closing(&self) -> bool {
        self.shared.closing.load(Ordering::Acquire)
    }

    /// Ends: appends are refused from here on, what is recorded is synced and moved, and the stop
    /// is recorded as clean. Persists nothing: local files keep everything safe.
    pub fn close(&self) -> Result<(), Error> {
        self.shared.closing.store(true, Ordering::Release);
        self.shared.synced.notify_waiters();
        self.shared.wake_sync();
        self.shared.wake_move();
        self.sync_round()?;
        while !locked(&self.shared.large).is_empty() {
            self.move_round()?;
        }
        for replica in self.replicas() {
            replica.settle()?;
        }
        let stop = record::Stop { boot_id: self.shared.log.boot_id().to_owned() };
        self.shared.log.append(&Record { body: Some(Body::Stop(stop)) }, Purpose::Mark)?;
        self.sync_round()
    }

    /// Moves a journal's files out of the way, whose spec is gone: they are kept, and named, and
    /// taken back if a spec of this life comes again.
    pub fn set_aside(&self, life: Life) -> Result<(), Error> {
        let replica = self.shared.replica(life).ok_or(Error::Deleted(life))?;
        {
            let _changing = locked(&self.changing);
            self.sync_to(self.shared.log.position())?;
            self.sync_mirror(&replica)?;
            lost::move_journal(&*self.shared.disk, &replica.ledger())?;
            replica.end();
            let mark = record::Mark { life: life.get(), ..record::Mark::default() };
            self.shared.log.append(&Record { body: Some(Body::Deleted(mark)) }, Purpose::Mark)?;
            locked(&self.shared.replicas).remove(&life);
        }
        self.sync_round()
    }
}

impl Drop for DataDir {
    /// Journals and what they share hold each other; whoever still has a replica keeps it.
    fn drop(&mut self) {
        locked(&self.shared.replicas).clear();
        locked(&self.shared.dirty).clear();
        locked(&self.shared.large).clear();
    }
}

/// Whether `path` exists on a disk.
pub(crate) fn exists(disk: &dyn Disk, path: &Path) -> Result<bool, Error> {
    Ok(disk.stat(path).map_err(Error::disk("stat", path))?.is_some())
}
