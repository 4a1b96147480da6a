//! Who else has a file open: the one place of this crate that calls the system by hand.
//!
//! A write lease is granted only where no other open file of the inode exists (fcntl(2),
//! `F_SETLEASE`), which also sees the backing file of a FUSE passthrough handle, and a mapping,
//! whose daemon is dead. The lease is taken for a moment: an open that conflicts with it waits, and
//! its holder gets SIGIO.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Once;

static IGNORE_SIGIO: Once = Once::new();

/// Whether another open file of the inode exists. `file` is the only one of this process.
pub fn is_held_elsewhere(file: BorrowedFd<'_>) -> io::Result<bool> {
    IGNORE_SIGIO.call_once(|| {
        // SAFETY: setting a signal to be ignored touches no memory of ours; its default would end
        // the process when somebody opens the file while the lease is held.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    });
    let set = |kind: libc::c_int| {
        // SAFETY: F_SETLEASE takes an integer and no pointer; the descriptor is borrowed for the
        // call.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if set(libc::F_WRLCK) == 0 {
        set(libc::F_UNLCK);
        return Ok(false);
    }
    match io::Error::last_os_error() {
        busy if busy.kind() == io::ErrorKind::WouldBlock => Ok(true),
        // File systems without leases (and without passthrough on them) can't tell.
        other if matches!(other.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(false),
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn sees_another_open_file() {
        let file = tempfile::NamedTempFile::new_in(".").expect("a file");
        assert!(!is_held_elsewhere(file.as_file().as_fd()).expect("asks"));
        let other = std::fs::File::open(file.path()).expect("opens");
        assert!(is_held_elsewhere(file.as_file().as_fd()).expect("asks"));
        drop(other);
        assert!(!is_held_elsewhere(file.as_file().as_fd()).expect("asks"));
    }
}
