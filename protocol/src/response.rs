//! Answers of a broker, checked by the rules that Gazette's clients check (gazette-spec 1.4).
//!
//! A broker makes them as words, so that what it sends holds together; a client reads them so.

mod append;
mod apply;
mod fragments;
mod health;
mod list;
mod read;
mod replicate;

pub use append::AppendResponse;
pub use apply::ApplyResponse;
pub use fragments::{FragmentsResponse, ListedFragment};
pub use health::FragmentStoreHealthResponse;
pub use list::{ListResponse, ListedJournal};
pub use read::{ReadMetadata, ReadResponse};
pub use replicate::ReplicateResponse;
