//! The attributes of files and directories.

use crate::Options;
use protocol::inode_range;
use std::time::SystemTime;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
}

/// What `stat(2)` tells. `nlink` is always 1, atime and ctime are the mtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    /// `st_ino`: for a journal that of its life, whatever node it is asked through.
    pub inode: u64,
    pub size: u64,
    /// The time of the last append.
    pub modified: SystemTime,
    pub kind: Kind,
    /// Permission bits only.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
}

impl Attr {
    pub(crate) fn directory(options: &Options, inode: u64) -> Attr {
        Attr {
            inode,
            size: 0,
            modified: options.started,
            kind: Kind::Directory,
            mode: permissions(options, 0o777),
            uid: options.uid,
            gid: options.gid,
        }
    }

    pub(crate) fn file(options: &Options, inode: u64, may_write: bool) -> Attr {
        let mode = if may_write && !options.read_only { 0o666 } else { 0o444 };
        Attr {
            kind: Kind::File,
            mode: permissions(options, mode),
            ..Self::directory(options, inode)
        }
    }
}

fn permissions(options: &Options, all: u32) -> u16 {
    u16::try_from(all & !options.umask).expect("permission bits are 9 of 16")
}

/// The `st_ino` of a directory: a hash of what journal names begin with below it, so that it is the
/// same on every mount and after every restart. FNV-1a, since it may never change.
pub(crate) fn directory_inode(prefix: &str) -> u64 {
    let hash = prefix.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    inode_range::DIRECTORIES | (hash & (inode_range::DIRECTORIES - 1))
}
