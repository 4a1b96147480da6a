//! The outcomes that a broker answers, and what each asks of the caller.

use crate::Invalid;

/// What the caller of a failed request can do about it. Retry code looks at nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Ask again, for another broker or at a newer revision: the answer was out of date.
    Reroute,
    /// Ask again after a pause: the cause passes by itself.
    Later,
    /// Change the request, the spec or the setup: asking again gives the same answer.
    Fix,
    /// The bytes are gone or wrong; no retry brings them back.
    Lost,
}

/// `protocol.Status`, numbered as Gazette numbers it (gazette-spec 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Status {
    Ok = 0,
    JournalNotFound = 1,
    NoJournalPrimaryBroker = 2,
    NotJournalPrimaryBroker = 3,
    InsufficientJournalBrokers = 4,
    NotJournalBroker = 5,
    OffsetNotYetAvailable = 6,
    WrongRoute = 7,
    ProposalMismatch = 8,
    EtcdTransactionFailed = 9,
    NotAllowed = 10,
    WrongAppendOffset = 11,
    IndexHasGreaterOffset = 12,
    RegisterMismatch = 13,
    Suspended = 14,
    FragmentStoreUnhealthy = 15,
}

impl Status {
    pub const ALL: [Status; 16] = [
        Status::Ok,
        Status::JournalNotFound,
        Status::NoJournalPrimaryBroker,
        Status::NotJournalPrimaryBroker,
        Status::InsufficientJournalBrokers,
        Status::NotJournalBroker,
        Status::OffsetNotYetAvailable,
        Status::WrongRoute,
        Status::ProposalMismatch,
        Status::EtcdTransactionFailed,
        Status::NotAllowed,
        Status::WrongAppendOffset,
        Status::IndexHasGreaterOffset,
        Status::RegisterMismatch,
        Status::Suspended,
        Status::FragmentStoreUnhealthy,
    ];

    /// The wire's number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The wire's name.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::JournalNotFound => "JOURNAL_NOT_FOUND",
            Status::NoJournalPrimaryBroker => "NO_JOURNAL_PRIMARY_BROKER",
            Status::NotJournalPrimaryBroker => "NOT_JOURNAL_PRIMARY_BROKER",
            Status::InsufficientJournalBrokers => "INSUFFICIENT_JOURNAL_BROKERS",
            Status::NotJournalBroker => "NOT_JOURNAL_BROKER",
            Status::OffsetNotYetAvailable => "OFFSET_NOT_YET_AVAILABLE",
            Status::WrongRoute => "WRONG_ROUTE",
            Status::ProposalMismatch => "PROPOSAL_MISMATCH",
            Status::EtcdTransactionFailed => "ETCD_TRANSACTION_FAILED",
            Status::NotAllowed => "NOT_ALLOWED",
            Status::WrongAppendOffset => "WRONG_APPEND_OFFSET",
            Status::IndexHasGreaterOffset => "INDEX_HAS_GREATER_OFFSET",
            Status::RegisterMismatch => "REGISTER_MISMATCH",
            Status::Suspended => "SUSPENDED",
            Status::FragmentStoreUnhealthy => "FRAGMENT_STORE_UNHEALTHY",
        }
    }

    /// What a caller that got this outcome can do. `Ok` asks for nothing and answers `Fix`, so that
    /// retry code which asks by mistake ends rather than loops.
    pub const fn remedy(self) -> Remedy {
        match self {
            Status::NotJournalPrimaryBroker | Status::NotJournalBroker | Status::WrongRoute => {
                Remedy::Reroute
            }
            Status::NoJournalPrimaryBroker
            | Status::InsufficientJournalBrokers
            | Status::OffsetNotYetAvailable
            | Status::ProposalMismatch
            | Status::Suspended
            | Status::FragmentStoreUnhealthy => Remedy::Later,
            Status::Ok
            | Status::JournalNotFound
            | Status::EtcdTransactionFailed
            | Status::NotAllowed
            | Status::WrongAppendOffset
            | Status::IndexHasGreaterOffset
            | Status::RegisterMismatch => Remedy::Fix,
        }
    }
}

impl TryFrom<i32> for Status {
    type Error = Invalid;

    fn try_from(number: i32) -> Result<Self, Invalid> {
        Status::ALL
            .into_iter()
            .find(|status| status.number() == number)
            .ok_or_else(|| Invalid::new(format!("invalid Status ({number})")))
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_wire() {
        use crate::wire::gazette::Status as Wire;
        for status in Status::ALL {
            let wire = Wire::try_from(status.number()).expect("known to the wire");
            assert_eq!(wire.as_str_name(), status.name());
            assert_eq!(Status::try_from(status.number()), Ok(status));
        }
        assert_eq!(Status::try_from(16).unwrap_err().to_string(), "invalid Status (16)");
        assert!(Wire::try_from(16).is_err());
    }
}
