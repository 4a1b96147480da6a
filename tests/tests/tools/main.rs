//! Shippers, editors, archivers and old programs on real mounts, and the table of docs/SEMANTICS.md
//! that says of each what happens.
//!
//! A [`case::Case`] is a row of that table and the line of bash that shows it. The lines of a group
//! run one after the other on a broker of their own, whose journals are looked at through a second
//! mount as well; `REMOTE=1` runs them on that one. The table is made of the cases:
//! `UPDATE_TABLE=1 cargo test -p tests --test tools table` writes it.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod appending;
mod case;
mod copying;
mod editing;
mod languages;
mod logging;
mod packing;
mod python;
mod reading;
mod table;
