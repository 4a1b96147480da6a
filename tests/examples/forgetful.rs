//! A file system in memory that forgets, at a cut of the power, what was not synced: under a data
//! directory it shows what a broker has promised too early.
//!
//! It is `index::disk::ForgetfulDisk` as files, for programs that know nothing of it. Of what was
//! not synced a seed chooses what stays: sectors of files and entries of directories alike. Each
//! write reaches this process at once, so that nothing waits in a cache of the kernel.
//!
//! `forgetful MOUNTPOINT` prints `ready:` when it is mounted, takes `cut SEED` on its standard
//! input, which it answers with `cut` when it is done, and ends with its input. The file `.boot`
//! changes with each cut, as /proc/sys/kernel/random/boot_id does with each boot.

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    Session, SessionACL, TimeOrNow, WriteFlags,
};
use index::disk::{Crash, Disk, DiskFile, Entry, ForgetfulDisk, Open};
use mount::mountpoint::MountPoint;
use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TTL: Duration = Duration::ZERO;
const BLOCK: u32 = 4096;

/// What fits: small enough that segments of a commit log are.
const CAPACITY: u64 = 256 << 20;

const WRITE_MAX: u32 = 1 << 20;

/// The file that tells which boot this is.
const BOOT: &str = ".boot";

/// fallocate(2): the bytes are freed.
const PUNCH_HOLE: i32 = 2;

/// A name that the kernel knows by a number.
#[derive(Debug, Clone)]
struct Node {
    /// `None` once the name is another file's, or nobody's.
    path: Option<PathBuf>,
    /// It is open, or was.
    file: Option<Arc<dyn DiskFile>>,
}

#[derive(Debug, Default)]
struct Tree {
    disk: ForgetfulDisk,
    /// By number, from that of the root on.
    nodes: BTreeMap<u64, Node>,
    numbers: BTreeMap<PathBuf, u64>,
    handles: BTreeMap<u64, Arc<dyn DiskFile>>,
    next_handle: u64,
}

/// See the module. Clones share one tree.
#[derive(Debug, Clone, Default)]
struct Forgetful(Arc<Mutex<Tree>>);

fn errno(error: &io::Error) -> Errno {
    let number = match error.kind() {
        io::ErrorKind::NotFound => Errno::ENOENT,
        io::ErrorKind::AlreadyExists => Errno::EEXIST,
        io::ErrorKind::DirectoryNotEmpty => Errno::ENOTEMPTY,
        io::ErrorKind::StorageFull => Errno::ENOSPC,
        _ => Errno::EIO,
    };
    error.raw_os_error().map_or(number, Errno::from_i32)
}

impl Tree {
    fn number(&mut self, path: &Path) -> u64 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = self.nodes.last_key_value().map_or(INodeNo::ROOT.0, |(last, _)| last + 1);
        self.nodes.insert(number, Node { path: Some(path.to_owned()), file: None });
        self.numbers.insert(path.to_owned(), number);
        number
    }

    fn node(&self, number: INodeNo) -> io::Result<Node> {
        self.nodes.get(&number.0).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn path(&self, number: INodeNo) -> io::Result<PathBuf> {
        self.node(number)?.path.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn below(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    /// The name is nobody's any more.
    fn unname(&mut self, path: &Path) {
        if let Some(number) = self.numbers.remove(path)
            && let Some(node) = self.nodes.get_mut(&number)
        {
            node.path = None;
        }
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)?;
        self.unname(to);
        if let Some(number) = self.numbers.remove(from) {
            self.numbers.insert(to.to_owned(), number);
            let node = self.nodes.get_mut(&number).expect("a name stands for a node");
            node.path = Some(to.to_owned());
        }
        Ok(())
    }

    fn look_up(&mut self, path: &Path) -> io::Result<FileAttr> {
        if path == Path::new(BOOT) {
            let len = self.boot()?.len() as u64;
            return Ok(attributes(self.number(path), false, len, len));
        }
        let found = if path == Path::new("") { None } else { Some(self.entry(path)?) };
        let number = self.number(path);
        match found {
            Some(Entry { is_dir: false, len, .. }) => {
                let allocated = self.disk.open(path, Open::Read)?.allocated()?;
                Ok(attributes(number, false, len, allocated))
            }
            _ => Ok(attributes(number, true, 0, 0)),
        }
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        self.disk.stat(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn boot(&self) -> io::Result<String> {
        self.disk.boot_id()
    }

    /// What a node is, be it unlinked and open.
    fn attributes(&mut self, number: INodeNo) -> io::Result<FileAttr> {
        let node = self.node(number)?;
        match (node.path, node.file) {
            (Some(path), _) => self.look_up(&path),
            (None, Some(file)) => Ok(attributes(number.0, false, file.len()?, file.allocated()?)),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn open(&mut self, path: &Path, how: Open) -> io::Result<FileHandle> {
        let file = self.disk.open(path, how)?;
        let number = self.number(path);
        self.nodes.get_mut(&number).expect("it has a number").file = Some(file.clone());
        self.next_handle += 1;
        self.handles.insert(self.next_handle, file);
        Ok(FileHandle(self.next_handle))
    }

    fn handle(&self, handle: FileHandle) -> io::Result<Arc<dyn DiskFile>> {
        // Those of before a cut are nobody's.
        self.handles.get(&handle.0).cloned().ok_or_else(|| io::Error::from_raw_os_error(5))
    }

    fn cut(&mut self, seed: u64) {
        self.disk = self.disk.crash(Crash::Power(seed));
        self.handles.clear();
        self.nodes.values_mut().for_each(|node| node.file = None);
    }
}

fn attributes(number: u64, is_dir: bool, len: u64, allocated: u64) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: len,
        blocks: allocated.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_dir { FileType::Directory } else { FileType::RegularFile },
        perm: if is_dir { 0o755 } else { 0o644 },
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

impl Forgetful {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().expect("no holder panics")
    }

    fn new() -> Self {
        let forgetful = Forgetful::default();
        let mut tree = forgetful.tree();
        tree.disk.set_capacity(Some(CAPACITY));
        let root = tree.number(Path::new(""));
        assert_eq!(root, INodeNo::ROOT.0, "the first node is the root");
        drop(tree);
        forgetful
    }

    fn done(reply: ReplyEmpty, done: io::Result<()>) {
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn found(reply: ReplyEntry, found: io::Result<FileAttr>) {
        match found {
            Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn told(reply: ReplyAttr, told: io::Result<FileAttr>) {
        match told {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> io::Result<()> {
        let mut tree = self.tree();
        let path = tree.below(parent, name)?;
        tree.disk.remove(&path)?;
        tree.unname(&path);
        Ok(())
    }
}

impl Filesystem for Forgetful {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        config.set_max_write(WRITE_MAX).map(drop).map_err(|_max| io::ErrorKind::InvalidInput.into())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let found = tree.below(parent, name).and_then(|path| tree.look_up(&path));
        Self::found(reply, found);
    }

    fn getattr(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        Self::told(reply, self.tree().attributes(number));
    }

    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
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
        let mut tree = self.tree();
        let resized = size.map_or(Ok(()), |len| match handle {
            Some(handle) => tree.handle(handle)?.set_len(len),
            None => tree.disk.open(&tree.path(number)?, Open::Existing)?.set_len(len),
        });
        Self::told(reply, resized.and_then(|()| tree.attributes(number)));
    }

    fn mkdir(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let mut tree = self.tree();
        let made = tree.below(parent, name).and_then(|path| {
            tree.disk.create_dir(&path)?;
            tree.look_up(&path)
        });
        Self::found(reply, made);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::done(reply, self.remove(parent, name));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        Self::done(reply, self.remove(parent, name));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mut tree = self.tree();
        let paths = tree.below(parent, name).and_then(|from| {
            let to = tree.below(new_parent, new_name)?;
            Ok((from, to))
        });
        Self::done(reply, paths.and_then(|(from, to)| tree.rename(&from, &to)));
    }

    fn create(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let mut tree = self.tree();
        // O_EXCL.
        let how = if flags & 0o200 == 0 { Open::Any } else { Open::New };
        let made = tree.below(parent, name).and_then(|path| {
            let handle = tree.open(&path, how)?;
            Ok((tree.look_up(&path)?, handle))
        });
        match made {
            Ok((attributes, handle)) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(&TTL, &attributes, Generation(0), handle, flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn open(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let mut tree = self.tree();
        let opened = tree.path(number).and_then(|path| match path == Path::new(BOOT) {
            true => Ok(FileHandle(0)),
            false => tree.open(&path, Open::Existing),
        });
        match opened {
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let tree = self.tree();
        if handle == FileHandle(0) {
            let boot = tree.boot().unwrap_or_default();
            let from = usize::try_from(offset).map_or(boot.len(), |at| at.min(boot.len()));
            return reply.data(&boot.as_bytes()[from..]);
        }
        let read = tree.handle(handle).and_then(|file| {
            let mut buf = vec![0; size as usize];
            let n = file.read_at(&mut buf, offset)?;
            buf.truncate(n);
            Ok(buf)
        });
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        content: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.tree().handle(handle).and_then(|file| file.write_at(content, offset)) {
            Ok(()) => reply.written(u32::try_from(content.len()).expect("at most WRITE_MAX")),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn fsync(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        Self::done(reply, self.tree().handle(handle).and_then(|file| file.sync()));
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        _is_data_only: bool,
        reply: ReplyEmpty,
    ) {
        let tree = self.tree();
        Self::done(reply, tree.path(number).and_then(|path| tree.disk.sync_dir(&path)));
    }

    fn fallocate(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = self.tree().handle(handle).and_then(|file| match mode & PUNCH_HOLE {
            0 => file.reserve(offset, length),
            _ => file.punch(offset, length),
        });
        Self::done(reply, done);
    }

    fn readdir(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut tree = self.tree();
        let listed = tree.path(number).and_then(|path| Ok((tree.disk.list(&path)?, path)));
        let (entries, path) = match listed {
            Ok(listed) => listed,
            Err(error) => return reply.error(errno(&error)),
        };
        // A file's place is its number, whatever comes and goes meanwhile: what stays is listed.
        let numbered =
            entries.into_iter().map(|entry| (tree.number(&path.join(&entry.name)), entry));
        let numbered: BTreeMap<u64, _> = numbered.collect();
        for (number, entry) in numbered.range(offset + 1..) {
            let kind = if entry.is_dir { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(*number), *number, kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _is_flush: bool,
        reply: ReplyEmpty,
    ) {
        self.tree().handles.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        match self.tree().disk.space() {
            Ok(space) => {
                let block = u64::from(BLOCK);
                let (total, free) = (space.total / block, space.free / block);
                reply.statfs(total, free, free, 0, 0, BLOCK, 255, BLOCK);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

#[expect(clippy::print_stdout, reason = "who starts it waits for the lines")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: forgetful MOUNTPOINT")?;
    // Kept until the end: then the mount goes.
    let (device, _attached) = MountPoint::claim(Path::new(&path))?.attach()?;
    let forgetful = Forgetful::new();
    let session = Session::from_fd(forgetful.clone(), device, SessionACL::All, Config::default())?;
    let serving = session.spawn()?;
    println!("ready: {}", Path::new(&path).display());
    for line in io::stdin().lines() {
        let line = line?;
        let seed = line.strip_prefix("cut ").and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.ok_or_else(|| format!("expected `cut SEED`, found {line:?}"))?;
        forgetful.tree().cut(seed);
        println!("cut");
    }
    drop(serving);
    Ok(())
}
