//! Journals as a tree of append-only files, with no FUSE in it.
//!
//! A [`Filesystem`] answers what a kernel asks: look-ups, attributes, reads, writes. Each operation
//! is a method that returns a value, or a [`Wait`] that is polled once by the asking thread and
//! only spawned when it has to wait. All that it knows of journals is `client::Journals`; all that
//! it knows of a kernel is [`Kernel`], which drops cached pages.
//!
//! The rooms: [`names`](mod@names) turns file names to journal names and back; `nodes` holds what
//! the kernel looked up; `shown` is a journal as this mount shows it; `lookup`, `open`, `read`,
//! `write`, `create`, `remove`, `directories`, `attributes` and `growth` are the operations;
//! `placeholders` are files without a byte. [`double`] is a `Journals` in memory for tests.

mod attr;
mod attributes;
mod create;
mod directories;
pub mod double;
mod error;
mod filesystem;
mod growth;
mod handles;
mod handover;
mod kernel;
pub mod limits;
mod lookup;
pub mod names;
mod nodes;
mod open;
mod options;
mod patience;
mod placeholders;
mod read;
mod remove;
mod shown;
mod status;
mod write;
mod xattr;

pub use attr::{Attr, Kind};
pub use attributes::Seek;
pub use error::Error;
pub use filesystem::{Caller, Filesystem, Usage, Wait};
pub use growth::Followed;
pub use handles::{DirEntry, HandleId, Opened, Way};
pub use kernel::Kernel;
pub use lookup::Entry;
pub use nodes::NodeId;
pub use options::{Fsync, Options, Trimmed};
pub use read::ReadAt;
pub use write::WriteAt;
