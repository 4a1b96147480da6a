//! What can go wrong between a store and us.

use protocol::{Offset, Remedy, Span};
use std::io;

/// A fault of a fragment store, or of what was to go there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("invalid store URL {url}: {reason}")]
    Url { url: String, reason: String },
    /// The store can't be opened with what is known: a region or credentials are missing.
    #[error("store {store}: {reason}")]
    Setup { store: String, reason: String },
    /// The store's `find` and `replace`, or its prefix, make a path that no object can have.
    #[error("store {store}: {key} can be no object's key: {source}")]
    Key { store: String, key: String, source: object_store::path::Error },
    /// The store did not do it, this time. `detail` is its answer, in one line.
    #[error("store {store}: {doing} {key}: {detail}")]
    Failed {
        store: String,
        doing: Doing,
        key: String,
        detail: String,
        source: Box<object_store::Error>,
    },
    /// The credentials are none, wrong, or not for this.
    #[error(
        "store {store}: {doing} {key} is refused ({detail}): check the credentials that the \
             broker has, and what they may do there"
    )]
    Refused { store: String, doing: Doing, key: String, detail: String },
    #[error("store {store}: its bucket is not there ({detail}): create it, or correct the URL")]
    NoBucket { store: String, detail: String },
    /// The directory of a file store, as people find it. It is never made by who stores there: a
    /// file system that is not mounted would be taken for an empty store.
    #[error(
        "store {store}: its directory {dir} is not there: mkdir -p {dir}, mount what has it, or \
         correct the URL"
    )]
    NoDirectory { store: String, dir: String },
    /// A URL could not be signed.
    #[error("store {store}: a URL can't be signed: {detail}")]
    Unsigned { store: String, detail: String },
    /// A health check found what it did not expect.
    #[error("store {store} is not healthy: {detail}")]
    Unhealthy { store: String, detail: String },
    /// A fragment that was listed or put is not there.
    #[error("store {store} has no {name}")]
    Missing { store: String, name: String },
    /// A fragment could not be fetched by the URL that a broker gave for it.
    #[error("fragment {name} can't be fetched by its URL: {detail}")]
    Unfetched { name: String, detail: String },
    /// A fragment's object does not hold what its name says; `offset` is where it was noticed.
    #[error("fragment {name} is damaged at offset {offset}: {reason}")]
    Damaged { name: String, offset: Offset, reason: String },
    /// The local bytes of a fragment can't be read.
    #[error("reading local bytes at offset {offset}: {source}")]
    Source { offset: Offset, source: io::Error },
    /// The local bytes are not those that the fragment's sum names. They are not put.
    #[error("local bytes of {span} have sum {found}, and not that of their fragment, {expected}")]
    Changed { span: Span, expected: protocol::Sum, found: protocol::Sum },
}

/// What was asked of a store when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Create,
    List,
    Read,
    Put,
    Delete,
    Sign,
}

impl std::fmt::Display for Doing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Doing::Create => "creating",
            Doing::List => "listing",
            Doing::Read => "reading",
            Doing::Put => "putting",
            Doing::Delete => "deleting",
            Doing::Sign => "signing for",
        })
    }
}

impl StoreError {
    /// What the caller can do. A missing fragment is `Later`: the next refresh forgets it, and what
    /// took its place is read then.
    pub fn remedy(&self) -> Remedy {
        match self {
            StoreError::Url { .. }
            | StoreError::Setup { .. }
            | StoreError::Key { .. }
            | StoreError::Refused { .. }
            | StoreError::NoBucket { .. }
            | StoreError::NoDirectory { .. } => Remedy::Fix,
            StoreError::Unsigned { .. } | StoreError::Unhealthy { .. } => Remedy::Later,
            StoreError::Failed { source, .. } => remedy_of(source),
            StoreError::Missing { .. }
            | StoreError::Unfetched { .. }
            | StoreError::Source { .. } => Remedy::Later,
            StoreError::Damaged { .. } | StoreError::Changed { .. } => Remedy::Lost,
        }
    }
}

/// The errors of `object_store` may grow in number: what is not known to need a change of the setup
/// is tried again.
fn remedy_of(error: &object_store::Error) -> Remedy {
    use object_store::Error;
    match error {
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::InvalidPath { .. }
        | Error::UnknownConfigurationKey { .. } => Remedy::Fix,
        _ => Remedy::Later,
    }
}
