//! fuser's trait: each request decoded, handed to `fs`, and its answer encoded.

use crate::answer::Answers;
use crate::calls::{Part, Sought};
use crate::convert::{TTL, entry, errno, file_type};
use crate::hold::Holds;
use crate::opener::{self, Opener};
use crate::polls::Polls;
use crate::replies::{attributes, empty, found, generation, valued};
use bytes::Bytes;
use fs::{Caller, Filesystem, HandleId, NodeId, ReadAt, Seek, WriteAt};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, FopenFlags, INodeNo,
    InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier,
    RenameFlags, ReplyAttr, ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FileType, OFlags};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The largest WRITE that is asked for, in bytes. Fixed, so that a raised sysctl
/// (fs.fuse.max_pages_limit) does not move the limit of an append unseen.
const WRITE_MAX: u32 = 1 << 20;

/// `whence` of lseek(2), as linux/fs.h numbers them.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// Blocks of statfs, in bytes.
const STATFS_BLOCK: u32 = 4096;

/// A mount's requests.
pub struct Adapter {
    fs: Arc<Filesystem>,
    answers: Answers,
    opener: Arc<Opener>,
    polls: Arc<Polls>,
    holds: Arc<Holds>,
    stack_depth: u32,
}

impl Adapter {
    pub fn new(fs: Arc<Filesystem>, answers: Answers, holds: Arc<Holds>, stack_depth: u32) -> Self {
        let opener = Arc::new(Opener::new(fs.clone()));
        Adapter { fs, answers, opener, polls: Arc::default(), holds, stack_depth }
    }

    /// Passthrough, if the kernel can; else every journal is read through us.
    fn negotiate_passthrough(&self, config: &mut KernelConfig) {
        let granted = config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
            && config.set_max_stack_depth(self.stack_depth).is_ok();
        if !granted {
            tracing::info!("this kernel has no FUSE passthrough; reads go through the daemon");
            self.fs.stop_passthrough();
        }
    }
}

fn caller(request: &Request) -> Caller {
    Caller { thread: request.pid() }
}

fn flags(raw: i32) -> OFlags {
    OFlags::from_bits_retain(raw.cast_unsigned())
}

/// A name as fuser takes it.
fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Every file may be written at once, as far as poll(2) can tell.
fn writable() -> PollEvents {
    PollEvents::POLLOUT | PollEvents::POLLWRNORM
}

impl fuser::Filesystem for Adapter {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Everything else stays off: a cache of a growing file shows NULs, writeback merges and
        // reorders appends, and mappings of a direct handle break at the tail.
        self.negotiate_passthrough(config);
        if config.add_capabilities(InitFlags::FUSE_ATOMIC_O_TRUNC).is_err() {
            tracing::debug!("no atomic O_TRUNC: it comes as a SETATTR, which is refused as well");
        }
        config.set_max_write(WRITE_MAX).map_err(|_max| io::ErrorKind::InvalidInput)?;
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (fs, caller, name) = (self.fs.clone(), caller(request), name.as_bytes().to_owned());
        let part = Part::Lookup(Sought::new(parent.0, &name));
        let looking = move || fs.lookup(NodeId(parent.0), &name, caller);
        self.answers.answer_outlasting(request, part, looking, found(reply));
    }

    fn forget(&self, _request: &Request, node: INodeNo, lookups: u64) {
        self.fs.forget(NodeId(node.0), lookups);
    }

    fn getattr(
        &self,
        request: &Request,
        node: INodeNo,
        handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        let (fs, node, caller) = (self.fs.clone(), NodeId(node.0), caller(request));
        let getting = move || fs.getattr(node, caller);
        // One with a handle comes from lseek(SEEK_END), under the inode lock: holding it would stop
        // every writer of the file.
        if handle.is_some() {
            let reply = attributes(reply);
            return self.answers.answer_outlasting(request, Part::Whole, getting, reply);
        }
        let holds = self.holds.clone();
        let getting = self.answers.outlasting(request, Part::Attributes, getting);
        let getting = async move { holds.getattr(caller.thread, node, getting.await?).await };
        self.answers.answer_waiting(request, Box::pin(getting), attributes(reply));
    }

    fn setattr(
        &self,
        request: &Request,
        node: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let handle = handle.map(|handle| HandleId(handle.0));
        let setting = self.fs.setattr(NodeId(node.0), handle, size);
        self.answers.answer(request, Part::Last, setting, attributes(reply));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        if FileType::from_raw_mode(mode) != FileType::RegularFile {
            return reply.error(Errno::EPERM);
        }
        self.answers.answer(
            request,
            Part::Last,
            self.fs.mknod(NodeId(parent.0), name.as_bytes()),
            found(reply),
        );
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        self.answers.answer(
            request,
            Part::Last,
            self.fs.mkdir(NodeId(parent.0), name.as_bytes()),
            found(reply),
        );
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.answers.answer(
            request,
            Part::Last,
            self.fs.unlink(NodeId(parent.0), name.as_bytes()),
            empty(reply),
        );
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.answers.answer(
            request,
            Part::Last,
            self.fs.rmdir(NodeId(parent.0), name.as_bytes()),
            empty(reply),
        );
    }

    fn symlink(
        &self,
        _request: &Request,
        _parent: INodeNo,
        _name: &OsStr,
        _target: &Path,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        // The kernel itself sees to it that nothing is replaced, where that is asked for.
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let from = (NodeId(parent.0), name.as_bytes());
        let to = (NodeId(newparent.0), newname.as_bytes());
        self.answers.answer(request, Part::Last, self.fs.rename(from, to), empty(reply));
    }

    fn link(
        &self,
        _request: &Request,
        _node: INodeNo,
        _newparent: INodeNo,
        _newname: &OsStr,
        reply: ReplyEntry,
    ) {
        reply.error(Errno::EPERM);
    }

    fn open(&self, request: &Request, node: INodeNo, raw: OpenFlags, reply: ReplyOpen) {
        let caller = caller(request);
        let fs = self.fs.clone();
        let opening = move || fs.open(NodeId(node.0), flags(raw.0), caller);
        let opener = self.opener.clone();
        self.answers.answer_outlasting(request, Part::Last, opening, move |answer| match answer {
            Ok(opened) => opener.reply(opened, caller, reply),
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        raw: i32,
        reply: ReplyCreate,
    ) {
        let parent = NodeId(parent.0);
        let creating = self.fs.create(parent, name.as_bytes(), flags(raw), caller(request));
        let opener = self.opener.clone();
        self.answers.answer(request, Part::Last, creating, move |answer| match answer {
            Ok((found, handle)) => {
                let flags = opener::direct(opener.closes(handle));
                let handle = FileHandle(handle.0);
                reply.created(&TTL, &entry(&found), generation(&found), handle, flags);
            }
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn read(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        raw: OpenFlags,
        lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = ReadAt {
            handle: HandleId(handle.0),
            offset,
            size: size as usize,
            nonblocking: flags(raw.0).contains(OFlags::NONBLOCK),
            // read(2) always has one; what fills the page cache never has.
            fills: lock_owner.is_none(),
        };
        let answer = move |answer: Result<Bytes, fs::Error>| match answer {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(&error)),
        };
        if !self.fs.waits_at_head(read.handle) {
            let fs = self.fs.clone();
            let reading = move || fs.read(read);
            return self.answers.answer_outlasting(request, Part::Whole, reading, answer);
        }
        let (holds, thread, reading) = (self.holds.clone(), request.pid(), self.fs.read(read));
        let reading = async move { holds.read(thread, reading).await };
        self.answers.answer_held(Box::pin(reading), answer);
    }

    fn write(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        content: &[u8],
        _write_flags: WriteFlags,
        raw: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let handle = HandleId(handle.0);
        let writing = self.fs.write(WriteAt { handle, offset, content, flags: flags(raw.0) });
        self.answers.answer(request, Part::Whole, writing, move |answer| match answer {
            Ok(written) => reply.written(u32::try_from(written).expect("at most a request")),
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn flush(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.answers.answer(request, Part::Whole, self.fs.flush(HandleId(handle.0)), empty(reply));
    }

    fn release(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let handle = HandleId(handle.0);
        self.polls.release(handle);
        self.opener.release(handle);
        // Nobody waits for a RELEASE, so it is answered before what was left to it.
        let closing = self.fs.release(handle);
        closing.map(|closing| self.answers.runtime().spawn(closing));
        reply.ok();
    }

    fn fsync(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.answers.answer(request, Part::Whole, self.fs.fsync(HandleId(handle.0)), empty(reply));
    }

    fn opendir(&self, request: &Request, node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.answers.answer(request, Part::Last, self.fs.opendir(NodeId(node.0)), move |answer| {
            match answer {
                Ok(handle) => reply.opened(FileHandle(handle.0), FopenFlags::empty()),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn readdir(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut next = offset;
        let listed = self.fs.readdir(HandleId(handle.0), skip, |entry| {
            next += 1;
            let is_full =
                reply.add(INodeNo(entry.inode), next, file_type(entry.kind), name(&entry.name));
            !is_full
        });
        match listed {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        // A directory leaves nothing to its close.
        drop(self.fs.release(HandleId(handle.0)));
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _node: INodeNo, reply: ReplyStatfs) {
        let usage = self.fs.statfs();
        let blocks = |bytes: u64| bytes / u64::from(STATFS_BLOCK);
        let (total, free) = (blocks(usage.space.total), blocks(usage.space.free));
        reply.statfs(total, free, free, 0, 0, STATFS_BLOCK, usage.name_max, STATFS_BLOCK);
    }

    fn setxattr(
        &self,
        _request: &Request,
        _node: INodeNo,
        name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(errno(&self.fs.setxattr(name.as_bytes())));
    }

    fn getxattr(
        &self,
        request: &Request,
        node: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        let getting = self.fs.getxattr(NodeId(node.0), name.as_bytes());
        self.answers.answer(request, Part::Last, getting, valued(size, reply));
    }

    fn listxattr(&self, request: &Request, node: INodeNo, size: u32, reply: ReplyXattr) {
        self.answers.answer(
            request,
            Part::Last,
            self.fs.listxattr(NodeId(node.0)),
            valued(size, reply),
        );
    }

    fn removexattr(&self, _request: &Request, _node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply.error(errno(&self.fs.setxattr(name.as_bytes())));
    }

    fn access(&self, _request: &Request, node: INodeNo, _mask: AccessFlags, reply: ReplyEmpty) {
        empty(reply)(self.fs.access(NodeId(node.0)));
    }

    fn bmap(&self, _request: &Request, _node: INodeNo, _size: u32, _index: u64, reply: ReplyBmap) {
        reply.error(Errno::ENOSYS);
    }

    /// Python asks each file that it opens whether it is a terminal.
    fn ioctl(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _input: &[u8],
        _size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn poll(
        &self,
        request: &Request,
        _node: INodeNo,
        handle: FileHandle,
        notifier: PollNotifier,
        _events: PollEvents,
        poll_flags: PollFlags,
        reply: ReplyPoll,
    ) {
        let handle = HandleId(handle.0);
        let (polls, runtime) = (self.polls.clone(), self.answers.runtime().clone());
        let notifies = poll_flags.contains(PollFlags::FUSE_POLL_SCHEDULE_NOTIFY);
        self.answers.answer(
            request,
            Part::Whole,
            self.fs.poll(handle),
            move |answer| match answer {
                Ok(polled) => {
                    // Also where it is readable: one that is told of changes alone (EPOLLET)
                    // reads to the end, and polls again when it is told.
                    if let Some(grown) = polled.grown.filter(|_| notifies) {
                        polls.wait(handle, &runtime, grown, notifier);
                    }
                    let readable = match polled.is_readable {
                        true => PollEvents::POLLIN | PollEvents::POLLRDNORM,
                        false => PollEvents::empty(),
                    };
                    reply.poll(readable | writable());
                }
                Err(error) => reply.error(errno(&error)),
            },
        );
    }

    fn fallocate(
        &self,
        _request: &Request,
        _node: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn lseek(
        &self,
        request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        // The kernel answers SEEK_SET, SEEK_CUR and SEEK_END itself.
        let seek = match whence {
            SEEK_DATA => Seek::Data,
            SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let seeking = self.fs.seek(NodeId(node.0), offset, seek);
        self.answers.answer(request, Part::Whole, seeking, move |answer| match answer {
            Ok(found) => reply.offset(i64::try_from(found).expect("an offset of a journal")),
            Err(error) => reply.error(errno(&error)),
        });
    }

    /// `ENOSYS` makes the kernel copy by reads and writes, and not ask again.
    fn copy_file_range(
        &self,
        _request: &Request,
        _from: INodeNo,
        _from_handle: FileHandle,
        _from_offset: u64,
        _to: INodeNo,
        _to_handle: FileHandle,
        _to_offset: u64,
        _len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }
}
