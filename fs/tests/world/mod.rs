//! A file system over the double, with calls as a program makes them.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod staged;

use fs::double::Double;
use fs::{
    Attr, Caller, Entry, Error, Filesystem, HandleId, NodeId, Opened, Options, ReadAt, WriteAt,
};
use protocol::Journal;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub const APPEND: OFlags = OFlags::WRONLY.union(OFlags::APPEND);

/// The thread that calls, where a test does not care.
pub const SELF: Caller = Caller { thread: 7 };

/// Writers of further mounts: no two are alike.
static NEXT_WRITER: AtomicU64 = AtomicU64::new(2);

pub struct World {
    pub double: Arc<Double>,
    pub fs: Arc<Filesystem>,
}

impl World {
    pub fn new() -> Self {
        Self::with(Double::new(), |_| {})
    }

    pub fn with(double: Double, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new([1; 16], SystemTime::UNIX_EPOCH);
        options.prefix = "test/".to_owned();
        change(&mut options);
        let double = Arc::new(double);
        World { fs: Filesystem::new(double.clone(), options), double }
    }

    /// Another mount of the same journals.
    pub fn other(&self) -> Self {
        self.other_with(|_| {})
    }

    /// Another mount of the same journals, with other options.
    pub fn other_with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.fs.options().clone();
        let next = NEXT_WRITER.fetch_add(1, Ordering::Relaxed);
        options.writer = u128::from(next).to_ne_bytes();
        change(&mut options);
        World { double: self.double.clone(), fs: Filesystem::new(self.double.clone(), options) }
    }

    /// Looks a path up from the root.
    pub async fn find(&self, path: &str) -> Result<Entry, Error> {
        self.find_as(path, SELF).await
    }

    pub async fn find_as(&self, path: &str, caller: Caller) -> Result<Entry, Error> {
        let attr = self.fs.getattr(NodeId::ROOT, Caller::default()).await?;
        let mut entry = Entry { node: NodeId::ROOT, generation: 0, attr };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            entry = self.fs.lookup(entry.node, name.as_bytes(), caller).await?;
        }
        Ok(entry)
    }

    /// The parent of a path, and its last name.
    async fn parent<'a>(&self, path: &'a str) -> Result<(NodeId, &'a [u8]), Error> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.find(parent).await?.node, name.as_bytes()))
    }

    /// Opens as open(2) does: a look-up, then CREATE or OPEN, and once more after `ESTALE`.
    pub async fn open(&self, path: &str, flags: OFlags) -> Result<HandleId, Error> {
        self.open_as(path, flags, SELF).await.map(|opened| opened.handle)
    }

    pub async fn open_as(
        &self,
        path: &str,
        flags: OFlags,
        caller: Caller,
    ) -> Result<Opened, Error> {
        for last in [false, true] {
            let found = self.find_as(path, caller).await;
            if matches!(found, Err(Error::NotFound)) && flags.contains(OFlags::CREATE) {
                let (parent, name) = self.parent(path).await?;
                let (_, handle) = self.fs.create(parent, name, flags, caller).await?;
                return Ok(Opened { handle, way: fs::Way::Direct });
            }
            match self.fs.open(found?.node, flags, caller).await {
                Err(Error::Stale) if !last => {}
                opened => return opened,
            }
        }
        unreachable!("the second try returns")
    }

    pub async fn write(
        &self,
        handle: HandleId,
        offset: u64,
        content: &[u8],
        flags: OFlags,
    ) -> Result<usize, Error> {
        self.fs.write(WriteAt { handle, offset, content, flags }).await
    }

    pub async fn read(&self, handle: HandleId, offset: u64, size: usize) -> Result<Vec<u8>, Error> {
        let read = ReadAt { handle, offset, size, nonblocking: false, fills: false };
        self.fs.read(read).await.map(|bytes| bytes.to_vec())
    }

    /// `echo CONTENT >> PATH`.
    pub async fn echo(&self, path: &str, content: &[u8]) -> Result<(), Error> {
        let flags = APPEND | OFlags::CREATE;
        let handle = self.open(path, flags).await?;
        let written = self.write(handle, 0, content, flags).await;
        self.fs.release(handle);
        assert_eq!(written?, content.len());
        Ok(())
    }

    /// `cat PATH`.
    pub async fn cat(&self, path: &str) -> Result<Vec<u8>, Error> {
        let handle = self.open(path, OFlags::RDONLY).await?;
        let mut content = Vec::new();
        loop {
            let piece = self.read(handle, content.len() as u64, 131_072).await?;
            if piece.is_empty() {
                self.fs.release(handle);
                return Ok(content);
            }
            content.extend(piece);
        }
    }

    pub async fn stat(&self, path: &str) -> Result<Attr, Error> {
        self.fs.getattr(self.find(path).await?.node, Caller::default()).await
    }

    /// Names in a directory, but for the dots.
    pub async fn ls(&self, path: &str) -> Vec<String> {
        let handle = self.fs.opendir(self.find(path).await.unwrap().node).await.unwrap();
        let mut names = Vec::new();
        let take = |entry: &fs::DirEntry| {
            names.push(String::from_utf8_lossy(&entry.name).into_owned());
            true
        };
        self.fs.readdir(handle, 2, take).unwrap();
        self.fs.release(handle);
        names
    }

    pub async fn mkdir(&self, path: &str) -> Result<Entry, Error> {
        let (parent, name) = self.parent(path).await?;
        self.fs.mkdir(parent, name).await
    }

    pub async fn rmdir(&self, path: &str) -> Result<(), Error> {
        let (parent, name) = self.parent(path).await?;
        self.fs.rmdir(parent, name).await
    }

    pub async fn unlink(&self, path: &str) -> Result<(), Error> {
        let (parent, name) = self.parent(path).await?;
        self.fs.unlink(parent, name).await
    }

    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.fs.rename(self.parent(from).await?, self.parent(to).await?).await
    }
}

pub fn journal(name: &str) -> Journal {
    Journal::new(name).unwrap()
}

/// The errno of what must fail.
pub fn errno<T>(outcome: Result<T, Error>) -> Errno {
    match outcome {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.errno(),
    }
}
