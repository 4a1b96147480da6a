//! Opening a data directory after any kind of stop.
//!
//! The checkpoint's ledgers are folded on with every record behind it, and content moves into the
//! mirrors again. Recovery ends with a checkpoint of its own, so that an earlier log is read once:
//! a decision about a torn end is made one time, and stands.

use crate::checkpoint::Checkpoint;
use crate::datadir::exists;
use crate::disk::{Disk, Open, read_file};
use crate::ledger::Ledger;
use crate::log::{self, Log, Scan};
use crate::mirror::Mirror;
use crate::record::Position;
use crate::{Error, staging};
use crate::{ground, limits};
use protocol::{Journal, Life, Offset, Span};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

mod damage;
mod healed;
mod moving;
mod replay;

pub(crate) use damage::verify;
use replay::Replay;
pub(crate) use replay::rewrite_mirror;

/// Where a log that was cut or damaged is kept.
pub(crate) const ASIDE: &str = "aside";

/// There while a log is to be kept aside.
const TO_KEEP: &str = "log/to-keep";

/// What recovery did, for the log and for `inspect`.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    pub journals: u64,
    /// Records read behind the checkpoint.
    pub records: u64,
    /// Content that was moved into mirrors again.
    pub bytes: u64,
    pub is_clean: bool,
    /// Or the page cache has nothing of the log, for another reason than a boot.
    pub is_other_boot: bool,
    /// Spans given to nobody since a power cut.
    pub lost: Vec<(Journal, Span)>,
    pub damaged: Vec<(Journal, Span)>,
    /// Those of them that nobody knew before.
    pub found_damaged: Vec<(Journal, Span)>,
    /// Spans of mirrors that were wrong, and are right again: the log had them.
    pub healed: Vec<(Journal, Span)>,
    /// Places of the log that were synced and do not verify.
    pub damaged_log: Vec<(Position, Position)>,
    /// Records that were cut off: none was acknowledged at `disk`.
    pub cut_records: u64,
    /// Local files that belong to no journal, and were moved to `lost+found`.
    pub orphans: Vec<String>,
    /// The file that names the format was missing, and was made anew.
    pub is_unmarked: bool,
}

/// The journals that recovery found, with the mirrors they own.
pub(crate) type Journals = Vec<(Ledger, Mirror)>;

/// Journals of which nothing is known but how far they reached.
pub(crate) type Headless = BTreeMap<Life, Offset>;

/// What was before a directory is opened.
#[derive(Debug, Clone)]
pub(crate) enum Before {
    /// A stop of any kind.
    Stop,
    /// It was copied from a running one, the log first and up to a moment that was synced. What
    /// mirrors have beyond is of later, and files of no journal are of journals that began later.
    Copy,
    /// The loss of the checkpoint: this is what is known without it.
    Loss(Known),
}

/// What is known of journals without a checkpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Those that there are.
    pub names: BTreeMap<Life, Journal>,
    /// How far their mirrors reached.
    pub ends: Headless,
}

impl Known {
    /// Journals of which nothing else is known, at the first place of the log that is there.
    fn checkpoint(&self, disk: &dyn Disk) -> Result<Checkpoint, Error> {
        let first = log::numbers(disk)?.min();
        let ledger =
            |(life, name): (&Life, &Journal)| Ledger::new(*life, name.clone(), Position::default());
        let ledgers = self.names.iter().map(ledger).collect();
        let start = Position::new(first.unwrap_or(0), 0);
        Ok(Checkpoint { start, boot_id: String::new(), ledgers })
    }
}

pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    segment_len: u64,
    before: Before,
) -> Result<(Log, Journals, Headless, Recovered), Error> {
    let checkpoint = match &before {
        Before::Stop | Before::Copy => Checkpoint::read(&**disk)?,
        Before::Loss(known) => Some(known.checkpoint(&**disk)?),
    };
    let is_new = checkpoint.is_none();
    let mut checkpoint = checkpoint.unwrap_or_default();
    let ledgers = std::mem::take(&mut checkpoint.ledgers);
    let is_copy = matches!(before, Before::Copy);
    let is_forgotten = !is_new && !is_copy && log::is_forgotten(&**disk, checkpoint.start)?;
    let mut replay = Replay::begin(disk.clone(), ledgers, checkpoint.start)?;
    let scan = log::scan(&**disk, checkpoint.start, |frame| replay.take(frame))?;
    replay.settle()?;
    let boot_id = disk.boot_id().map_err(Error::disk("read", "boot id"))?;
    let last_boot = if scan.boot_id.is_empty() { &checkpoint.boot_id } else { &scan.boot_id };
    let is_other_boot = !is_new && !is_copy && (is_forgotten || *last_boot != boot_id);
    replay.settle_suspects(is_other_boot)?;
    let log_is_damaged = !scan.damaged.is_empty();
    // The death of a process alone leaves no byte in a mirror that is not in the log.
    if log_is_damaged || !(is_other_boot || is_copy) {
        replay.find_damage(log_is_damaged)?;
    }
    if let Before::Loss(known) = &before {
        replay.keep_ends(&known.ends, is_other_boot)?;
    }
    replay.close_gaps(is_other_boot)?;
    replay.fit_mirrors()?;
    replay.sync()?;

    // The checkpoint comes before the segment it begins at, so that what it frees makes room; and
    // before both, on a full disk, goes what was kept for this.
    ground::drop_ballast(&**disk)?;
    let number = scan.last_number.max(checkpoint.start.segment()) + 1;
    let start = Position::new(number, 0);
    if scan.cut_frames > 0 || !scan.damaged.is_empty() {
        mark_to_keep(&**disk)?;
    }
    let ledgers = replay.journals.values().map(|(ledger, _)| ledger.clone()).collect();
    let checkpoint = Checkpoint { start, boot_id, ledgers };
    match checkpoint.write(&**disk) {
        Err(error) if error.is_full() => {
            drop_spare(&**disk, &scan)?;
            checkpoint.write(&**disk)?;
        }
        written => written?,
    }
    clear(&**disk, number, segment_len)?;
    let log = Log::begin(disk.clone(), number, scan.end, scan.chain, segment_len)?;
    log.sync(log.position())?;
    match before {
        Before::Stop | Before::Loss(_) => replay.find_orphans()?,
        Before::Copy => replay.remove_orphans()?,
    }
    let headless = replay.headless()?;

    let mut recovered = replay.recovered;
    recovered.healed = replay.moving.healed.found();
    recovered.journals = replay.journals.len() as u64;
    recovered.is_clean = scan.is_clean || is_new;
    recovered.is_other_boot = is_other_boot;
    recovered.cut_records += scan.cut_frames;
    recovered.damaged_log = scan.damaged;
    Ok((log, replay.journals.into_values().collect(), headless, recovered))
}

/// Removes a segment that was made and never begun.
fn drop_spare(disk: &dyn Disk, scan: &Scan) -> Result<(), Error> {
    let last = log::path_of(scan.last_number);
    if scan.last_number > scan.end.segment() && scan.cut_frames == 0 && exists(disk, &last)? {
        disk.remove(&last).map_err(Error::disk("remove", &last))?;
    }
    Ok(())
}

/// Notes that what the new checkpoint makes needless, a log with damage or a cut end, is to be
/// kept: nobody reads it after that, and a start that is stopped may not have come to it.
fn mark_to_keep(disk: &dyn Disk) -> Result<(), Error> {
    let made = disk.open(Path::new(TO_KEEP), Open::Any).map(drop);
    let made = made.and_then(|()| disk.sync_dir(Path::new(log::DIR)));
    made.map_err(Error::disk("make", TO_KEEP))
}

/// Removes what the new checkpoint made needless, or keeps it aside where that was noted. Segments
/// of full length become those of the next log, `number` first: to free 64 MiB and to write as many
/// zeros takes longer than all that a start has to read in most logs.
fn clear(disk: &dyn Disk, number: u32, segment_len: u64) -> Result<(), Error> {
    let mark = Path::new(TO_KEEP);
    let keep = exists(disk, mark)?;
    let mut set_aside = Vec::new();
    let mut next = number;
    for path in log::numbers(disk)?.filter(|old| *old < number).map(log::path_of) {
        let is_full = || -> Result<bool, Error> {
            let entry = disk.stat(&path).map_err(Error::disk("stat", &path))?;
            Ok(entry.is_some_and(|entry| entry.len == segment_len))
        };
        let to = if keep {
            let aside = Path::new(ASIDE).join(path.file_name().expect("a segment has a name"));
            set_aside.push(aside.clone());
            aside
        } else if next < number + 2 && is_full()? {
            next += 1;
            log::path_of(next - 1)
        } else {
            disk.remove(&path).map_err(Error::disk("remove", &path))?;
            continue;
        };
        disk.rename(&path, &to).map_err(Error::disk("rename", &to))?;
    }
    if next > number {
        disk.sync_dir(Path::new(log::DIR)).map_err(Error::disk("sync", log::DIR))?;
    }
    for path in set_aside {
        if let Err(error) = cut_zeros(disk, &path) {
            tracing::warn!(%error, "a log that is set aside takes more room than it needs");
        }
    }
    if keep {
        disk.sync_dir(Path::new(ASIDE)).map_err(Error::disk("sync", ASIDE))?;
        disk.sync_dir(Path::new(log::DIR)).map_err(Error::disk("sync", log::DIR))?;
        disk.remove(mark).map_err(Error::disk("remove", mark))?;
    }
    let entries = disk.list(Path::new(staging::DIR)).map_err(Error::disk("list", staging::DIR))?;
    for entry in entries {
        let path = Path::new(staging::DIR).join(entry.name);
        disk.remove(&path).map_err(Error::disk("remove", &path))?;
    }
    bound_aside(disk)
}

/// Cuts off the zeros that a segment was made of, and that nothing was written over.
fn cut_zeros(disk: &dyn Disk, path: &Path) -> Result<(), Error> {
    const PIECE: u64 = 1 << 20;
    let file = disk.open(path, Open::Existing).map_err(Error::disk("open", path))?;
    let mut end = file.len().map_err(Error::disk("stat", path))?;
    while end > 0 {
        let begin = (end - 1) / PIECE * PIECE;
        let piece = read_file(&*file, begin, end - begin).map_err(Error::disk("read", path))?;
        let used = piece.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        end = begin + used;
        if used > 0 {
            break;
        }
    }
    file.set_len(end).map_err(Error::disk("cut", path))
}

fn bound_aside(disk: &dyn Disk) -> Result<(), Error> {
    let entries = disk.list(Path::new(ASIDE)).map_err(Error::disk("list", ASIDE))?;
    // What a repair has set aside lies in directories, and is for people to remove.
    let files: Vec<_> = entries.iter().filter(|entry| !entry.is_dir).collect();
    let total = disk.space().map_err(Error::disk("stat", "the file system"))?.total;
    let mut taken: u64 = files.iter().map(|entry| entry.len).sum();
    // The oldest goes first, and the last one stays, whatever room it takes.
    for (at, entry) in files.iter().enumerate().take(files.len().saturating_sub(1)) {
        if files.len() - at <= limits::ASIDE_FILES_MAX && taken <= total / 16 {
            break;
        }
        let path = Path::new(ASIDE).join(&entry.name);
        disk.remove(&path).map_err(Error::disk("remove", &path))?;
        taken -= entry.len;
    }
    Ok(())
}
