//! A disk in memory that behaves as badly as a real one may.
//!
//! It counts its operations, stops at any of them, fails any of them by number or by name, fills
//! up, and after a power cut keeps of what was not synced only what a seed chooses: sectors of
//! files and entries of directories alike. A sync that fails drops the dirty marks without keeping
//! the bytes, as Linux does, so that a second sync lies.

use super::{Disk, DiskFile, Entry, Lock, Open, Space};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

/// The unit that survives a power cut whole.
const SECTOR: u64 = 512;

/// How the machine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process dies; the page cache stays.
    Kill,
    /// The machine dies: of what was not synced, the seed chooses what is kept.
    Power(u64),
}

/// One failure to come.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// The operation to fail: the `nth` (from 0) of all, or of those called `operation`.
    pub operation: Option<&'static str>,
    pub nth: u64,
    pub errno: i32,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    sectors: BTreeMap<u64, [u8; SECTOR as usize]>,
    durable: BTreeMap<u64, [u8; SECTOR as usize]>,
    dirty: BTreeSet<u64>,
    /// Sectors that take space: written or reserved.
    taken: BTreeSet<u64>,
    durable_taken: BTreeSet<u64>,
    len: u64,
    durable_len: u64,
}

/// A change of a directory that no sync has made durable.
#[derive(Debug, Clone)]
enum Change {
    Link(PathBuf, u64),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl Change {
    fn is_in(&self, dir: &Path) -> bool {
        match self {
            Change::Link(path, _) | Change::Unlink(path) => path.parent() == Some(dir),
            Change::Rename(from, to) => from.parent() == Some(dir) || to.parent() == Some(dir),
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Change::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Change::Unlink(path) => {
                names.remove(path);
            }
            Change::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct World {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    changes: Vec<Change>,
    dirs: BTreeSet<PathBuf>,
    next_inode: u64,
    capacity: Option<u64>,
    boot: u64,
    operations: u64,
    by_name: BTreeMap<&'static str, u64>,
    stop_at: Option<u64>,
    stopped: bool,
    troubles: Vec<Trouble>,
    locked: BTreeSet<PathBuf>,
}

/// See the module. Clones share one world.
#[derive(Debug, Clone, Default)]
pub struct ForgetfulDisk {
    world: Arc<Mutex<World>>,
}

/// What an operation may still do when it is the one at which the disk stops.
#[derive(PartialEq)]
enum Go {
    On,
    StopInside,
}

fn stopped() -> io::Error {
    io::Error::other("the disk stopped")
}

impl ForgetfulDisk {
    pub fn new() -> Self {
        ForgetfulDisk::default()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no operation panics while it holds the world")
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.world().operations
    }

    /// Operations so far of one name.
    pub fn operations_of(&self, operation: &str) -> u64 {
        self.world().by_name.get(operation).copied().unwrap_or(0)
    }

    /// Stops at operation `at` (from 0): it happens in part, and everything after fails.
    pub fn stop_at(&self, at: u64) {
        self.world().stop_at = Some(at);
    }

    /// Stops between two operations: everything fails from here on.
    pub fn stop(&self) {
        self.world().stopped = true;
    }

    pub fn is_stopped(&self) -> bool {
        self.world().stopped
    }

    pub fn fail(&self, trouble: Trouble) {
        self.world().troubles.push(trouble);
    }

    /// No failure is to come any more.
    pub fn forgive(&self) {
        self.world().troubles.clear();
    }

    /// Bytes that all files together may take.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.world().capacity = capacity;
    }

    /// The disk as the next process finds it. This one goes on for those who still hold it, apart.
    #[must_use]
    pub fn crash(&self, crash: Crash) -> ForgetfulDisk {
        let mut world = self.world().clone();
        (world.stop_at, world.stopped, world.troubles) = (None, false, Vec::new());
        (world.operations, world.by_name) = (0, BTreeMap::new());
        world.locked.clear();
        if let Crash::Power(seed) = crash {
            let mut dice = Dice(seed);
            world.boot += 1;
            world.forget(&mut dice);
        }
        ForgetfulDisk { world: Arc::new(Mutex::new(world)) }
    }

    /// Flips one bit of a file, behind everybody's back.
    pub fn flip(&self, path: &Path, at: u64) {
        let mut world = self.world();
        let inode = world.names[path];
        let inode = world.inodes.get_mut(&inode).expect("names point at inodes");
        for sectors in [&mut inode.sectors, &mut inode.durable] {
            if let Some(sector) = sectors.get_mut(&(at / SECTOR)) {
                sector[(at % SECTOR) as usize] ^= 1;
            }
        }
    }
}

/// A small generator (splitmix64): the seed decides everything.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

impl World {
    /// Counts an operation; fails it when it is to fail.
    fn operation(&mut self, name: &'static str) -> io::Result<Go> {
        if self.stopped {
            return Err(stopped());
        }
        let number = self.operations;
        self.operations += 1;
        let of_name = self.by_name.entry(name).or_default();
        let nth = *of_name;
        *of_name += 1;
        let due = self.troubles.iter().position(|trouble| match trouble.operation {
            Some(operation) => operation == name && trouble.nth == nth,
            None => trouble.nth == number,
        });
        if let Some(due) = due {
            let trouble = self.troubles.remove(due);
            return Err(io::Error::from_raw_os_error(trouble.errno));
        }
        if self.stop_at == Some(number) {
            self.stopped = true;
            return Ok(Go::StopInside);
        }
        Ok(Go::On)
    }

    fn forget(&mut self, dice: &mut Dice) {
        for change in std::mem::take(&mut self.changes) {
            if dice.coin() {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes.retain(|number, _| named.contains(number));
        for inode in self.inodes.values_mut() {
            inode.forget(dice);
        }
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    /// Space of the files that have a name. (One that is only open still would take some, too.)
    fn used(&self) -> u64 {
        let named = self.names.values().filter_map(|number| self.inodes.get(number));
        named.map(|inode| inode.taken.len() as u64 * SECTOR).sum()
    }

    fn free(&self) -> u64 {
        self.capacity.unwrap_or(1 << 40).saturating_sub(self.used())
    }

    /// Takes space for the sectors of `at..at + len`, or fails having taken none.
    fn take(&mut self, number: u64, at: u64, len: u64) -> io::Result<()> {
        let free = self.free();
        let inode = self.inode(number)?;
        let wanted: Vec<u64> = sectors(at, len).filter(|s| !inode.taken.contains(s)).collect();
        if wanted.len() as u64 * SECTOR > free {
            return Err(io::Error::from_raw_os_error(28)); // ENOSPC
        }
        inode.taken.extend(wanted);
        Ok(())
    }

    fn inode(&mut self, number: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn sectors(at: u64, len: u64) -> std::ops::Range<u64> {
    if len == 0 { 0..0 } else { at / SECTOR..(at + len).div_ceil(SECTOR) }
}

impl Inode {
    fn write(&mut self, buf: &[u8], at: u64) {
        let mut done = 0;
        while done < buf.len() {
            let position = at + done as u64;
            let (number, inside) = (position / SECTOR, (position % SECTOR) as usize);
            let n = (SECTOR as usize - inside).min(buf.len() - done);
            let sector = self.sectors.entry(number).or_insert([0; SECTOR as usize]);
            sector[inside..inside + n].copy_from_slice(&buf[done..done + n]);
            self.dirty.insert(number);
            self.taken.insert(number);
            done += n;
        }
        self.len = self.len.max(at + buf.len() as u64);
    }

    fn read(&self, buf: &mut [u8], at: u64) -> usize {
        let n = buf.len().min(usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX));
        for (done, byte) in buf[..n].iter_mut().enumerate() {
            let position = at + done as u64;
            let sector = self.sectors.get(&(position / SECTOR));
            *byte = sector.map_or(0, |sector| sector[(position % SECTOR) as usize]);
        }
        n
    }

    fn zero(&mut self, at: u64, len: u64) {
        let end = at + len;
        for number in sectors(at, len) {
            let from = at.saturating_sub(number * SECTOR).min(SECTOR) as usize;
            let to = (end - number * SECTOR).min(SECTOR) as usize;
            if from == 0 && to == SECTOR as usize {
                self.taken.remove(&number);
                self.sectors.remove(&number);
                self.dirty.insert(number);
            } else if let Some(sector) = self.sectors.get_mut(&number) {
                sector[from..to].fill(0);
                self.dirty.insert(number);
            }
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.zero(len, self.len - len);
            self.taken.retain(|sector| sector * SECTOR < len);
        }
        self.len = len;
    }

    fn sync(&mut self) {
        for number in std::mem::take(&mut self.dirty) {
            match self.sectors.get(&number) {
                Some(sector) => self.durable.insert(number, *sector),
                None => self.durable.remove(&number),
            };
        }
        self.durable_len = self.len;
        self.durable_taken.clone_from(&self.taken);
    }

    fn forget(&mut self, dice: &mut Dice) {
        for number in std::mem::take(&mut self.dirty) {
            if dice.coin() {
                match self.sectors.get(&number) {
                    Some(sector) => self.durable.insert(number, *sector),
                    None => self.durable.remove(&number),
                };
            }
        }
        // The new size may have been written with none, some or all of the bytes below it.
        if dice.coin() {
            self.durable_len = self.len;
        }
        self.sectors = self.durable.clone();
        self.len = self.durable_len;
        self.taken.clone_from(&self.durable_taken);
        self.taken.extend(self.sectors.keys());
        self.durable_taken.clone_from(&self.taken);
    }
}

impl Disk for ForgetfulDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.world();
        let go = world.operation("open")?;
        let number = match (world.find(path), how) {
            (Ok(_), Open::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(number), _) => number,
            (Err(_), Open::New | Open::Any) => {
                let parent = path.parent().unwrap_or(Path::new(""));
                if !parent.as_os_str().is_empty() && !world.dirs.contains(parent) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                world.next_inode += 1;
                let number = world.next_inode;
                world.inodes.insert(number, Inode::default());
                world.change(Change::Link(path.to_owned(), number));
                number
            }
            (Err(missing), Open::Read | Open::Existing) => return Err(missing),
        };
        if go == Go::StopInside {
            return Err(stopped());
        }
        Ok(Arc::new(ForgetfulFile { disk: self.clone(), number }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.world();
        let go = world.operation("rename")?;
        world.find(from)?;
        if go == Go::On || world.operations.is_multiple_of(2) {
            world.change(Change::Rename(from.to_owned(), to.to_owned()));
        }
        if go == Go::StopInside { Err(stopped()) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        let go = world.operation("remove")?;
        if !world.dirs.remove(path) {
            world.find(path)?;
            world.change(Change::Unlink(path.to_owned()));
        }
        if go == Go::StopInside { Err(stopped()) } else { Ok(()) }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut world = self.world();
        world.operation("create_dir")?;
        let all = path.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let all: Vec<PathBuf> = all.map(Path::to_owned).collect();
        world.dirs.extend(all);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut world = self.world();
        world.operation("list")?;
        if !dir.as_os_str().is_empty() && !world.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let below = |path: &&PathBuf| path.parent() == Some(dir);
        let dirs = world.dirs.iter().filter(below).map(|path| entry(path, None));
        let files = world.names.iter().filter(|(path, _)| below(path));
        let files = files.map(|(path, number)| entry(path, world.inodes.get(number)));
        let mut all: Vec<Entry> = dirs.chain(files).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        let mut world = self.world();
        world.operation("stat")?;
        if path.as_os_str().is_empty() || world.dirs.contains(path) {
            return Ok(Some(entry(path, None)));
        }
        Ok(world.names.get(path).map(|number| entry(path, world.inodes.get(number))))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.world();
        let go = world.operation("sync_dir")?;
        if go == Go::StopInside {
            return Err(stopped());
        }
        let World { changes, durable_names, .. } = &mut *world;
        changes.retain(|change| {
            let due = change.is_in(dir);
            if due {
                change.apply(durable_names);
            }
            !due
        });
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let world = self.world();
        Ok(Space { total: world.capacity.unwrap_or(1 << 40), free: world.free() })
    }

    fn boot_id(&self) -> io::Result<String> {
        Ok(format!("boot-{}", self.world().boot))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        if !self.world().locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Locked { disk: self.clone(), path: path.to_owned() }))
    }
}

struct Locked {
    disk: ForgetfulDisk,
    path: PathBuf,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.disk.world().locked.remove(&self.path);
    }
}

fn entry(path: &Path, inode: Option<&Inode>) -> Entry {
    Entry {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        is_dir: inode.is_none(),
        len: inode.map_or(0, |inode| inode.len),
        modified: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
    }
}

#[derive(Debug)]
struct ForgetfulFile {
    disk: ForgetfulDisk,
    number: u64,
}

impl DiskFile for ForgetfulFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let mut world = self.disk.world();
        // Reads are no points to stop at: a stop between two changes is the same as one before.
        if world.stopped {
            return Err(stopped());
        }
        Ok(world.inode(self.number)?.read(buf, at))
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let go = world.operation("write")?;
        let part = if go == Go::StopInside { buf.len() / 2 } else { buf.len() };
        if let Err(full) = world.take(self.number, at, part as u64) {
            // As a file system does: what fits is written before the error.
            let fits = world.free().min(part as u64 / 2) as usize;
            world.inode(self.number)?.write(&buf[..fits], at);
            return Err(full);
        }
        world.inode(self.number)?.write(&buf[..part], at);
        if go == Go::StopInside { Err(stopped()) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.world();
        match world.operation("sync") {
            Ok(Go::On) => {
                world.inode(self.number)?.sync();
                Ok(())
            }
            Ok(Go::StopInside) => Err(stopped()),
            Err(error) => {
                // The pages are marked clean all the same (fsync(2), Linux since 4.13).
                if !world.stopped {
                    world.inode(self.number)?.dirty.clear();
                }
                Err(error)
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.world().inode(self.number)?.len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let go = world.operation("set_len")?;
        world.inode(self.number)?.set_len(len);
        if go == Go::StopInside { Err(stopped()) } else { Ok(()) }
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let go = world.operation("reserve")?;
        if go == Go::StopInside {
            return Err(stopped());
        }
        world.take(self.number, at, len)
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let mut world = self.disk.world();
        let go = world.operation("punch")?;
        world.inode(self.number)?.zero(at, len);
        if go == Go::StopInside { Err(stopped()) } else { Ok(()) }
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.disk.world().inode(self.number)?.taken.len() as u64 * SECTOR)
    }

    fn is_held_elsewhere(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
