//! What /proc tells of the processes that call on the mount: whether one has a signal, and whether
//! it does nothing but follow journals.
//!
//! Parsing is pure; the readers are thin. No file of a caller is opened or stat'ed, only its /proc
//! entries are read: the file may be on our own mount, and we would wait for ourselves.

mod follower;
mod inotify;
mod signals;

pub use follower::{Followed, Follower};
pub use inotify::watched;
pub use signals::SignalWatch;

/// The lines of a /proc file of the form `Key:<white space>value`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod living;
