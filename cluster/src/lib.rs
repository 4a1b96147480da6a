//! Who serves what: the key space, with its revisions, and the templates new journals are made by.
//!
//! A [`KeySpace`] holds the specs of a data set. Each transaction that changes something has a
//! revision, one higher than the last, which every answer of a broker carries in its header; a
//! client that read at one revision never sees an older one. [`Embedded`] keeps it in one file, for
//! a broker that stands alone. The key space of several brokers is etcd's, behind the same trait.
//!
//! The crate knows nothing of bytes: what a journal holds is the business of `index`.
//!
//! * [`KeySpace`]: reading, waiting, watching, [`Change`]s in one transaction.
//! * [`Embedded`]: the filling over redb, which keeps its pages in a [`Backing`].
//! * [`Templates`]: the spec of a journal that is created by name alone, and names it refuses.
//! * [`life()`]: the identity of a journal between creation and deletion.

mod backing;
mod change;
mod embedded;
mod error;
mod key_space;
mod life;
mod name;
mod state;
mod template;

pub use backing::{Backing, Memory};
pub use change::{CHANGES_MAX, Change, Expect, Outcome};
pub use embedded::Embedded;
pub use error::Error;
pub use key_space::{Entry, Identity, KeySpace, Listing};
pub use life::life;
pub use name::{Refused, nests};
pub use template::{Defaults, Template, Templates};
