//! The ground that a data directory stands on: what must hold before anything in it is read, and
//! the room that is kept for the day when the disk is full.

use crate::datadir::{LOST_AND_FOUND, exists};
use crate::disk::{Disk, Lock, Open, read_file, remove_if_there};
use crate::{Error, checkpoint, limits, log, mirror, record, recover, staging};
use std::io;
use std::path::Path;

/// The mark of a data directory: the file that names its format.
pub const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";

/// Written and removed by each start.
const PUNCH_PROBE: &str = "punch-probe";

/// Whether a file or a directory of this name, at the top of a data directory, is made here.
pub fn is_part(name: &str) -> bool {
    // What replaces a file is written beside it: see `disk::replace`.
    let name = name.strip_suffix(".new").unwrap_or(name);
    let files = [FORMAT_FILE, LOCK_FILE, PUNCH_PROBE, BALLAST, checkpoint::FILE];
    let dirs = [log::DIR, mirror::DIR, staging::DIR, recover::ASIDE, LOST_AND_FOUND];
    files.contains(&name) || dirs.contains(&name)
}

pub(crate) fn make_dirs(disk: &dyn Disk) -> Result<(), Error> {
    for dir in ["", log::DIR, mirror::DIR, staging::DIR, recover::ASIDE, LOST_AND_FOUND] {
        disk.create_dir(Path::new(dir)).map_err(Error::disk("create", dir))?;
    }
    disk.sync_dir(Path::new("")).map_err(Error::disk("sync", "the data directory"))
}

pub(crate) fn take_lock(disk: &dyn Disk) -> Result<Lock, Error> {
    disk.lock(Path::new(LOCK_FILE)).map_err(unlocked)
}

/// Keeps others from running on the directory; to read it is enough.
pub(crate) fn share_lock(disk: &dyn Disk) -> Result<Lock, Error> {
    disk.lock_shared(Path::new(LOCK_FILE)).map_err(unlocked)
}

fn unlocked(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => Error::InUse(LOCK_FILE.into()),
        _ => Error::disk("lock", LOCK_FILE)(error),
    }
}

/// Whether the directory has its mark. One of a newer release is `NewerFormat`, one that makes no
/// sense `Damaged`. The format is named in a file of its own, which even a release that knows
/// nothing else of a directory can read.
pub fn check_format(disk: &dyn Disk) -> Result<bool, Error> {
    let path = Path::new(FORMAT_FILE);
    if !exists(disk, path)? {
        return Ok(false);
    }
    let file = disk.open(path, Open::Read).map_err(Error::disk("open", path))?;
    let len = file.len().map_err(Error::disk("stat", path))?.min(256);
    let text = read_file(&*file, 0, len).map_err(Error::disk("read", path))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let number = text.trim().strip_prefix("courant data format ").and_then(|n| n.parse().ok());
    match number {
        Some(found) if found > record::FORMAT => {
            Err(Error::NewerFormat { file: path.into(), found, known: record::FORMAT })
        }
        Some(_) => Ok(true),
        None => Err(Error::Damaged(path.into(), format!("it says {:?}", text.trim()))),
    }
}

/// Writes the mark. Whether it was missing from a directory that is not new.
pub(crate) fn write_format(disk: &dyn Disk) -> Result<bool, Error> {
    let path = Path::new(FORMAT_FILE);
    let text = format!("courant data format {}\n", record::FORMAT);
    crate::disk::replace(disk, path, text.as_bytes()).map_err(Error::disk("write", path))?;
    exists(disk, Path::new(checkpoint::FILE))
}

/// Tries a hole on a file of two blocks.
pub(crate) fn check_punch(disk: &dyn Disk) -> Result<(), Error> {
    let path = Path::new(PUNCH_PROBE);
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
    remove_if_there(disk, Path::new(BALLAST)).map_err(Error::disk("remove", BALLAST))
}
