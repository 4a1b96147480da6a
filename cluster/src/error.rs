//! What can go wrong in a key space, and what the caller can do about it.

use crate::Refused;
use protocol::{Invalid, Journal, Remedy};
use std::io;

/// A fault of the key space. A compare that fails is no fault but an [`crate::Outcome`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// etcd's limit on one transaction, which clients are written for.
    #[error("too many changes in one request ({changes}; limit {limit})")]
    TooManyChanges { changes: usize, limit: usize },
    /// etcd refuses a transaction that changes a key twice.
    #[error("journal {journal} is changed twice in one request")]
    Repeated { journal: Journal },
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The transaction may or may not be durable; nothing of it is shown until that is known.
    #[error("key space storage: {0}")]
    Storage(#[from] Box<redb::Error>),
    /// A sync failed, so what the storage holds is unknown until the process starts again.
    #[error("key space storage failed to sync")]
    Unsynced,
    /// The file was written by a later release.
    #[error(
        "the key space has format {found}, and this release reads up to {known}: use the release \
         that wrote it, or a newer one"
    )]
    NewerFormat { found: u64, known: u64 },
    /// A stored value that this release cannot read.
    #[error("key space is damaged at {table}/{key}: {reason}")]
    Damaged { table: &'static str, key: String, reason: String },
    /// There is data of journals beside a file that has none, and never had.
    #[error("key space is missing or empty, and there are journals")]
    Gone,
    /// The file is older than what was already shown from it.
    #[error("key space went back from revision {shown} to {stored}")]
    WentBack { shown: i64, stored: i64 },
    /// The key space is closing down.
    #[error("key space is stopping")]
    Stopping,
}

impl Error {
    /// Whether the cause is a full disk.
    pub fn is_full(&self) -> bool {
        let Error::Storage(error) = self else { return false };
        let redb::Error::Io(error) = &**error else { return false };
        matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Whether the file holds what no release wrote: then there is no use in trying again.
    pub fn is_damage(&self) -> bool {
        match self {
            Error::Damaged { .. } | Error::Gone => true,
            Error::Storage(error) => match &**error {
                redb::Error::Io(error) => {
                    matches!(
                        error.kind(),
                        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
                    )
                }
                redb::Error::Corrupted(_)
                | redb::Error::RepairAborted
                | redb::Error::TableTypeMismatch { .. }
                | redb::Error::TableIsMultimap(_)
                | redb::Error::TableIsNotMultimap(_)
                | redb::Error::TypeDefinitionChanged { .. } => true,
                _ => false,
            },
            _ => false,
        }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Error::TooManyChanges { .. }
            | Error::Repeated { .. }
            | Error::Invalid(_)
            | Error::Refused(_)
            | Error::Unsynced
            | Error::NewerFormat { .. } => Remedy::Fix,
            Error::Storage(_) if self.is_full() => Remedy::Fix,
            Error::Storage(_) => Remedy::Later,
            Error::Damaged { .. } | Error::Gone | Error::WentBack { .. } => Remedy::Lost,
            Error::Stopping => Remedy::Reroute,
        }
    }
}
