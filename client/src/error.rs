//! Why a request of journals failed, and what its caller can do.

use protocol::{Invalid, Journal, LabelSet, Offset, Remedy, Span};

/// A request that did not succeed. Each variant is one cause, so that `fs` maps it to one errno.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("journal {0} does not exist")]
    NotFound(Journal),
    #[error("journal {0} was deleted")]
    Deleted(Journal),
    #[error("journal {journal} ends at {head}, not where the append expects")]
    WrongOffset { journal: Journal, head: Offset },
    #[error("journal {journal}: its registers do not match")]
    RegisterMismatch { journal: Journal, registers: LabelSet },
    #[error("journal {journal}: {detail}")]
    NotAllowed { journal: Journal, detail: String },
    #[error("no space for {0}: {1}")]
    NoSpace(Journal, String),
    /// Its bytes, 0 of one that was sent as it came, and the limit.
    #[error("{0}: an append{of} is over the limit of {2} bytes", of = of_bytes(*.1))]
    TooLarge(Journal, u64, u64),
    /// The append was not made: it would wait for longer than its caller does.
    #[error(
        "{journal}: it takes {rate} bytes a second, so that this append would wait for too long \
         (a smaller one does not; max_append_rate of its spec and --max-append-rate of the broker \
         allow more)"
    )]
    OverRate { journal: Journal, rate: u64 },
    #[error(
        "{journal}: it may have {max} bytes, and this append would make it longer \
         (its label courant/max-bytes allows more; courant/retain-bytes and retention free some)"
    )]
    OverSize { journal: Journal, max: u64 },
    #[error("the name {0} is refused: {1}")]
    Refused(String, String),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("{journal}: bytes {span} were trimmed")]
    Trimmed { journal: Journal, span: Span },
    #[error("{journal}: bytes {span} were lost by a power cut")]
    Lost { journal: Journal, span: Span },
    #[error("{journal}: bytes {span} are damaged ({detail})")]
    Damaged { journal: Journal, span: Span, detail: String },
    /// Another broker wrote to the journal's store; the detail says what and what to do about it.
    #[error("{0}: {1}")]
    SecondWriter(Journal, String),
    #[error("{0}: sequence {1} of this writer is below its last")]
    StaleSequence(Journal, u64),
    #[error("{0}: the journal changed meanwhile (revision {1})")]
    Conflict(Journal, i64),
    #[error("not yet: {0}")]
    Later(String),
    /// Nothing was done, or what was done bears being asked twice.
    #[error("the broker can't be reached: {0}")]
    Unreachable(String),
    /// Asking again could apply it twice; a writer with a sequence never gets this for one attempt.
    #[error("no answer came; the append may or may not have been applied")]
    Unknown,
    #[error("{0} can't promise disk durability")]
    NoDisk(String),
    /// The broker wants a token, or one that says more.
    #[error("not authorized: {0} (give a token that allows it, or keys to sign one with)")]
    Unauthorized(String),
    /// A text of specs, by its origin, and what is wrong with it.
    #[error("{0}: {1}")]
    Specs(String, String),
    /// The broker has no request for it.
    #[error("{0}")]
    Unsupported(String),
    #[error("i/o failed: {0}")]
    Io(String),
    #[error("the broker answered against the protocol: {0}")]
    Protocol(String),
}

fn of_bytes(len: u64) -> String {
    match len {
        0 => String::new(),
        len => format!(" of {len} bytes"),
    }
}

impl Error {
    /// What can be done. Retry code looks at nothing else.
    pub fn remedy(&self) -> Remedy {
        match self {
            Error::Later(_) | Error::Unreachable(_) => Remedy::Later,
            Error::Trimmed { .. } | Error::Lost { .. } | Error::Damaged { .. } => Remedy::Lost,
            Error::NotFound(_)
            | Error::Deleted(_)
            | Error::WrongOffset { .. }
            | Error::RegisterMismatch { .. }
            | Error::NotAllowed { .. }
            | Error::NoSpace(..)
            | Error::TooLarge(..)
            | Error::OverRate { .. }
            | Error::OverSize { .. }
            | Error::Refused(..)
            | Error::Invalid(_)
            | Error::SecondWriter(..)
            | Error::StaleSequence(..)
            | Error::Conflict(..)
            | Error::NoDisk(_)
            | Error::Unauthorized(_)
            | Error::Unknown
            | Error::Specs(..)
            | Error::Unsupported(_)
            | Error::Io(_)
            | Error::Protocol(_) => Remedy::Fix,
        }
    }
}
