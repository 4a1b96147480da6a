//! What can go wrong between a store and us.

use protocol::{Offset, Remedy, Span};
use std::io;

/// A fault of a fragment store, or of what was to go there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("invalid store URL {url}: {reason}")]
    Url { url: String, reason: String },
    #[error("store {url}: scheme {scheme} is not built in yet")]
    NotBuiltIn { url: String, scheme: &'static str },
    /// The store's `find` and `replace`, or its prefix, make a path that no object can have.
    #[error("store {store}: {key} can be no object's key: {source}")]
    Key { store: String, key: String, source: object_store::path::Error },
    #[error("store {store}: {doing} {key}: {source}")]
    Failed { store: String, doing: Doing, key: String, source: Box<object_store::Error> },
    /// A fragment that was listed or put is not there.
    #[error("store {store} has no {name}")]
    Missing { store: String, name: String },
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
}

impl std::fmt::Display for Doing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Doing::Create => "creating",
            Doing::List => "listing",
            Doing::Read => "reading",
            Doing::Put => "putting",
            Doing::Delete => "deleting",
        })
    }
}

impl StoreError {
    /// What the caller can do. A missing fragment is `Later`: the next refresh forgets it, and what
    /// took its place is read then.
    pub fn remedy(&self) -> Remedy {
        match self {
            StoreError::Url { .. } | StoreError::NotBuiltIn { .. } | StoreError::Key { .. } => {
                Remedy::Fix
            }
            StoreError::Failed { source, .. } => remedy_of(source),
            StoreError::Missing { .. } | StoreError::Source { .. } => Remedy::Later,
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
