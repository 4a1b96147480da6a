//! Faults that are aimed: at the operations of one name on one part of a data directory.

use index::disk::{ForgetfulDisk, Trouble};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

const EIO: i32 = 5;

/// What a file of a data directory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Any,
    Log,
    Checkpoint,
    Mirror,
    KeySpace,
    Staging,
}

impl Part {
    fn has(self, path: &Path) -> bool {
        let begin = match self {
            Part::Any => return true,
            Part::Log => "log",
            Part::Checkpoint => "checkpoint",
            Part::Mirror => "mirror",
            Part::KeySpace => "keyspace",
            Part::Staging => "staging",
        };
        path.to_str().is_some_and(|path| path.starts_with(begin))
    }
}

/// An operation to come: the `nth` (from 0) of its name on a part.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    pub operation: &'static str,
    pub part: Part,
    pub nth: u64,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy)]
pub enum Fate {
    /// The machine dies in the middle of it.
    Stop,
    /// It fails, and so do those that follow, so many in all.
    Fail { errno: i32, times: u32 },
}

/// The aims of one life of a disk. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Aims(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    aims: Vec<(Aim, Fate)>,
    last_failure: Option<Instant>,
    failed: Arc<Notify>,
}

impl Aims {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no holder panics")
    }

    pub fn add(&self, aim: Aim, fate: Fate) {
        self.state().aims.push((aim, fate));
    }

    pub fn clear(&self) {
        self.state().aims.clear();
    }

    /// When an operation was last made to fail.
    pub fn last_failure(&self) -> Option<Instant> {
        self.state().last_failure
    }

    /// Waits until an operation failed as it was told to.
    pub async fn failed(&self) {
        let failed = self.state().failed.clone();
        failed.notified().await;
    }

    /// Says to the disk what becomes of an operation that it is about to be asked for. A read is
    /// none of its operations, and fails here.
    pub fn meet(
        &self,
        disk: &ForgetfulDisk,
        operation: &'static str,
        path: &Path,
    ) -> io::Result<()> {
        let mut state = self.state();
        let is_met = |aim: &Aim| aim.operation == operation && aim.part.has(path);
        let Some(at) = state.aims.iter().position(|(aim, _)| is_met(aim)) else { return Ok(()) };
        let (aim, fate) = &mut state.aims[at];
        if aim.nth > 0 {
            aim.nth -= 1;
            return Ok(());
        }
        match fate {
            Fate::Stop => disk.stop_at(disk.operations()),
            Fate::Fail { errno, times } => {
                let errno = *errno;
                *times -= 1;
                let is_over = *times == 0;
                if is_over {
                    state.aims.remove(at);
                }
                state.last_failure = Some(Instant::now());
                state.failed.notify_one();
                if operation == "read" {
                    return Err(io::Error::from_raw_os_error(EIO));
                }
                let nth = disk.operations_of(operation);
                disk.fail(Trouble { operation: Some(operation), nth, errno });
            }
        }
        Ok(())
    }
}
