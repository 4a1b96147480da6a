//! A file system of one file, `sink`, that drops what is written to it: what a write through FUSE
//! costs at least. `scripts/bench` sets appends to journals against it.
//!
//! It is mounted, served and answered as journals are: by the same call of mount(2), with as many
//! threads, and with handles that bring each write(2) to this process. It prints `ready:` when it
//! is mounted, and ends when it is unmounted.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    Session, SessionACL, WriteFlags,
};
use mount::Settings;
use mount::mountpoint::MountPoint;
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The only file, and its node.
const NAME: &str = "sink";
const SINK: INodeNo = INodeNo(2);

/// As the mount of journals asks for.
const WRITE_MAX: u32 = 1 << 20;

/// Nothing is cached, as with journals.
const TTL: Duration = Duration::ZERO;

/// Bytes that were dropped, which is the size of the file: a writer that appends may look.
#[derive(Default)]
struct Null {
    dropped: AtomicU64,
}

impl Null {
    fn attributes(&self, node: INodeNo) -> FileAttr {
        let is_sink = node == SINK;
        FileAttr {
            ino: node,
            size: if is_sink { self.dropped.load(Ordering::Relaxed) } else { 0 },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_sink { FileType::RegularFile } else { FileType::Directory },
            perm: if is_sink { 0o644 } else { 0o755 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Null {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config.set_max_write(WRITE_MAX).map(drop).map_err(|_max| io::ErrorKind::InvalidInput.into())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            return reply.entry(&TTL, &self.attributes(SINK), Generation(0));
        }
        reply.error(Errno::ENOENT);
    }

    fn getattr(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&TTL, &self.attributes(node));
    }

    fn open(&self, _request: &Request, _node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn write(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        content: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.dropped.fetch_add(content.len() as u64, Ordering::Relaxed);
        reply.written(u32::try_from(content.len()).expect("at most WRITE_MAX"));
    }
}

#[expect(clippy::print_stdout, reason = "who starts it waits for the line")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: null MOUNTPOINT")?;
    // Kept until the end: then the mount goes.
    let (device, _attached) = MountPoint::claim(Path::new(&path))?.attach()?;
    let mut config = Config::default();
    config.n_threads = Some(Settings::default().threads);
    let session = Session::from_fd(Null::default(), device, SessionACL::All, config)?;
    println!("ready: {NAME}");
    session.run()?;
    Ok(())
}
