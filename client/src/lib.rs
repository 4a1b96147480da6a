//! Speaking to journals: the trait that files are made on, and a broker over gRPC behind it.

mod error;
mod journals;

pub use error::Error;
pub use journals::{
    Append, Appended, Durability, Journals, Loan, Read, Space, Stat, WRITE_TIMEOUT_MAX, Wait, Writer,
};
