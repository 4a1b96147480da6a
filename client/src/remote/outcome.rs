//! The statuses of Gazette as errors: one table.

use crate::Error;
use protocol::response::AppendResponse;
use protocol::{Journal, LabelSet, Offset, Status};

/// The error that a status of a request on `journal` is. `Ok` is one too: it stands where an answer
/// was expected that only comes with another status.
pub(crate) fn error(status: Status, journal: &Journal) -> Error {
    let journal = journal.clone();
    match status {
        Status::JournalNotFound => Error::NotFound(journal),
        Status::NotAllowed => {
            let detail = "its flags do not allow that (O_RDONLY: no content is taken, O_WRONLY: \
                          nobody reads): courant journals edit changes them"
                .to_owned();
            Error::NotAllowed { journal, detail }
        }
        // The answer does not say where the journal ends.
        Status::WrongAppendOffset => Error::WrongOffset { journal, head: Offset::ZERO },
        Status::RegisterMismatch => {
            Error::RegisterMismatch { journal, registers: LabelSet::default() }
        }
        Status::IndexHasGreaterOffset => {
            let detail = "its store ends above its head: another broker wrote to it; stop that \
                          one, then reset the head (courant journals reset-head)"
                .to_owned();
            Error::SecondWriter(journal, detail)
        }
        Status::EtcdTransactionFailed => Error::Conflict(journal, 0),
        Status::NoJournalPrimaryBroker
        | Status::NotJournalPrimaryBroker
        | Status::InsufficientJournalBrokers
        | Status::NotJournalBroker
        | Status::WrongRoute
        | Status::ProposalMismatch
        | Status::Suspended
        | Status::FragmentStoreUnhealthy => Error::Later(format!("{journal}: {status}")),
        Status::Ok | Status::OffsetNotYetAvailable => {
            Error::Protocol(format!("{journal}: unexpected {status}"))
        }
    }
}

/// The error of an append that was not made. A store that is at fault says why.
pub(crate) fn refused(answer: AppendResponse, journal: &Journal) -> Error {
    let AppendResponse { status, store_health_error: why, .. } = answer;
    match status {
        Status::FragmentStoreUnhealthy if !why.is_empty() => {
            Error::Later(format!("{journal}: its store can't be used: {why}"))
        }
        status => error(status, journal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Remedy;

    #[test]
    fn what_a_status_asks_for_stays() {
        let journal: Journal = "local/log".parse().expect("valid");
        for status in Status::ALL {
            let found = error(status, &journal).remedy();
            match status {
                // Case: waiting at the head is the reader's affair, not a retry's.
                Status::OffsetNotYetAvailable => assert_eq!(found, Remedy::Fix),
                // Case: one broker is all there is to ask.
                _ if status.remedy() == Remedy::Reroute => assert_eq!(found, Remedy::Later),
                _ => assert_eq!(found, status.remedy(), "{status}"),
            }
        }
    }
}
