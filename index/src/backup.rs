//! A copy of a data directory, stopped or running, that opens like the directory itself.
//!
//! Files are copied in the order that a [`Hold`](crate::Hold) asks for: the checkpoint and the log
//! of its moment, then the mirrors. They keep their holes, and where the file system can share
//! blocks they share them. [`Backup::finish`] recovers the copy: it is cut to the moment, and
//! proves that it opens.

use crate::checkpoint;
use crate::clock::Clock;
use crate::disk::{Disk, DiskFile, Lock, Open, read_exact_at};
use crate::hold::Moment;
use crate::limits::COPY_LEN;
use crate::recover::{ASIDE, Before};
use crate::{DataDir, Error, Options, Recovered, datadir, ground, log, mirror, staging};
use rustix::fs::{Timespec, Timestamps};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Keeps others from running on a data directory that nobody runs on; `InUse` where a broker does.
/// Nothing is made or written.
pub fn lock(disk: &dyn Disk) -> Result<Lock, Error> {
    ground::share_lock(disk)
}

/// See the module. `progress` hears how many bytes were copied.
pub struct Backup<'a> {
    from: &'a dyn Disk,
    to: Arc<dyn Disk>,
    progress: &'a mut dyn FnMut(u64),
}

impl<'a> Backup<'a> {
    /// A copy of `from` to `to`, which is empty.
    pub fn new(from: &'a dyn Disk, to: Arc<dyn Disk>, progress: &'a mut dyn FnMut(u64)) -> Self {
        Backup { from, to, progress }
    }

    /// Copies what has to be there before anything else, and what nobody changes: the name of the
    /// format, and what was set aside.
    pub fn begin(&mut self) -> Result<(), Error> {
        ground::make_dirs(&*self.to)?;
        self.file(Path::new(ground::FORMAT_FILE), u64::MAX)?;
        self.files(Path::new(ASIDE))?;
        self.files(Path::new(datadir::LOST_AND_FOUND))
    }

    /// Copies the state of a moment, but for the mirrors. The hold keeps all of it.
    pub fn log_of(&mut self, moment: Moment) -> Result<(), Error> {
        self.checkpoint_of(moment)?;
        for number in moment.start.segment()..=moment.end.segment() {
            let is_last = number == moment.end.segment();
            let at_most = if is_last { u64::from(moment.end.offset()) } else { u64::MAX };
            self.file(&log::path_of(number), at_most)?;
        }
        self.sync_dir(Path::new(log::DIR))?;
        self.files(Path::new(staging::DIR))
    }

    fn checkpoint_of(&mut self, moment: Moment) -> Result<(), Error> {
        let path = Path::new(checkpoint::FILE);
        self.file(path, u64::MAX)?;
        let copied = checkpoint::bytes(&*self.to, path)?.map(|bytes| crc32c::crc32c(&bytes));
        match copied == Some(moment.checkpoint_crc) {
            true => Ok(()),
            false => Err(Error::OtherCheckpoint),
        }
    }

    /// Copies the log of a directory that nobody runs on.
    pub fn whole_log(&mut self) -> Result<(), Error> {
        self.file(Path::new(checkpoint::FILE), u64::MAX)?;
        self.files(Path::new(log::DIR))?;
        self.files(Path::new(staging::DIR))
    }

    /// Copies the mirrors: after the log, so that they have all that it says.
    pub fn mirrors(&mut self) -> Result<(), Error> {
        self.files(Path::new(mirror::DIR))
    }

    /// Makes a directory below the data directory what it is there: what is there and not in the
    /// copy is copied, and what is in the copy alone is removed. Files of a name have one content;
    /// what `skip` takes is left out.
    pub fn tree(&mut self, dir: &Path, skip: fn(&str) -> bool) -> Result<(), Error> {
        self.to.create_dir(dir).map_err(Error::disk("create", dir))?;
        let mut names = BTreeSet::new();
        for entry in list(self.from, dir)?.into_iter().filter(|entry| !skip(&entry.name)) {
            let path = dir.join(&entry.name);
            let is_there = stat_len(&*self.to, &path)? == Some(entry.len);
            if entry.is_dir {
                self.tree(&path, skip)?;
            } else if !is_there {
                self.file(&path, u64::MAX)?;
            }
            names.insert(entry.name);
        }
        for gone in list(&*self.to, dir)?.into_iter().filter(|it| !names.contains(&it.name)) {
            self.remove(&dir.join(&gone.name), gone.is_dir)?;
        }
        self.sync_dir(dir)
    }

    fn remove(&self, path: &Path, is_dir: bool) -> Result<(), Error> {
        if is_dir {
            for entry in list(&*self.to, path)? {
                self.remove(&path.join(&entry.name), entry.is_dir)?;
            }
        }
        self.to.remove(path).map_err(Error::disk("remove", path))
    }

    /// Copies a file of the data directory that nobody changes.
    pub fn one(&mut self, path: &Path) -> Result<(), Error> {
        self.file(path, u64::MAX)?;
        self.sync_dir(Path::new(""))
    }

    /// Writes a file of the copy.
    pub fn put(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        crate::disk::replace(&*self.to, path, content)
            .map_err(Error::disk("write", self.to.place(path)))
    }

    /// Recovers the copy, as the next start of a stopped directory would, and as of the moment
    /// where the directory ran: what mirrors have beyond it is cut. The copy is at rest then, and
    /// durable.
    pub fn finish(self, clock: Arc<dyn Clock>, of: Option<Moment>) -> Result<Recovered, Error> {
        let before = if of.is_some() { Before::Copy } else { Before::Stop };
        let options = Options::offline();
        let (data, recovered) = DataDir::open_after(before, self.to, clock, options)?;
        data.close()?;
        Ok(recovered)
    }

    /// Copies the files of a directory, not those below it, durably.
    fn files(&mut self, dir: &Path) -> Result<(), Error> {
        for entry in list(self.from, dir)?.into_iter().filter(|entry| !entry.is_dir) {
            self.file(&dir.join(entry.name), u64::MAX)?;
        }
        self.sync_dir(dir)
    }

    /// Copies a file up to `at_most`, durably but for its name. One that is gone is passed over:
    /// whoever removed it said so in the log before.
    fn file(&mut self, path: &Path, at_most: u64) -> Result<(), Error> {
        let from = match self.from.open(path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(Error::disk("open", self.from.place(path)))?,
        };
        let to = self.to.open(path, Open::New);
        let to = to.map_err(Error::disk("make", self.to.place(path)))?;
        let copied = copy(&*from, &*to, at_most, self.progress)
            .and_then(|()| copy_time(&*from, &*to))
            .and_then(|()| to.sync());
        copied.map_err(Error::disk("copy", self.from.place(path)))
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), Error> {
        self.to.sync_dir(dir).map_err(Error::disk("sync", self.to.place(dir)))
    }
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<crate::disk::Entry>, Error> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(Error::disk("list", disk.place(dir))),
    }
}

fn stat_len(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, Error> {
    let entry = disk.stat(path).map_err(Error::disk("stat", disk.place(path)))?;
    Ok(entry.map(|entry| entry.len))
}

/// Copies the parts that are no holes, up to `at_most`; the length as well.
pub(crate) fn copy(
    from: &dyn DiskFile,
    to: &dyn DiskFile,
    at_most: u64,
    progress: &mut dyn FnMut(u64),
) -> io::Result<()> {
    let len = from.len()?.min(at_most);
    let mut at = 0;
    while let Some(part) = from.next_data(at)?.filter(|part| part.start < len) {
        at = part.start;
        let end = part.end.min(len);
        while at < end {
            let copied = copy_part(from, to, at, (end - at).min(COPY_LEN))?;
            progress(copied);
            at += copied;
        }
    }
    to.set_len(len)
}

/// The time of a stored fragment's file is that by which retention goes.
fn copy_time(from: &dyn DiskFile, to: &dyn DiskFile) -> io::Result<()> {
    let (Some(from), Some(to)) = (from.descriptor(), to.descriptor()) else { return Ok(()) };
    let stat = rustix::fs::fstat(from)?;
    let modified = Timespec { tv_sec: stat.st_mtime as i64, tv_nsec: stat.st_mtime_nsec as i64 };
    let times = Timestamps { last_access: modified, last_modification: modified };
    Ok(rustix::fs::futimens(to, &times)?)
}

/// Copies some of `len` bytes at `at`, at least one: in the kernel where both files are there.
fn copy_part(from: &dyn DiskFile, to: &dyn DiskFile, at: u64, len: u64) -> io::Result<u64> {
    if let (Some(source), Some(target)) = (from.descriptor(), to.descriptor()) {
        let (mut read_at, mut write_at) = (at, at);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let copied = rustix::fs::copy_file_range(
            source,
            Some(&mut read_at),
            target,
            Some(&mut write_at),
            len,
        );
        // Where the kernel can't, as between some file systems, the bytes are read and written.
        if let Ok(copied @ 1..) = copied {
            return Ok(copied as u64);
        }
    }
    let mut buf = vec![0; len as usize];
    read_exact_at(from, &mut buf, at)?;
    to.write_at(&buf, at)?;
    Ok(len)
}
