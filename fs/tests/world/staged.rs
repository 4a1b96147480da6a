//! A file system with a staging directory on a disk that can be stopped, and the next mount on it.

#![allow(dead_code, reason = "each test file uses a part")]

use super::World;
use client::disk::{Crash, Disk, ForgetfulDisk};
use fs::double::Double;
use fs::{Error, Filesystem, HandleId, Options, Staging};
use rustix::fs::OFlags;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// What may wait at once, in bytes, unless a test says otherwise.
pub const ROOM: u64 = 64 << 20;

pub struct Staged {
    pub world: World,
    pub disk: ForgetfulDisk,
    mounts: u8,
}

impl Staged {
    pub fn new() -> Self {
        Self::with(ROOM, |_| {})
    }

    pub fn with(room: u64, change: impl FnOnce(&mut Options)) -> Self {
        Self::over(Double::new(), room, change)
    }

    pub fn over(double: Double, room: u64, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new([1; 16], SystemTime::UNIX_EPOCH);
        options.prefix = "test/".to_owned();
        change(&mut options);
        let (double, disk) = (Arc::new(double), ForgetfulDisk::new());
        let staging = Staging::open(Arc::new(disk.clone()), room).unwrap();
        let fs = Filesystem::with_staging(double.clone(), options, staging);
        Staged { world: World { double, fs }, disk, mounts: 1 }
    }

    /// The next mount on the same directory, after a crash of this one, as it serves: what was left
    /// is taken up.
    pub async fn after(&self, crash: Crash) -> Staged {
        let disk = self.disk.crash(crash);
        let mut options = self.world.fs.options().clone();
        options.writer = [self.mounts + 1; 16];
        let double = self.world.double.clone();
        let staging = Staging::open(Arc::new(disk.clone()), ROOM).unwrap();
        let fs = Filesystem::with_staging(double.clone(), options, staging);
        fs.recover().await.unwrap();
        Staged { world: World { double, fs }, disk, mounts: self.mounts + 1 }
    }

    /// close(2) of the last descriptor, and what follows it.
    pub async fn close(&self, handle: HandleId) {
        if let Some(closing) = self.world.fs.release(handle) {
            closing.await.unwrap();
        }
    }

    /// Writes with the flags of the handle.
    pub async fn append(&self, handle: HandleId, content: &[u8]) -> Result<usize, Error> {
        self.world.write(handle, 0, content, super::APPEND).await
    }

    pub async fn open(&self, path: &str) -> HandleId {
        self.world.open(path, super::APPEND | OFlags::CREATE).await.unwrap()
    }

    /// All bytes of a journal; none where there is no journal.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.world.double.bytes(&super::journal(name)).unwrap_or_default()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// `.courant/status`.
    pub async fn status(&self) -> String {
        String::from_utf8(self.world.cat(".courant/status").await.unwrap()).unwrap()
    }

    /// Files in the staging directory, and those aside.
    pub fn files(&self) -> (usize, usize) {
        let count = |dir: &str| {
            let entries = self.disk.list(Path::new(dir)).unwrap();
            entries.iter().filter(|entry| entry.name.ends_with(".draft")).count()
        };
        (count(""), count("aside"))
    }
}
