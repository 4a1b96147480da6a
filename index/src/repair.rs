//! Making a data directory open again, offline, where a start refuses it or its bytes are wrong.
//!
//! Whatever is taken out is kept, below `aside/NAME/`. What is gone stays named: a span whose bytes
//! nothing vouches for is damaged, and an offset that may have been shown is given to nobody else.
//! An interruption leaves a directory that opens, or one that can be repaired again: what replaces
//! something is written whole, then renamed.

use crate::checkpoint::{self, Checkpoint};
use crate::clock::Clock;
use crate::datadir::{DataDir, Options, exists};
use crate::disk::{Disk, Lock, Open, replace};
use crate::recover::{ASIDE, Before, Headless, Known, Recovered};
use crate::replica::Replica;
use crate::{Error, backup, ground, inspect, lost, mirror};
use protocol::{Journal, Life, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One thing that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The mark of the directory was missing, and was made anew.
    Marked,
    /// A file was moved out of the way, or copied before it was replaced.
    Kept { file: PathBuf, at: PathBuf, why: String },
    /// A checkpoint was made of the log and of what is known of journals.
    Rebuilt { journals: usize },
    /// The key space was made anew, and the journals are known to it by other lives.
    Rekeyed { journals: usize },
    /// A journal that the key space knows was in `lost+found`, up to this offset.
    TakenBack { journal: Journal, end: Offset },
    /// A span's bytes are wrong, and a store has right ones: they are read from there.
    GivenUp { journal: Journal, span: Span, at: PathBuf },
    /// A span's bytes are wrong, and these were the only ones.
    Damaged { journal: Journal, span: Span, at: PathBuf },
}

/// In words that are true of what was done and of what would be.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Marked => {
                write!(f, "{}: made anew: it was missing", ground::FORMAT_FILE)
            }
            Step::Kept { file, at, why } => {
                write!(f, "{}: kept as {}: {why}", file.display(), at.display())
            }
            Step::Rebuilt { journals } => {
                write!(f, "the checkpoint: made anew from the log, for {journals} journals")
            }
            Step::Rekeyed { journals } => write!(
                f,
                "the key space: made anew for {journals} journals, with the specs of the built-in \
                 template: apply theirs"
            ),
            Step::TakenBack { journal, end } => {
                write!(f, "{journal}: taken back from lost+found, up to {end}")
            }
            Step::GivenUp { journal, span, at } => write!(
                f,
                "{journal} {span}: does not match its sum: read from its store from then on, and \
                 kept as {}",
                at.display()
            ),
            Step::Damaged { journal, span, at } => write!(
                f,
                "{journal} {span}: does not match its sum: named damaged, and kept as {}",
                at.display()
            ),
        }
    }
}

/// Whether a repair would change anything but what every start does. `names` are the journals of
/// the key space. Reads all local bytes, and changes nothing.
pub fn is_needed(
    disk: &Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    names: &BTreeMap<Life, Journal>,
) -> Result<bool, Error> {
    let report = match inspect::inspect(disk.clone(), clock, |_, _| ()) {
        Err(Error::Damaged(..)) => return Ok(true),
        other => other?,
    };
    let known: BTreeSet<Life> = report.journals.iter().map(|found| found.ledger.life).collect();
    let is_lost = |life: &Life| !known.contains(life) && lost::has(&**disk, *life);
    Ok(report.needs_repair() || names.keys().any(is_lost))
}

/// Takes a data directory that nobody runs on; `InUse` where a broker does.
pub fn lock(disk: &dyn Disk) -> Result<Lock, Error> {
    ground::take_lock(disk)
}

/// A repair of the directory under `disk`. Steps are told as they are done.
pub struct Repair<'a> {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    /// `aside/NAME`.
    aside: PathBuf,
    tell: &'a mut dyn FnMut(Step),
}

impl<'a> Repair<'a> {
    /// What is taken out goes to `aside/name`.
    pub fn new(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        name: &str,
        tell: &'a mut dyn FnMut(Step),
    ) -> Self {
        Repair { disk, clock, aside: Path::new(ASIDE).join(name), tell }
    }

    /// Moves a file out of the way, durably.
    pub fn set_aside(&mut self, file: &Path, why: impl ToString) -> Result<(), Error> {
        let at = self.place(file)?;
        self.disk.rename(file, &at).map_err(Error::disk("rename", &at))?;
        self.sync_names(file)?;
        (self.tell)(Step::Kept { file: file.into(), at, why: why.to_string() });
        Ok(())
    }

    /// Repairs all but the key space; `names` are the journals that it has. Fails where a newer
    /// release wrote the directory, or the disk fails, or a broker runs on it.
    pub fn run(&mut self, names: &BTreeMap<Life, Journal>) -> Result<Recovered, Error> {
        let lock = ground::take_lock(&*self.disk)?;
        let is_mark_kept = self.format()?;
        let known = self.checkpoint(names)?;
        // The directory takes it again.
        drop(lock);
        let rebuilt = known.as_ref().map(|known| known.names.len());
        let before = known.map_or(Before::Stop, Before::Loss);
        let options = Options::offline();
        let (disk, clock) = (self.disk.clone(), self.clock.clone());
        let (data, recovered) = DataDir::open_after(before, disk, clock, options)?;
        if recovered.is_unmarked && !is_mark_kept {
            (self.tell)(Step::Marked);
        }
        if let Some(journals) = rebuilt {
            (self.tell)(Step::Rebuilt { journals });
        }
        for life in names.keys() {
            if let Some(replica) = data.take_back(*life)? {
                let (journal, end) = (replica.name().clone(), replica.head());
                (self.tell)(Step::TakenBack { journal, end });
            }
        }
        for replica in data.replicas() {
            self.replica(&replica)?;
        }
        data.close()?;
        Ok(recovered)
    }

    /// The journals that the directory has, and their lives, after [`Repair::run`].
    pub fn journals(&self) -> Result<BTreeMap<Journal, Life>, Error> {
        let checkpoint = Checkpoint::read(&*self.disk)?.unwrap_or_default();
        Ok(checkpoint.ledgers.iter().map(|ledger| (ledger.name.clone(), ledger.life)).collect())
    }

    /// Gives journals the lives that a key space has for them which was made anew. Their mirrors
    /// are copied to other names, and the checkpoint tells of those or of the old ones.
    pub fn rekey(&mut self, lives: &BTreeMap<Journal, Life>) -> Result<(), Error> {
        let options = Options::offline();
        // Ends with a checkpoint behind which there is no record of a journal.
        drop(DataDir::open(self.disk.clone(), self.clock.clone(), options)?);
        let lock = ground::take_lock(&*self.disk)?;
        let mut checkpoint = Checkpoint::read(&*self.disk)?.unwrap_or_default();
        let mut old = Vec::new();
        for ledger in &mut checkpoint.ledgers {
            let Some(life) = lives.get(&ledger.name).filter(|life| **life != ledger.life) else {
                continue;
            };
            old.extend(copy_mirror(&*self.disk, ledger.life, *life)?);
            ledger.life = *life;
        }
        self.disk.sync_dir(Path::new(mirror::DIR)).map_err(Error::disk("sync", mirror::DIR))?;
        checkpoint.write(&*self.disk)?;
        let remove = |path: PathBuf| self.disk.remove(&path).map_err(Error::disk("remove", &path));
        old.into_iter().try_for_each(remove)?;
        // So that the next start finds a clean stop.
        drop(lock);
        let (disk, clock) = (self.disk.clone(), self.clock.clone());
        DataDir::open(disk, clock, Options::offline())?.0.close()?;
        (self.tell)(Step::Rekeyed { journals: lives.len() });
        Ok(())
    }

    /// Keeps a file, if there is one, and puts another in its place: there is one or the other at
    /// any time.
    pub fn replace(&mut self, file: &Path, with: &[u8], why: impl ToString) -> Result<(), Error> {
        let kept = if exists(&*self.disk, file)? { Some(self.keep(file)?) } else { None };
        replace(&*self.disk, file, with).map_err(Error::disk("replace", file))?;
        if let Some(at) = kept {
            (self.tell)(Step::Kept { file: file.into(), at, why: why.to_string() });
        }
        Ok(())
    }

    /// Copies a file aside, durably.
    fn keep(&self, file: &Path) -> Result<PathBuf, Error> {
        let at = self.place(file)?;
        copy_file(&*self.disk, file, &at)?;
        self.disk.sync_dir(&self.aside).map_err(Error::disk("sync", &self.aside))?;
        Ok(at)
    }

    /// Whether a mark that can't be read was set aside.
    fn format(&mut self) -> Result<bool, Error> {
        match ground::check_format(&*self.disk) {
            Err(Error::Damaged(file, why)) => self.set_aside(&file, why).map(|()| true),
            other => other.map(|_is_there| false),
        }
    }

    /// Where the checkpoint can't be read: what is known without it. The damaged one stays in its
    /// place until there is another, so that nothing starts without either.
    fn checkpoint(&mut self, names: &BTreeMap<Life, Journal>) -> Result<Option<Known>, Error> {
        let why = match Checkpoint::read(&*self.disk) {
            Err(Error::Damaged(_, why)) => why,
            other => return other.map(|_sound| None),
        };
        let file = Path::new(checkpoint::FILE);
        if exists(&*self.disk, file)? {
            let at = self.keep(file)?;
            (self.tell)(Step::Kept { file: file.into(), at, why });
        }
        let mirrors = self.disk.list(Path::new(mirror::DIR));
        for entry in mirrors.map_err(Error::disk("list", mirror::DIR))? {
            let why = "no checkpoint says what of it is right";
            self.set_aside(&Path::new(mirror::DIR).join(entry.name), why)?;
        }
        Ok(Some(Known { names: names.clone(), ends: ends_aside(&*self.disk)? }))
    }

    /// Takes out of a journal what does not match its sums.
    fn replica(&mut self, replica: &Arc<Replica>) -> Result<(), Error> {
        for span in inspect::wrong(replica) {
            let at = self.copy(replica, span)?;
            let journal = replica.name().clone();
            // So that the next fragment begins behind it.
            replica.roll()?;
            let is_stored = replica.stored_here().contains(&span);
            if is_stored && replica.evict(span)?.is_some() {
                (self.tell)(Step::GivenUp { journal, span, at });
            } else {
                replica.damaged(span)?;
                (self.tell)(Step::Damaged { journal, span, at });
            }
        }
        Ok(())
    }

    /// Keeps the bytes of a span, as far as they can be read; the others are zeros there.
    fn copy(&self, replica: &Replica, span: Span) -> Result<PathBuf, Error> {
        const PIECE: u64 = 4096;
        let (begin, end) = (span.begin().get(), span.end().get());
        let name = format!("{}.{begin:016x}-{end:016x}", replica.life());
        let at = self.place(Path::new(&name))?;
        let file = self.disk.open(&at, Open::Any).map_err(Error::disk("open", &at))?;
        let mut done = 0;
        while done < span.len() {
            let mut piece = vec![0; (span.len() - done).min(PIECE) as usize];
            // A part that can't be read is a hole.
            if let Ok(len @ 1..) = replica.mirror().read(span.begin().plus(done), &mut piece) {
                file.write_at(&piece[..len], done).map_err(Error::disk("write", &at))?;
            }
            done += piece.len() as u64;
        }
        file.set_len(span.len()).and_then(|()| file.sync()).map_err(Error::disk("write", &at))?;
        self.disk.sync_dir(&self.aside).map_err(Error::disk("sync", &self.aside))?;
        Ok(at)
    }

    /// Where a file of this name is kept, which nothing has yet.
    fn place(&self, file: &Path) -> Result<PathBuf, Error> {
        self.disk.create_dir(&self.aside).map_err(Error::disk("create", &self.aside))?;
        let above = Path::new(ASIDE);
        self.disk.sync_dir(above).map_err(Error::disk("sync", above))?;
        Ok(self.aside.join(file.file_name().unwrap_or_default()))
    }

    fn sync_names(&self, file: &Path) -> Result<(), Error> {
        let from = file.parent().unwrap_or(Path::new(""));
        [&*self.aside, from]
            .into_iter()
            .try_for_each(|dir| self.disk.sync_dir(dir).map_err(Error::disk("sync", dir)))
    }
}

/// Copies the mirror of a life to the names of another; the paths of the old files.
fn copy_mirror(disk: &dyn Disk, life: Life, other: Life) -> Result<Vec<PathBuf>, Error> {
    let mut old = Vec::new();
    let entries = disk.list(Path::new(mirror::DIR)).map_err(Error::disk("list", mirror::DIR))?;
    for (owner, first) in entries.iter().filter_map(|entry| mirror::parse_name(&entry.name)) {
        if owner != life {
            continue;
        }
        let (from, to) = (mirror::path_of(life, first), mirror::path_of(other, first));
        copy_file(disk, &from, &to)?;
        old.push(from);
    }
    Ok(old)
}

/// Copies a file, durably but for its name.
fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), Error> {
    let source = disk.open(from, Open::Read).map_err(Error::disk("open", from))?;
    let target = disk.open(to, Open::Any).map_err(Error::disk("make", to))?;
    let copied = backup::copy(&*source, &*target, u64::MAX, &mut |_| ());
    copied.and_then(|()| target.sync()).map_err(Error::disk("copy", from))
}

/// How far mirrors reached that repairs have set aside, by life: that of an earlier one that was
/// interrupted, too.
fn ends_aside(disk: &dyn Disk) -> Result<Headless, Error> {
    let mut ends = Headless::new();
    let above = Path::new(ASIDE);
    let dirs = disk.list(above).map_err(Error::disk("list", above))?;
    for dir in dirs.iter().filter(|entry| entry.is_dir) {
        let dir = above.join(&dir.name);
        for entry in disk.list(&dir).map_err(Error::disk("list", &dir))? {
            let Some((life, first)) = mirror::parse_name(&entry.name) else { continue };
            let end = Offset::try_from(first.saturating_add(entry.len)).unwrap_or_default();
            let known = ends.entry(life).or_default();
            *known = end.max(*known);
        }
    }
    Ok(ends)
}
