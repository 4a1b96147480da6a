//! Where what was written waits on the local disk until it may be committed: the unfinished lines
//! of line mode, and the content of the whole view.
//!
//! Each handle that has something waiting has a [`Draft`]: a file of its own, which says for which
//! journal it is and as which append of which writer. So a mount that comes back finds what another
//! process of it left, and commits it once. What must not be committed is set aside, and never
//! removed by us.

mod draft;
mod header;
mod pen;

pub(crate) use draft::Draft;
pub(crate) use header::Manner;
pub(crate) use pen::{Held, Pen, push};

use crate::Error;
use crate::limits::DRAFTS_MAX;
use crate::pending::Pending;
use crate::recent::Recent;
use client::disk::{Disk, Lock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Where files lie that people must look at.
const ASIDE: &str = "aside";

const LOCK: &str = "lock";

/// A directory of drafts. One mount uses it at a time.
pub struct Staging {
    disk: Arc<dyn Disk>,
    bytes_max: u64,
    table: Mutex<Table>,
    /// What a mount that ended left here, not taken up yet.
    left: Mutex<Vec<u64>>,
    /// What was closed and is on its way to its journal: it makes room.
    pub(crate) closing: Pending,
    /// What became of content that nobody waits for any more.
    pub(crate) outcomes: Recent,
    _lock: Lock,
}

#[derive(Debug, Default)]
struct Table {
    number: u64,
    drafts: usize,
    bytes: u64,
    aside: u64,
}

/// What waits in a staging directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub bytes: u64,
    pub drafts: usize,
    pub aside: u64,
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staging").field("disk", &self.disk).finish_non_exhaustive()
    }
}

impl Staging {
    /// Takes a directory for one mount. `bytes_max` bounds all that waits there at once, with what
    /// was set aside. `WouldBlock` where another process has it.
    pub fn open(disk: Arc<dyn Disk>, bytes_max: u64) -> io::Result<Staging> {
        let lock = disk.lock(Path::new(LOCK))?;
        disk.create_dir(Path::new(ASIDE))?;
        let numbered = |name: &str| name.strip_suffix(".draft")?.parse::<u64>().ok();
        let left = disk.list(Path::new(""))?;
        let aside = disk.list(Path::new(ASIDE))?;
        let content = |entry: &client::disk::Entry| entry.len.saturating_sub(draft::CONTENT_AT);
        let bytes = left.iter().chain(&aside).map(content).sum();
        let numbers = |entries: &[client::disk::Entry]| -> Vec<u64> {
            entries.iter().filter_map(|entry| numbered(&entry.name)).collect()
        };
        let (left, set_aside) = (numbers(&left), numbers(&aside));
        // They would be set aside as what no draft is, and are whole.
        left.iter().try_for_each(|number| draft::refuse_newer(&*disk, *number))?;
        let number = left.iter().chain(&set_aside).max().copied().unwrap_or_default();
        let table = Table { number, bytes, aside: aside.len() as u64, ..Table::default() };
        let (table, left) = (Mutex::new(table), Mutex::new(left));
        let (closing, outcomes) = (Pending::none(), Recent::default());
        Ok(Staging { disk, bytes_max, table, left, closing, outcomes, _lock: lock })
    }

    pub(super) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The drafts that were left here, once.
    pub(crate) fn take_left(self: &Arc<Self>) -> Vec<Result<Draft, (u64, Error)>> {
        let left = std::mem::take(&mut *self.left.lock().expect("no holder panics"));
        let mut drafts = Vec::new();
        for number in left {
            match Draft::found(self, number) {
                Ok(Some(draft)) => drafts.push(Ok(draft)),
                Ok(None) => {}
                Err(error) => drafts.push(Err((number, error))),
            }
        }
        self.table().drafts += drafts.iter().flatten().count();
        drafts
    }

    pub(crate) fn waiting(&self) -> Waiting {
        let table = self.table();
        Waiting { bytes: table.bytes, drafts: table.drafts, aside: table.aside }
    }

    /// Moves a draft's file aside; where it is then.
    pub(crate) fn set_aside(&self, number: u64) -> PathBuf {
        let from = draft::path(number);
        let to = Path::new(ASIDE).join(&from);
        self.table().aside += 1;
        match self.disk.rename(&from, &to) {
            Ok(()) => self.disk.place(&to),
            Err(error) => {
                tracing::error!(%error, number, "a draft can't be set aside and stays");
                self.disk.place(&from)
            }
        }
    }

    fn take_number(&self) -> Result<u64, Error> {
        let mut table = self.table();
        if table.drafts >= DRAFTS_MAX {
            return Err(Error::StagingFull { what: "files", max: DRAFTS_MAX as u64 });
        }
        table.drafts += 1;
        table.number += 1;
        Ok(table.number)
    }

    fn give_back_number(&self) {
        self.table().drafts -= 1;
    }

    /// Room for `more` bytes.
    fn charge(&self, more: u64) -> Result<(), Error> {
        let mut table = self.table();
        if table.bytes.saturating_add(more) > self.bytes_max {
            return Err(Error::StagingFull { what: "bytes", max: self.bytes_max });
        }
        table.bytes += more;
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        let mut table = self.table();
        table.bytes = table.bytes.saturating_sub(bytes);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().expect("no holder panics")
    }
}
