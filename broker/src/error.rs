//! Why a broker did not do what was asked, and what the caller can do about it.

use crate::auth::Unauthorized;
use index::store::StoreError;
use protocol::{Invalid, Journal, LabelSet, Offset, Remedy, Span, Status};

/// A request that was not served. Those that Gazette has a status for answer it with
/// [`Error::status`]; the others are errors of the call.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal is not served here, or not in this way: resolution's answer.
    #[error("{journal}: {status}")]
    Unresolved { journal: Journal, status: Status },
    /// A peer of another cluster, or one that meant another process.
    #[error("the request was passed on to the wrong broker: {0}")]
    Misrouted(String),
    #[error("journal {0} was deleted")]
    Deleted(Journal),
    #[error("{journal}: {detail}")]
    NotAllowed { journal: Journal, detail: &'static str },
    #[error("{journal} ends at {head}, not at {expected}")]
    WrongOffset { journal: Journal, expected: Offset, head: Offset },
    #[error("{journal}: its registers do not match")]
    RegisterMismatch { journal: Journal, registers: LabelSet },
    /// Gazette's text.
    #[error("register modification requires non-empty Append")]
    RegistersWithoutContent,
    #[error("{journal}: sequence {sequence} is below this writer's last, {last}")]
    StaleSequence { journal: Journal, sequence: u64, last: u64 },
    #[error(
        "{journal}: its store has content that this broker did not write: {detail}; delete one of \
         the two from the store"
    )]
    SecondWriter { journal: Journal, detail: String },
    /// The store goes on past the local head, and the request did not name that offset.
    #[error(
        "{journal}: its store ends at {stored}, beyond the local head {head}: another broker wrote \
         to it; stop that one, then reset the head (courant journals reset-head)"
    )]
    StoreIsAhead { journal: Journal, stored: Offset, head: Offset },
    #[error("{journal} is suspended")]
    Suspended { journal: Journal },
    #[error("an append of {len} bytes is over the limit of {max}")]
    TooLarge { len: u64, max: u64 },
    #[error("too many bytes of unfinished appends ({what}: {max}); finish some first")]
    StagingFull { what: &'static str, max: u64 },
    #[error("the append's content stopped coming for {seconds} s")]
    Idle { seconds: u64 },
    #[error("the append's content comes slower than the least rate of {rate} bytes a second")]
    TooSlow { rate: u64 },
    /// The append said how long it may wait for the journal's rate.
    #[error(
        "{journal}: it takes {rate} bytes a second, so that the append would wait for too long \
         (max_append_rate of its spec and --max-append-rate of the broker allow more)"
    )]
    OverRate { journal: Journal, rate: u64 },
    #[error(
        "{journal}: it may have {max} bytes, and this append would make it longer \
         (its label courant/max-bytes allows more; courant/retain-bytes and retention free some)"
    )]
    OverSize { journal: Journal, max: u64 },
    #[error("{journal}: bytes {span} were trimmed")]
    Trimmed { journal: Journal, span: Span },
    #[error("{journal}: bytes {span} were lost by a power cut")]
    Lost { journal: Journal, span: Span },
    #[error("{journal}: bytes {span} are damaged")]
    Damaged { journal: Journal, span: Span },
    #[error("{journal}: nobody has bytes {span}; read on from their end")]
    Hole { journal: Journal, span: Span },
    /// The stores of a journal are not listed, so its end or its bytes are unknown. The remedy is
    /// that of the store that could not be listed.
    #[error("{journal}: its stores are not listed yet ({detail})")]
    Unlisted { journal: Journal, detail: String, remedy: Remedy },
    #[error("{journal}: {len} bytes are not in its store yet ({detail})")]
    Unpersisted { journal: Journal, len: u64, detail: String },
    #[error("{journal} changed meanwhile (revision {revision})")]
    Conflict { journal: Journal, revision: i64 },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Local(#[from] index::Error),
    #[error(transparent)]
    KeySpace(#[from] cluster::Error),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The request's token does not allow it.
    #[error(transparent)]
    Unauthorized(#[from] Unauthorized),
    #[error("the broker has {max} requests in flight, its limit; ask again later")]
    Busy { max: usize },
    /// A backup of the data directory, and why the broker does not wait for it any longer.
    #[error("the backup is given up: {0}; begin it again")]
    HoldEnded(&'static str),
    #[error("the broker is closing")]
    Closing,
}

impl Error {
    /// Whether the cause is a full disk, or a full local budget.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Local(error) => error.is_full(),
            Error::KeySpace(error) => error.is_full(),
            _ => false,
        }
    }

    /// Whether it tells of a journal's head or of its registers.
    pub(crate) fn tells_of_journal(&self) -> bool {
        matches!(self, Error::WrongOffset { .. } | Error::RegisterMismatch { .. })
    }

    /// The status by which Gazette says the same; `None` where it has an error of the call.
    pub fn status(&self) -> Option<Status> {
        match self {
            Error::Unresolved { status, .. } => Some(*status),
            Error::Deleted(_) => Some(Status::JournalNotFound),
            Error::NotAllowed { .. } => Some(Status::NotAllowed),
            Error::WrongOffset { .. } => Some(Status::WrongAppendOffset),
            Error::RegisterMismatch { .. } => Some(Status::RegisterMismatch),
            Error::SecondWriter { .. } | Error::StoreIsAhead { .. } => {
                Some(Status::IndexHasGreaterOffset)
            }
            Error::Suspended { .. } => Some(Status::Suspended),
            Error::Conflict { .. } => Some(Status::EtcdTransactionFailed),
            Error::Misrouted(_)
            | Error::RegistersWithoutContent
            | Error::StaleSequence { .. }
            | Error::TooLarge { .. }
            | Error::StagingFull { .. }
            | Error::Idle { .. }
            | Error::TooSlow { .. }
            | Error::OverRate { .. }
            | Error::OverSize { .. }
            | Error::Trimmed { .. }
            | Error::Lost { .. }
            | Error::Damaged { .. }
            | Error::Hole { .. }
            | Error::Unlisted { .. }
            | Error::Unpersisted { .. }
            | Error::Store(_)
            | Error::Local(_)
            | Error::KeySpace(_)
            | Error::Invalid(_)
            | Error::Unauthorized(_)
            | Error::Busy { .. }
            | Error::HoldEnded(_)
            | Error::Closing => None,
        }
    }

    /// What can be done. Retry code looks at nothing else.
    pub fn remedy(&self) -> Remedy {
        match self {
            Error::Unresolved { status, .. } => status.remedy(),
            Error::Misrouted(_) => Remedy::Reroute,
            Error::Suspended { .. }
            | Error::StagingFull { .. }
            | Error::Unpersisted { .. }
            | Error::Busy { .. }
            | Error::HoldEnded(_)
            | Error::Closing => Remedy::Later,
            Error::Unlisted { remedy, .. } => *remedy,
            Error::Trimmed { .. }
            | Error::Lost { .. }
            | Error::Damaged { .. }
            | Error::Hole { .. } => Remedy::Lost,
            Error::Store(error) => error.remedy(),
            Error::Local(error) => error.remedy(),
            Error::KeySpace(error) => error.remedy(),
            Error::Deleted(_)
            | Error::NotAllowed { .. }
            | Error::WrongOffset { .. }
            | Error::RegisterMismatch { .. }
            | Error::RegistersWithoutContent
            | Error::StaleSequence { .. }
            | Error::SecondWriter { .. }
            | Error::StoreIsAhead { .. }
            | Error::TooLarge { .. }
            | Error::Idle { .. }
            | Error::TooSlow { .. }
            | Error::OverRate { .. }
            | Error::OverSize { .. }
            | Error::Conflict { .. }
            | Error::Invalid(_)
            | Error::Unauthorized(_) => Remedy::Fix,
        }
    }

    /// The same as a caller of [`client::Journals`] sees it. `journal` is the one that was asked
    /// for, which faults of the disk do not know.
    pub fn for_client(self, journal: &Journal) -> client::Error {
        use client::Error as Seen;
        match self {
            Error::Unresolved { journal, status } => match status {
                Status::JournalNotFound => Seen::NotFound(journal),
                other => Seen::Later(format!("{journal}: {other}")),
            },
            Error::Misrouted(detail) => Seen::Protocol(detail),
            Error::Deleted(journal) => Seen::Deleted(journal),
            Error::NotAllowed { journal, detail } => {
                Seen::NotAllowed { journal, detail: detail.to_owned() }
            }
            Error::WrongOffset { journal, head, .. } => Seen::WrongOffset { journal, head },
            Error::RegisterMismatch { journal, registers } => {
                Seen::RegisterMismatch { journal, registers }
            }
            Error::RegistersWithoutContent => {
                Seen::Invalid(Invalid::new(Error::RegistersWithoutContent.to_string()))
            }
            Error::StaleSequence { journal, sequence, .. } => {
                Seen::StaleSequence(journal, sequence)
            }
            Error::SecondWriter { journal, detail } => {
                let detail =
                    format!("its store has content that this broker did not write: {detail}");
                Seen::SecondWriter(journal, detail)
            }
            Error::StoreIsAhead { journal, stored, .. } => {
                let detail = format!("its store ends at {stored}: another broker wrote to it");
                Seen::SecondWriter(journal, detail)
            }
            Error::TooLarge { len, max } => Seen::TooLarge(journal.clone(), len, max),
            Error::OverRate { journal, rate } => Seen::OverRate { journal, rate },
            Error::OverSize { journal, max } => Seen::OverSize { journal, max },
            Error::Trimmed { journal, span } => Seen::Trimmed { journal, span },
            Error::Lost { journal, span } => Seen::Lost { journal, span },
            Error::Damaged { journal, span } => {
                Seen::Damaged { journal, span, detail: "wrong checksum".to_owned() }
            }
            Error::Hole { journal, span } => {
                Seen::Damaged { journal, span, detail: "neither local nor stored".to_owned() }
            }
            Error::Conflict { journal, revision } => Seen::Conflict(journal, revision),
            Error::Local(error) => local_for_client(error, journal),
            Error::KeySpace(error) => key_space_for_client(error, journal),
            Error::Store(error) => store_for_client(error, journal),
            Error::Invalid(invalid) => Seen::Invalid(invalid),
            Error::Unauthorized(refused) => Seen::Unauthorized(refused.to_string()),
            Error::Idle { .. } | Error::TooSlow { .. } => Seen::Protocol(self.to_string()),
            Error::Unlisted { remedy, .. } => match remedy {
                Remedy::Later | Remedy::Reroute => Seen::Later(self.to_string()),
                Remedy::Fix | Remedy::Lost => Seen::Io(self.to_string()),
            },
            Error::Suspended { .. }
            | Error::StagingFull { .. }
            | Error::Unpersisted { .. }
            | Error::Busy { .. }
            | Error::HoldEnded(_)
            | Error::Closing => Seen::Later(self.to_string()),
        }
    }
}

fn local_for_client(error: index::Error, journal: &Journal) -> client::Error {
    use client::Error as Seen;
    match error {
        error if error.is_full() => Seen::NoSpace(journal.clone(), error.to_string()),
        index::Error::Deleted(_) => Seen::Deleted(journal.clone()),
        index::Error::Closing => Seen::Later(error.to_string()),
        index::Error::TooLarge { len, max } => Seen::TooLarge(journal.clone(), len, max),
        index::Error::DamagedSpan { span, .. } => {
            let detail = error.to_string();
            Seen::Damaged { journal: journal.clone(), span, detail }
        }
        other => Seen::Io(other.to_string()),
    }
}

fn key_space_for_client(error: cluster::Error, journal: &Journal) -> client::Error {
    use client::Error as Seen;
    match error {
        cluster::Error::Refused(refused) => refusal(&refused),
        cluster::Error::Invalid(invalid) => Seen::Invalid(invalid),
        full if full.is_full() => Seen::NoSpace(journal.clone(), full.to_string()),
        other => match other.remedy() {
            Remedy::Later | Remedy::Reroute => Seen::Later(other.to_string()),
            Remedy::Fix | Remedy::Lost => Seen::Io(other.to_string()),
        },
    }
}

fn store_for_client(error: StoreError, journal: &Journal) -> client::Error {
    use client::Error as Seen;
    match (&error, error.remedy()) {
        (StoreError::Damaged { offset, .. }, _) => {
            let span = Span::between(*offset, *offset);
            Seen::Damaged { journal: journal.clone(), span, detail: error.to_string() }
        }
        (_, Remedy::Later | Remedy::Reroute) => Seen::Later(error.to_string()),
        (_, Remedy::Fix | Remedy::Lost) => Seen::Io(error.to_string()),
    }
}

/// A name that can't be created, as a caller of a mount sees it.
pub(crate) fn refusal(refused: &cluster::Refused) -> client::Error {
    let (cluster::Refused::Pattern { journal, .. }
    | cluster::Refused::Reserved { journal, .. }
    | cluster::Refused::Nested { journal, .. }) = refused;
    client::Error::Refused(journal.to_string(), refused.to_string())
}
