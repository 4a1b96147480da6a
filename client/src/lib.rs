//! Speaking to journals: the trait that files are made on, and a broker over gRPC behind it.
//!
//! [`Journals`] is what a mount needs of a broker. [`Remote`] is a broker at a URL, and
//! [`Connect`] how it is reached, with which credentials ([`token`]). [`Reader`] and
//! [`Appender`] are for programs, and [`Anchored`] where a broker knows no writers: they go on
//! where a connection broke, and repeat nothing. What is asked again is decided by an error's
//! remedy alone, in [`retry`].
//!
//! [`Bucket`] is the journals of a store with no broker, told from its listing ([`naming`]).
//! [`Cached`] keeps what was read of either on a local disk.
//! [`Fragments`] are the ways to what stores hold, past the broker; [`audit`] says whether it is
//! whole. [`specs`] are specs as text.

mod anchored;
mod appender;
mod bucket;
pub mod cache;
mod connect;
mod dial;
mod error;
mod fragments;
mod journals;
pub mod limits;
mod line;
mod names;
mod reader;
mod remote;
pub mod retry;
mod session;
mod shelf;
pub mod specs;
mod staged;
pub mod token;

pub use anchored::Anchored;
pub use appender::Appender;
pub use bucket::Bucket;
pub use bucket::naming::{self, Postfix};
pub use cache::Cached;
pub use connect::Connect;
pub use dial::{Dial, Stream};
pub use error::Error;
pub use fragments::{Fragments, Way, audit};
/// The names of stored fragments (gazette-spec 3.1).
pub use index::name;
/// Local files, for who stages content on them, and where work on them runs.
pub use index::{blocking, crc32c_append, disk};
pub use journals::{
    Append, Appended, Durability, Journals, Loan, Read, Space, Stat, WRITE_TIMEOUT_MAX, Wait,
    Writer,
};
pub use line::Away;
pub use reader::{Piece, Reader};
pub use remote::{
    Deleted, HeldMoment, Holding, NO_JOURNAL, Remote, ResetHead, Snapshots, Template,
};
pub use session::Receipt;
pub use staged::Staged;
