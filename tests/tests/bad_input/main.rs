//! Bad input of every kind: a clear complaint of one line, the right exit code or errno, and
//! nothing lost.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod asking;
mod space;
mod starting;
