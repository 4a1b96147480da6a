//! The file system as a `Disk`.

use super::{Disk, DiskFile, Entry, Lock, Open, Space};
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the kernel reads ahead at least, once it sees a file being read (mm/readahead.c, by the
/// default of `read_ahead_kb`).
const READ_AHEAD: usize = 128 << 10;

/// How far from one another bytes are asked for, of a file of which nothing should be there.
const PROBED: usize = 64 << 10;

/// A directory of the file system. Files are made 0640, directories 0750.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
    /// How people call the root.
    called: PathBuf,
}

impl RealDisk {
    /// A disk at `root`, which is made when it is missing.
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        make_dir(&root)?;
        Ok(RealDisk { called: root.clone(), root })
    }

    /// The same, of which errors speak as of the directory `called`: what it will be renamed to.
    #[must_use]
    pub fn called(self, called: impl Into<PathBuf>) -> Self {
        RealDisk { called: called.into(), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn at(&self, path: &Path) -> PathBuf {
        debug_assert!(path.is_relative(), "paths of a disk are relative to its root");
        self.root.join(path)
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(path)
}

fn entry(name: String, meta: &std::fs::Metadata) -> io::Result<Entry> {
    Ok(Entry { name, is_dir: meta.is_dir(), len: meta.len(), modified: meta.modified()? })
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o640);
        match how {
            Open::Read => &mut options,
            Open::Existing => options.write(true),
            Open::New => options.write(true).create_new(true),
            Open::Any => options.write(true).create(true).truncate(false),
        };
        Ok(Arc::new(RealFile { file: options.open(self.at(path))? }))
    }

    fn place(&self, path: &Path) -> PathBuf {
        let place = self.called.join(path);
        // Without a working directory it is named as it was given.
        std::path::absolute(&place).unwrap_or(place)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.at(path);
        if path.is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        make_dir(&self.at(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for item in std::fs::read_dir(self.at(dir))? {
            let item = item?;
            let name = item.file_name().to_string_lossy().into_owned();
            match item.metadata() {
                Ok(meta) => entries.push(entry(name, &meta)?),
                // Removed since readdir saw it.
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stat(&self, path: &Path) -> io::Result<Option<Entry>> {
        match std::fs::metadata(self.at(path)) {
            Ok(meta) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                entry(name, &meta).map(Some)
            }
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(self.at(dir))?.sync_all()
    }

    fn space(&self) -> io::Result<Space> {
        let vfs = rustix::fs::statvfs(&self.root)?;
        Ok(Space { total: vfs.f_blocks * vfs.f_frsize, free: vfs.f_bavail * vfs.f_frsize })
    }

    fn boot_id(&self) -> io::Result<String> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(id.trim().to_owned())
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o640);
        let file = options.open(self.at(path))?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(file))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Lock> {
        match File::open(self.at(path)) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => Ok(Box::new(())),
            file => {
                let file = file?;
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)?;
                Ok(Box::new(file))
            }
        }
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn read_at(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buf, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Into memory that was not filled with zeros first, which took as long as a third of the read.
    fn read_new(&self, len: usize, at: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        if len == 0 {
            return Ok(bytes);
        }
        loop {
            match rustix::io::pread(&self.file, spare_capacity(&mut bytes), at) {
                Err(Errno::INTR) => {}
                other => {
                    other?;
                    // The allocator may have given more than was asked for.
                    bytes.truncate(len);
                    return Ok(bytes);
                }
            }
        }
    }

    /// Asks for single bytes, as far from one another as what the kernel reads ahead at least, and
    /// for none that is not there (`RWF_NOWAIT`, preadv2(2)).
    fn is_cached(&self, at: u64, len: usize) -> bool {
        let last = len.saturating_sub(1);
        (0..last).step_by(READ_AHEAD).chain([last]).all(|from| {
            let (mut byte, at) = ([0], at + from as u64);
            let slices = &mut [io::IoSliceMut::new(&mut byte)];
            rustix::io::preadv2(&self.file, slices, at, ReadWriteFlags::NOWAIT).is_ok()
        })
    }

    /// Asks as above, here and there, and has nothing read ahead meanwhile.
    fn is_forgotten(&self) -> bool {
        let advised = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
        let Ok(len) = self.len().and_then(|len| advised.map(|()| len).map_err(Into::into)) else {
            return false;
        };
        len > 0
            && (0..len).step_by(PROBED).all(|at| {
                let mut byte = [0];
                let slices = &mut [io::IoSliceMut::new(&mut byte)];
                let asked = rustix::io::preadv2(&self.file, slices, at, ReadWriteFlags::NOWAIT);
                asked == Err(Errno::AGAIN)
            })
    }

    fn write_at(&self, buf: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(buf, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Advice that pages are not needed begins to write those that are dirty, and drops the others
    /// (`generic_fadvise`, mm/fadvise.c): bytes that were just written are all dirty. What would
    /// say it in so many words, sync_file_range(2), has no safe binding.
    fn write_soon(&self, at: u64, len: u64) {
        let Some(len) = std::num::NonZeroU64::new(len) else { return };
        // Without it they are written later.
        let _ = rustix::fs::fadvise(&self.file, at, Some(len), rustix::fs::Advice::DontNeed);
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, at, len) {
            // Without fallocate the space is found when it is written; DataDir checks for hole
            // punching, which the same file systems lack, when it opens.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    fn punch(&self, at: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, at, len)?)
    }

    /// With lseek(2), which moves a place that nothing else here goes by.
    fn next_data(&self, at: u64) -> io::Result<Option<Range<u64>>> {
        let begin = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => return Ok(None),
            other => other?,
        };
        // Freed since: the end of the file is a hole's begin, too.
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(begin))?;
        Ok(Some(begin..end))
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    fn is_held_elsewhere(&self) -> io::Result<bool> {
        super::lease::is_held_elsewhere(self.file.as_fd())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_into_memory_of_their_own() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = RealDisk::new(dir.path()).expect("a folder");
        let file = disk.open(Path::new("file"), Open::New).expect("it is new");
        let content: Vec<u8> = (0..300_000_u32).map(|at| at as u8).collect();
        file.write_at(&content, 0).expect("there is room");
        // Case: the begin, a part in the middle, the end and what lies behind it, nothing.
        for (at, len) in [(0, 10), (5_000, 290_000), (299_990, 100), (400_000, 5), (7, 0)] {
            let expected = content.get(at..).unwrap_or_default();
            let expected = &expected[..expected.len().min(len)];
            assert_eq!(file.read_new(len, at as u64).expect("it is read"), expected, "{at}, {len}");
            // What was just written is in the page cache.
            assert!(file.is_cached(at as u64, expected.len()), "{at}, {len}");
        }
    }

    #[test]
    fn what_only_the_disk_has_is_not_taken_for_cached() {
        let dir = tempfile::tempdir().expect("a folder");
        let disk = RealDisk::new(dir.path()).expect("a folder");
        let file = disk.open(Path::new("file"), Open::New).expect("it is new");
        let len = 8 << 20;
        file.write_at(&vec![b'x'; len], 0).expect("there is room");
        assert!(file.is_cached(0, len));
        file.sync().expect("it is synced");
        // Clean pages are dropped by that.
        file.write_soon(0, len as u64);
        assert!(!file.is_cached(0, len), "needs a temporary folder on a disk, not in memory");
        file.write_soon(0, len as u64);
        assert!(file.is_forgotten());
        file.write_at(b"x", len as u64 / 2).expect("there is room");
        assert!(!file.is_forgotten(), "one page of it is there");
    }
}
