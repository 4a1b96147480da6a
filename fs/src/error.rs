//! Why an operation on a file failed, and the one table that turns it into an errno.

use protocol::{Remedy, Span};
use rustix::io::Errno;

/// A failed operation. Each variant is one cause; [`Error::errno`] says what its caller is told.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("no such file")]
    NotFound,
    #[error("the file is there already")]
    Exists,
    #[error("the journal of this file was deleted, or the file is served by its other node")]
    Stale,
    #[error("the directory is not empty")]
    NotEmpty,
    #[error("the file is a directory")]
    IsDirectory,
    #[error("the file is no directory")]
    NotDirectory,
    #[error("committed bytes and names of journals never change")]
    Unchangeable,
    #[error("the name is refused: {0}")]
    Refused(String),
    #[error("a write at {offset} is beyond the head")]
    BeyondHead { offset: u64 },
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    #[error("the file may not be written")]
    ReadOnly,
    #[error("the file may not be read")]
    NotReadable,
    #[error("the name is too long")]
    NameTooLong,
    #[error("no such handle")]
    BadHandle,
    #[error("reading would wait")]
    WouldBlock,
    #[error("the caller has a signal")]
    Interrupted,
    #[error("the mount is being taken away")]
    Unmounted,
    #[error("not supported here")]
    NotSupported,
    #[error("no such attribute")]
    NoAttribute,
    #[error("the attribute does not fit")]
    DoesNotFit,
    #[error("the text may have {max} bytes")]
    TooLong { max: usize },
    #[error("no data at or after the offset")]
    NoData,
    #[error("too many files without a byte")]
    TooManyPlaceholders,
    /// A bound of the staging directory.
    #[error(
        "what waits to be committed may take {max} {what}: close files that wait, look at what \
         .courant/status calls aside, or raise --staging-max"
    )]
    StagingFull { what: &'static str, max: u64 },
    #[error("staging on the local disk failed: {detail}")]
    Staging { detail: String, is_full: bool },
    #[error("this mount has no directory for what waits to be committed")]
    NoStaging,
    /// Of a sync that came too late.
    #[error(
        "bytes that were written and not synced are lost, by a power cut of the broker: {span}"
    )]
    NotKept { span: Span },
    #[error(transparent)]
    Journals(#[from] client::Error),
}

impl Error {
    /// Whether it is only that the broker is away, or busy: what passes by itself.
    pub fn passes(&self) -> bool {
        match self {
            Error::Journals(client::Error::Unknown) => true,
            Error::Journals(error) => error.remedy() == Remedy::Later,
            _ => false,
        }
    }

    /// The number that the caller of the system call sees.
    pub fn errno(&self) -> Errno {
        match self {
            Error::NotFound => Errno::NOENT,
            Error::Exists => Errno::EXIST,
            Error::Stale => Errno::STALE,
            Error::NotEmpty => Errno::NOTEMPTY,
            Error::IsDirectory => Errno::ISDIR,
            Error::NotDirectory => Errno::NOTDIR,
            Error::Unchangeable | Error::Refused(_) => Errno::PERM,
            Error::BeyondHead { .. } | Error::Invalid(_) => Errno::INVAL,
            Error::ReadOnly => Errno::ROFS,
            Error::NotReadable => Errno::ACCESS,
            Error::NameTooLong => Errno::NAMETOOLONG,
            Error::BadHandle => Errno::BADF,
            Error::WouldBlock => Errno::AGAIN,
            Error::Interrupted => Errno::INTR,
            Error::Unmounted => Errno::NODEV,
            Error::NotSupported | Error::NoStaging => Errno::OPNOTSUPP,
            Error::NoAttribute => Errno::NODATA,
            Error::DoesNotFit => Errno::RANGE,
            Error::TooLong { .. } => Errno::FBIG,
            Error::NoData => Errno::NXIO,
            Error::TooManyPlaceholders | Error::StagingFull { .. } => Errno::NOSPC,
            Error::Staging { is_full: true, .. } => Errno::NOSPC,
            Error::Staging { is_full: false, .. } | Error::NotKept { .. } => Errno::IO,
            Error::Journals(error) => journals_errno(error),
        }
    }
}

/// The errno of a request of journals that failed for good: what passes by itself was asked again
/// until the time was up, so that `Later` is told as a time-out.
fn journals_errno(error: &client::Error) -> Errno {
    use client::Error as E;
    match error {
        E::NotFound(_) => Errno::NOENT,
        E::Deleted(_) => Errno::STALE,
        E::WrongOffset { .. } | E::RegisterMismatch { .. } | E::Refused(..) => Errno::PERM,
        E::NotAllowed { .. } | E::Unauthorized(_) => Errno::ACCESS,
        E::NoSpace(..) => Errno::NOSPC,
        E::TooLarge(..) => Errno::FBIG,
        E::OverRate { .. } | E::OverSize { .. } => Errno::DQUOT,
        E::Invalid(_) | E::NoDisk(_) | E::Unsupported(_) | E::Specs(..) => Errno::INVAL,
        E::Trimmed { .. } | E::Lost { .. } => Errno::NODATA,
        E::Conflict(..) => Errno::STALE,
        E::Later(_) | E::Unreachable(_) | E::Unknown => Errno::TIMEDOUT,
        E::Damaged { .. } | E::SecondWriter(..) | E::StaleSequence(..) | E::Io(_) => Errno::IO,
        E::Protocol(_) => Errno::PROTO,
    }
}

#[cfg(test)]
mod tests;
