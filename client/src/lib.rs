//! Speaking to journals: the trait that files are made on, and a broker over gRPC behind it.
//!
//! [`Journals`] is what a mount needs of a broker. [`Remote`] is a broker at a URL. [`Reader`] and
//! [`Appender`] are for programs: they go on where a connection broke, and repeat nothing. What is
//! asked again is decided by an error's remedy alone, in [`retry`].

mod appender;
mod error;
mod journals;
pub mod limits;
mod names;
mod reader;
mod remote;
pub mod retry;

pub use appender::Appender;
pub use error::Error;
pub use journals::{
    Append, Appended, Durability, Journals, Loan, Read, Space, Stat, WRITE_TIMEOUT_MAX, Wait,
    Writer,
};
pub use reader::{Piece, Reader};
pub use remote::{Deleted, Remote};
