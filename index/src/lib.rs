//! The bytes of one data directory: local mirrors under one commit log, and fragments in stores.
//!
//! What was acknowledged is there, at its durability, after any stop: [`datadir`] says how, and
//! [`recover`] reads it back. This crate knows journals by their life and name, and nothing of
//! brokers, routes or requests.
//!
//! Rooms: the local side is [`disk`] (the seam), [`record`] and [`log`], [`ledger`] (the fold of a
//! journal's records), [`mirror`], [`staging`], [`replica`] (one journal), [`checkpoint`],
//! [`recover`], [`datadir`], [`backup`] and [`repair`]; the stored side is [`name`], [`codec`],
//! [`cover`], [`store`], [`file_store`] and [`cloud`].

pub mod backup;
pub mod blocking;
pub mod checkpoint;
pub mod clock;
pub mod cloud;
pub mod codec;
pub mod cover;
pub mod datadir;
pub mod disk;
mod error;
pub mod file_store;
mod ground;
mod hold;
pub mod inspect;
pub mod ledger;
pub mod limits;
pub mod log;
mod lost;
pub mod mirror;
pub mod name;
mod pins;
pub mod record;
pub mod recover;
mod registers;
pub mod repair;
pub mod replica;
pub mod spans;
pub mod staging;
pub mod store;
mod unsynced;

pub use clock::{Clock, SystemClock};
pub use crc32c::crc32c_append;
pub use datadir::{DataDir, Options};
pub use error::Error;
pub use ground::{FORMAT_FILE, check_format, is_part};
pub use hold::{Hold, Moment};
pub use recover::Recovered;
pub use replica::{Commit, Content, Entry, Head, Located, Pin, Policy, Replica, Turn};
