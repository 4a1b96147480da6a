//! Requests as a broker serves them: checked, with each special number of the wire spelled out.
//!
//! A request that breaks a rule of gazette-spec 1.4 becomes an [`Invalid`](crate::Invalid), which a
//! broker answers before it resolves the journal.

mod append;
mod apply;
mod fragments;
mod health;
mod list;
mod read;
mod replicate;

pub use append::{AppendPart, AppendRequest, AppendSuspend};
pub use apply::{ApplyRequest, Change, Expect};
pub use fragments::{FragmentsRequest, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX};
pub use health::FragmentStoreHealthRequest;
pub use list::ListRequest;
pub use read::{ReadFrom, ReadRequest};
pub use replicate::{Proposal, ReplicateRequest};
