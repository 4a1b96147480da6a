//! A file system of two files: `sink` drops what is written to it, and `source` has bytes that are
//! in memory. They cost what a write or a read through FUSE costs at least: `scripts/bench` sets
//! journals against them.
//!
//! It is mounted, served and answered as journals are: by the same call of mount(2), with as many
//! threads, and with handles that bring each write(2) to this process. It prints `ready:` when it
//! is mounted, and ends when it is unmounted.

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, Session, SessionACL, WriteFlags,
};
use mount::Settings;
use mount::mountpoint::MountPoint;
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The files, and their nodes.
const NAME: &str = "sink";
const SINK: INodeNo = INodeNo(2);
const SOURCE_NAME: &str = "source";
const SOURCE: INodeNo = INodeNo(3);

/// Bytes of `source`; each read gets the same ones.
const SOURCE_LEN: u64 = 256 << 20;
static BYTES: [u8; 1 << 20] = [0; 1 << 20];

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
        FileAttr {
            ino: node,
            size: match node {
                SINK => self.dropped.load(Ordering::Relaxed),
                SOURCE => SOURCE_LEN,
                _ => 0,
            },
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if node == INodeNo::ROOT { FileType::Directory } else { FileType::RegularFile },
            perm: if node == INodeNo::ROOT { 0o755 } else { 0o644 },
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
        let node = match name.to_str() {
            Some(NAME) => SINK,
            Some(SOURCE_NAME) => SOURCE,
            _ => return reply.error(Errno::ENOENT),
        };
        match parent {
            INodeNo::ROOT => reply.entry(&TTL, &self.attributes(node), Generation(0)),
            _ => reply.error(Errno::ENOTDIR),
        }
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

    fn read(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let len = if node == SOURCE { SOURCE_LEN } else { 0 };
        let left = len.saturating_sub(offset).min(u64::from(size));
        let count = usize::try_from(left).map_or(BYTES.len(), |left| left.min(BYTES.len()));
        reply.data(&BYTES[..count]);
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
