//! `lost+found`: files of journals that nobody knows are moved there, and the way back.
//!
//! Beside the mirror of a journal that the key space did not know lie its name, for people, and its
//! ledger, which says what of the mirror is right. A key space that knows the journal again, as one
//! that was restored does, gets it back with them.

use crate::checkpoint::{self, Checkpoint};
use crate::datadir::LOST_AND_FOUND;
use crate::disk::{Disk, remove_if_there, replace};
use crate::ledger::Ledger;
use crate::mirror::{self, Mirror};
use crate::record::Position;
use crate::{Error, recover};
use protocol::Life;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the name of a journal's ledger ends with there.
const LEDGER: &str = ".ledger";

/// Moves a file there. Where it is then.
pub(crate) fn move_file(disk: &dyn Disk, path: &Path) -> Result<String, Error> {
    let name = path.file_name().unwrap_or_default();
    let lost = Path::new(LOST_AND_FOUND).join(name);
    disk.rename(path, &lost).map_err(Error::disk("rename", &lost))?;
    Ok(lost.to_string_lossy().into_owned())
}

/// Moves the mirror of a journal without a spec there, which is synced, beside its name and its
/// ledger, durably. The ledger comes first: files without it can't come back.
pub(crate) fn move_journal(disk: &dyn Disk, ledger: &Ledger) -> Result<(), Error> {
    let life = ledger.life;
    let note = |path: PathBuf, content: &[u8]| {
        replace(disk, &path, content).map_err(Error::disk("write", &path))
    };
    let only = Checkpoint { ledgers: vec![ledger.clone()], ..Checkpoint::default() };
    note(name_of(life), format!("{}\n", ledger.name).as_bytes())?;
    note(ledger_of(life), &only.encode())?;
    let entries = disk.list(Path::new(mirror::DIR)).map_err(Error::disk("list", mirror::DIR))?;
    for (owner, first) in entries.iter().filter_map(|entry| mirror::parse_name(&entry.name)) {
        if owner == life {
            move_file(disk, &mirror::path_of(life, first))?;
        }
    }
    // Before the record of it: recovery removes what it finds of a journal that ended.
    sync_names(disk)
}

fn sync_names(disk: &dyn Disk) -> Result<(), Error> {
    let dirs = [Path::new(LOST_AND_FOUND), Path::new(mirror::DIR)];
    dirs.into_iter().try_for_each(|dir| disk.sync_dir(dir).map_err(Error::disk("sync", dir)))
}

/// Whether a journal's files are there, with what says how much of them is right.
pub(crate) fn has(disk: &dyn Disk, life: Life) -> bool {
    ledger(disk, life).is_some()
}

/// Moves the files of a journal back, durably. What does not match its sums is damaged in the
/// ledger. What lies beside them stays until [`forget`], which is for when a checkpoint has it.
pub(crate) fn take_back(
    disk: &Arc<dyn Disk>,
    life: Life,
) -> Result<Option<(Ledger, Mirror)>, Error> {
    let Some(mut ledger) = ledger(&**disk, life) else { return Ok(None) };
    let lost = Path::new(LOST_AND_FOUND);
    let mut firsts = Vec::new();
    for entry in disk.list(lost).map_err(Error::disk("list", lost))? {
        let Some((_, first)) = mirror::parse_name(&entry.name).filter(|(of, _)| *of == life) else {
            continue;
        };
        let back = mirror::path_of(life, first);
        disk.rename(&lost.join(&entry.name), &back).map_err(Error::disk("rename", &back))?;
        firsts.push(first);
    }
    sync_names(&**disk)?;
    let mirror = Mirror::new(disk.clone(), life, firsts);
    recover::verify(&mut ledger, &mirror)?;
    // Nobody was shown more, since it was served by nobody; and no record of it is in this log.
    ledger.ceiling = ledger.head;
    ledger.as_of = Position::default();
    Ok(Some((ledger, mirror)))
}

/// Removes what lay beside the files of a journal that was taken back.
pub(crate) fn forget(disk: &dyn Disk, life: Life) -> Result<(), Error> {
    for note in [ledger_of(life), name_of(life)] {
        remove_if_there(disk, &note).map_err(Error::disk("remove", &note))?;
    }
    sync_names(disk)
}

/// The ledger that lies there. One that can't be read says no more than one that is not there.
fn ledger(disk: &dyn Disk, life: Life) -> Option<Ledger> {
    let bytes = checkpoint::bytes(disk, &ledger_of(life)).ok()??;
    let ledgers = Checkpoint::decode(&bytes).ok()?.ledgers;
    ledgers.into_iter().find(|ledger| ledger.life == life)
}

/// Whose ledger a file of this name is.
pub(crate) fn life_of(name: &str) -> Option<Life> {
    mirror::parse_name(name.strip_suffix(LEDGER)?).map(|(life, _)| life)
}

fn ledger_of(life: Life) -> PathBuf {
    Path::new(LOST_AND_FOUND).join(format!("{life}{LEDGER}"))
}

fn name_of(life: Life) -> PathBuf {
    Path::new(LOST_AND_FOUND).join(format!("{life}.name"))
}
