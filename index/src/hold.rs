//! A hold on a data directory: while it lives nothing is freed, so that its files can be copied.
//!
//! From its begin no span is evicted, no block of a mirror is freed and no mirror of a deleted
//! journal is removed. From its [moment](Hold::moment) until [`Hold::log_copied`] the checkpoint
//! stays as it is, and so do the log and the staging files behind it. What is copied in the order
//! log, mirrors is therefore whole: a mirror has, or the log has, every local byte of that moment.

use crate::checkpoint::{self, Checkpoint};
use crate::record::Position;
use crate::replica::Replica;
use crate::{DataDir, Error, limits};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Whether a directory is held, and what is to be done when it is not any more.
#[derive(Debug, Default)]
pub(crate) struct Holds(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    is_held: bool,
    is_log_held: bool,
    /// Journals that were deleted meanwhile, with their files.
    deleted: Vec<Arc<Replica>>,
}

impl Holds {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().expect("no holder of the holds panics")
    }

    /// Whether nothing may be freed.
    pub fn is_held(&self) -> bool {
        self.held().is_held
    }

    /// Whether the checkpoint has to stay as it is.
    pub fn is_log_held(&self) -> bool {
        self.held().is_log_held
    }

    /// Takes over the removal of a deleted journal's files, while there is a hold.
    pub fn defer(&self, replica: &Arc<Replica>) -> bool {
        let mut held = self.held();
        if held.is_held {
            held.deleted.push(replica.clone());
        }
        held.is_held
    }
}

/// The state of all journals at one place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The log is needed from here on.
    pub start: Position,
    /// And up to here, exclusively. All below is synced, and stays as it is.
    pub end: Position,
    /// The CRC32C of the checkpoint's file, by which it is told from that of another directory.
    pub checkpoint_crc: u32,
}

/// See the module. Dropping it ends it, and removes what was kept for it; blocks on the disk then.
#[derive(Debug)]
pub struct Hold {
    data: Arc<DataDir>,
}

impl Hold {
    /// Begins the one hold that a directory may have.
    pub(crate) fn begin(data: Arc<DataDir>) -> Result<Hold, Error> {
        let mut held = data.holds().held();
        if std::mem::replace(&mut held.is_held, true) {
            return Err(Error::Held);
        }
        drop(held);
        Ok(Hold { data })
    }

    /// Takes the state of this moment: all that was acknowledged before is in it. Writes a
    /// checkpoint, so that little of the log is needed. Blocks on the disk.
    pub fn moment(&self) -> Result<Moment, Error> {
        self.data.at_rest(|data| {
            // A checkpoint of an earlier moment makes room for the next.
            data.holds().held().is_log_held = false;
            data.write_checkpoint()?;
            let end = data.log().position();
            data.sync_to(end)?;
            let path = Path::new(checkpoint::FILE);
            let stored = checkpoint::bytes(&**data.disk(), path)?.expect("it was just written");
            let start = Checkpoint::decode(&stored)?.start;
            data.holds().held().is_log_held = true;
            Ok(Moment { start, end, checkpoint_crc: crc32c::crc32c(&stored) })
        })
    }

    /// What the moment named was copied: checkpoints go on.
    pub fn log_copied(&self) {
        self.data.holds().held().is_log_held = false;
    }

    /// Whether so much of the log waits behind the held checkpoint that appends would be refused
    /// soon: then the hold has to end.
    pub fn is_log_long(&self) -> bool {
        self.data.holds().is_log_held()
            && self.data.log().older_segments() >= limits::SEGMENTS_HELD_MAX
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let deleted = {
            let mut held = self.data.holds().held();
            (held.is_held, held.is_log_held) = (false, false);
            std::mem::take(&mut held.deleted)
        };
        for replica in deleted {
            if let Err(error) = replica.mirror().remove() {
                let journal = replica.name();
                tracing::warn!(%journal, %error, "files of a deleted journal stay");
            }
        }
    }
}
