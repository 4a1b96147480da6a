//! What can go wrong with local bytes.

use protocol::{Life, Offset, Remedy, Span};
use std::io;
use std::path::PathBuf;

/// A fault of a data directory, or of one journal's bytes in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{operation} {path}: {source}")]
    Disk { operation: &'static str, path: PathBuf, source: io::Error },
    #[error("the disk is full: {needed} bytes are needed, {free} are free")]
    Full { needed: u64, free: u64 },
    #[error("the local budget of {budget} bytes is used up, and nothing of it can be evicted")]
    OverBudget { budget: u64 },
    #[error(
        "the data directory is in use by another process, which holds {0}: \
         end that broker, or use another directory"
    )]
    InUse(PathBuf),
    #[error(
        "{file} has format {found}, and this release reads up to {known}: use the release that \
         wrote it, or a newer one"
    )]
    NewerFormat { file: PathBuf, found: u32, known: u32 },
    #[error("{0} is damaged: {1}")]
    Damaged(PathBuf, String),
    #[error(
        "the file system of {0} cannot free parts of files (hole punching): \
         put the data directory on ext4, xfs, btrfs or tmpfs"
    )]
    NoPunch(PathBuf),
    #[error(
        "the commit log holds {segments} segments that no checkpoint could free: \
         see the log for the mirror that can't be synced"
    )]
    LogFull { segments: usize },
    #[error("journal {0} is gone")]
    Deleted(Life),
    #[error("bytes {span} of journal {life} are damaged")]
    DamagedSpan { life: Life, span: Span },
    #[error("offset {offset} of journal {life} is not local")]
    NotLocal { life: Life, offset: Offset },
    #[error("a journal with id {0} exists")]
    Exists(Life),
    #[error("an append of {len} bytes is over the limit of {max}")]
    TooLarge { len: u64, max: u64 },
    #[error("a backup of the data directory is under way: wait for its end, or end it")]
    Held,
    #[error(
        "the checkpoint is not the one that the broker told of: it serves another directory; name \
         the broker that serves this one"
    )]
    OtherCheckpoint,
    #[error("the data directory is closing")]
    Closing,
}

impl Error {
    pub(crate) fn disk(
        operation: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Disk { operation, path, source }
    }

    /// Whether the cause is a full disk or a full budget.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Full { .. } | Error::OverBudget { .. } => true,
            Error::Disk { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Error::Closing | Error::Held | Error::LogFull { .. } => Remedy::Later,
            Error::Full { .. } | Error::OverBudget { .. } => Remedy::Fix,
            Error::DamagedSpan { .. } | Error::Damaged(..) => Remedy::Lost,
            Error::NotLocal { .. } => Remedy::Reroute,
            Error::Disk { .. }
            | Error::InUse(_)
            | Error::OtherCheckpoint
            | Error::NewerFormat { .. }
            | Error::NoPunch(_)
            | Error::Deleted(_)
            | Error::Exists(_)
            | Error::TooLarge { .. } => Remedy::Fix,
        }
    }
}
