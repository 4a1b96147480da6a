//! Real mounts, looked at through two of them by programs that know nothing of journals. The tests
//! are named after the numbered cases from public bug reports.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod appending;
mod appendonly;
mod away;
mod cached;
mod control;
mod dying;
mod files;
mod held;
mod living;
mod pins;
mod quota;
mod random;
mod reading;
mod remote;
mod stress;
mod views;
