//! Journals as a tree of append-only files, with no FUSE in it.
//!
//! A [`Filesystem`] answers what a kernel asks: look-ups, attributes, reads, writes. Each operation
//! is a method that returns a value, or a [`Wait`] that is polled once by the asking thread and
//! only spawned when it has to wait. All that it knows of journals is `client::Journals`; all that
//! it knows of a kernel is [`Kernel`], which renews cached pages.
//!
//! The rooms: [`names`](mod@names) turns file names to journal names and back; `nodes` holds what
//! the kernel looked up; `shown` is a journal as this mount shows it; `lookup`, `open`, `read`,
//! `write`, `create`, `remove`, `directories`, `attributes` and `growth` are the operations;
//! `foresight` asks for many at once; `placeholders` are files without a byte. What is not
//! committed at once is in `staging` (line mode and the whole view: written by `drafting`,
//! committed by `committing` and `closing`) or in a `queue` (`--async`), and `pending` is what goes
//! on after an answer; `recent` keeps the last lines of what was told too late for an answer.
//! `about` has the files that tell of journals: stored fragments and specs. [`double`] is a
//! `Journals` in memory for tests.

mod about;
mod attr;
mod attributes;
mod closing;
mod committing;
mod create;
mod directories;
pub mod double;
mod drafting;
mod error;
mod filesystem;
mod foresight;
mod growth;
mod habit;
mod handles;
mod handover;
mod kernel;
pub mod limits;
mod lookup;
pub mod model;
pub mod names;
mod nodes;
mod open;
mod opened;
mod options;
mod patience;
mod pending;
mod placeholders;
mod publish;
mod queue;
mod read;
mod recent;
mod remove;
mod revoke;
mod shown;
mod staging;
mod status;
mod watched;
mod write;
mod xattr;

pub use attr::{Attr, Kind};
pub use attributes::Seek;
pub use error::Error;
pub use filesystem::{Caller, Filesystem, Usage, Wait};
pub use growth::{Followed, Polled};
pub use handles::{DirEntry, HandleId, Opened, Way};
pub use kernel::{Kernel, Renewal};
pub use lookup::Entry;
pub use nodes::NodeId;
pub use options::{Fsync, Options, Trimmed};
pub use read::ReadAt;
pub use revoke::Revoked;
pub use staging::Staging;
pub use watched::{Watched, WatchedDirectory, WatchedFile};
pub use write::WriteAt;
