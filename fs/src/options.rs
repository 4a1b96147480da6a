//! What the one who mounts decides.

use crate::patience::left;
use client::{Durability, WRITE_TIMEOUT_MAX};
use std::time::{Duration, SystemTime};

/// How a mount shows journals. Valid as built; [`Options::new`] gives what is used when nothing is
/// said.
#[derive(Debug, Clone)]
pub struct Options {
    /// What file names are appended to: file `x` is journal `<prefix>x`.
    pub prefix: String,
    pub uid: u32,
    pub gid: u32,
    /// Permission bits that no file and no directory has.
    pub umask: u32,
    /// Whether `unlink` deletes a journal, with the objects of its fragments.
    pub allow_delete: bool,
    /// Whether nothing may be written at all.
    pub read_only: bool,
    /// Whether only whole lines are committed, of every file.
    pub lines: bool,
    /// Whether a write returns when it is queued.
    pub asynchronous: bool,
    /// What `write(2)` waits for; `fsync` and `O_SYNC` always mean disk.
    pub durability: Durability,
    pub fsync: Fsync,
    /// How reads of a trimmed range are answered.
    pub trimmed: Trimmed,
    /// How long an operation waits for what passes by itself; at most [`WRITE_TIMEOUT_MAX`], since
    /// a write that waits blocks the other writers of its file on this mount.
    pub write_timeout: Duration,
    /// Whether the kernel may read local journals for us.
    pub passthrough: bool,
    /// The `comm` of programs whose `fstat` may be held until a journal grows.
    pub follow_programs: Vec<String>,
    /// 16 random bytes: this mount, as the writer of its appends.
    pub writer: [u8; 16],
    /// The time of the mount: that of directories and of files without a byte.
    pub started: SystemTime,
}

/// What `fsync` means where no disk durability can be promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// It fails with `EINVAL`.
    Disk,
    /// It succeeds: being with every replica is enough.
    Replicated,
}

/// How reads of a trimmed range are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trimmed {
    /// With `ENODATA`.
    Error,
    /// As a hole: zeros that were asked for.
    Sparse,
}

impl Options {
    pub fn new(writer: [u8; 16], started: SystemTime) -> Self {
        Options {
            prefix: String::new(),
            uid: 0,
            gid: 0,
            umask: 0o022,
            allow_delete: false,
            read_only: false,
            lines: false,
            asynchronous: false,
            durability: Durability::Memory,
            fsync: Fsync::Disk,
            trimmed: Trimmed::Error,
            write_timeout: WRITE_TIMEOUT_MAX,
            passthrough: true,
            follow_programs: vec!["tail".to_owned()],
            writer,
            started,
        }
    }

    /// How long an append may wait for its journal's rate: a little less than for everything, so
    /// that its writer is told of the rate and not of the time.
    pub(crate) fn rate_wait(&self) -> Duration {
        let left = left(self.write_timeout);
        left - left / 8
    }
}
