//! The words of Courant: journals, offsets, spans, fragments, labels, specs, routes and outcomes,
//! and the wire they travel on.
//!
//! Words that come from the wire are valid; the prost messages of [`wire`] are what comes in and
//! goes out, and each converts to and from its word once, at the door:
//!
//! * `TryFrom<wire::gazette::X> for X` checks every rule of gazette-spec 1.4, and names the field
//!   and the rule in an [`Invalid`], worded as Gazette words it;
//! * `From<X> for wire::gazette::X` writes the bytes that Gazette writes.
//!
//! Names, offsets, spans and label sets can't be built otherwise than valid. Records with public
//! fields (specs, routes, headers) can be, and have `validate` for those who build them.
//!
//! [`request`] and [`response`] hold the messages of the service `Journal`.

pub mod alphabet;
mod codec;
pub mod created;
pub mod duration;
mod fragment;
mod header;
mod invalid;
mod journal;
pub mod label;
mod life;
mod member;
mod offset;
mod pattern;
mod postfix;
pub mod request;
pub mod response;
mod route;
pub mod selector;
pub mod spec;
mod status;
mod store;
mod sum;
mod url;
pub mod wire;

pub use codec::Codec;
pub use fragment::{Fragment, POSTFIX_LEN_MAX};
pub use header::{Etcd, Header};
pub use invalid::Invalid;
pub use journal::{JOURNAL_LEN, Journal, MetaJournal};
pub use label::{Label, LabelSet};
pub use life::{Life, inode_range};
pub use member::{BrokerSpec, JOURNAL_LIMIT_MAX};
pub use offset::{Offset, Span};
pub use pattern::Pattern;
pub use postfix::PostfixTemplate;
pub use route::{ProcessId, Route};
pub use selector::Selector;
pub use spec::{Flags, FragmentSpec, JournalSpec, Suspend, SuspendLevel};
pub use status::{Remedy, Status};
pub use store::{Scheme, StoreUrl};
pub use sum::Sum;
pub use url::check_endpoint;
