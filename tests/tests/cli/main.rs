//! The command line, as operators use it: every command, in processes of its own, on a broker of
//! its own.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod appending;
mod configuring;
mod deleting;
mod operating;
mod reading;
mod serve;
mod specs;
mod stores;
mod tokens;
