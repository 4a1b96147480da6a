//! Why a request failed, as the wire tells it.

use crate::Error;
use protocol::wire::courant::Fault;
use protocol::{Remedy, Status};

/// The fault of an error. Its text goes beside it, and nobody but people reads that.
pub fn fault_of(error: &Error) -> Fault {
    match error {
        Error::Unresolved { status: Status::JournalNotFound, .. } => Fault::NotFound,
        Error::Deleted(_) => Fault::Deleted,
        Error::NotAllowed { .. } | Error::RegistersWithoutContent | Error::Unauthorized(_) => {
            Fault::NotAllowed
        }
        Error::WrongOffset { .. } => Fault::WrongOffset,
        Error::RegisterMismatch { .. } => Fault::RegisterMismatch,
        Error::StaleSequence { .. } => Fault::StaleSequence,
        Error::SecondWriter { .. } | Error::StoreIsAhead { .. } => Fault::SecondWriter,
        Error::TooLarge { .. } => Fault::TooLarge,
        Error::OverRate { .. } => Fault::OverRate,
        Error::OverSize { .. } => Fault::OverSize,
        Error::Invalid(_) => Fault::Refused,
        Error::Conflict { .. } => Fault::Conflict,
        Error::Unresolved { .. }
        | Error::Misrouted(_)
        | Error::Suspended { .. }
        | Error::StagingFull { .. }
        | Error::Idle { .. }
        | Error::TooSlow { .. }
        | Error::Unpersisted { .. }
        | Error::Busy { .. }
        | Error::HoldEnded(_)
        | Error::Closing => Fault::Later,
        Error::Trimmed { .. } | Error::Lost { .. } | Error::Damaged { .. } | Error::Hole { .. } => {
            Fault::Io
        }
        Error::Unlisted { remedy, .. } => later_or_io(*remedy),
        Error::Store(error) => later_or_io(error.remedy()),
        Error::Local(error) => local(error),
        Error::KeySpace(error) => key_space(error),
    }
}

fn local(error: &index::Error) -> Fault {
    match error {
        full if full.is_full() => Fault::NoSpace,
        index::Error::Deleted(_) => Fault::Deleted,
        index::Error::TooLarge { .. } => Fault::TooLarge,
        other => later_or_io(other.remedy()),
    }
}

fn key_space(error: &cluster::Error) -> Fault {
    match error {
        cluster::Error::Refused(_) | cluster::Error::Invalid(_) => Fault::Refused,
        full if full.is_full() => Fault::NoSpace,
        other => later_or_io(other.remedy()),
    }
}

fn later_or_io(remedy: Remedy) -> Fault {
    match remedy {
        Remedy::Later | Remedy::Reroute => Fault::Later,
        Remedy::Fix | Remedy::Lost => Fault::Io,
    }
}
