//! Words of `fs` in the words of fuser.

use fs::{Attr, Error, Kind};
use fuser::{Errno, FileAttr, FileType, INodeNo};
use std::time::Duration;

/// How long the kernel may believe a name or an attribute: not at all.
pub const TTL: Duration = Duration::ZERO;

/// `st_blksize`, which stdio takes as the size of its buffers: that of a local file, so that a
/// buffered writer's lines are seen as soon as there.
const BLOCK_SIZE: u32 = 4096;

pub fn errno(error: &Error) -> Errno {
    Errno::from_i32(error.errno().raw_os_error())
}

pub fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::File => FileType::RegularFile,
    }
}

/// The attributes with their own `st_ino`: for GETATTR and SETATTR.
pub fn attr(attr: &Attr) -> FileAttr {
    numbered(attr, attr.inode)
}

/// The attributes of an entry. fuser takes the node id from `ino`, so that the `st_ino` can only
/// come by GETATTR, which the kernel sends as it may not believe these attributes.
pub fn entry(entry: &fs::Entry) -> FileAttr {
    numbered(&entry.attr, entry.node.0)
}

fn numbered(attr: &Attr, number: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: attr.size,
        blocks: attr.size.div_ceil(512),
        atime: attr.modified,
        mtime: attr.modified,
        ctime: attr.modified,
        crtime: attr.modified,
        kind: file_type(attr.kind),
        perm: attr.mode,
        nlink: 1,
        uid: attr.uid,
        gid: attr.gid,
        rdev: 0,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}
