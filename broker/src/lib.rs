//! The broker: it resolves, appends, reads, lists and applies, persists and evicts.
//!
//! A [`Broker`] joins the local half of each journal (crate `index`) with its stored half, under
//! the specs of a key space (crate `cluster`). It opens no port itself: the doors call its methods,
//! and [`client::Journals`] is one of them, for files made in the same process.
//!
//! Rooms: [`broker`] (open, close, look up), [`resolve`] (what a request means here), [`append`]
//! (an append walks through types), [`read`] (local and stored bytes as one stream), [`specs`]
//! (apply, create, delete), [`served`] and `stored` (one journal), [`stores`], `persist`, `evict`,
//! `retain`, [`prune`], `driver` (what runs by itself), `journals` (the trait for files). The
//! doors are [`server`] (the port), [`auth`] (who may enter), `gazette`, `courant` and `http`.

pub mod append;
pub mod auth;
pub mod backing;
pub mod broker;
mod courant;
mod driver;
mod error;
mod evict;
mod fragments;
mod gazette;
mod http;
mod journals;
mod json;
pub mod limits;
mod listings;
pub mod memory;
pub mod metrics;
mod persist;
pub mod prune;
mod quota;
pub mod read;
mod recovery;
pub mod resolve;
mod retain;
mod revoke;
pub mod served;
pub mod server;
pub mod specs;
mod stored;
pub mod stores;
mod trouble;

pub use append::{Committed, Connection, Staged, Stager, Terms};
pub use broker::{Broker, Config};
pub use cluster::Error as KeySpaceError;
pub use error::Error;
pub use fragments::Page;
pub use memory::Memory;
pub use read::{Reader, Step};
pub use resolve::{Ask, Resolution};
pub use served::Served;
