//! The part of a kernel between a program and the file system: names are looked up before anything
//! is done to them, descriptors have flags, and lent mirrors are read without asking.

use crate::world::{SELF, World};
use client::{Append, Journals};
use fs::model::{How, Op, Outcome, SLOTS};
use fs::{Error, HandleId, NodeId, ReadAt, Seek, Way};
use rustix::fs::OFlags;
use rustix::io::pread;
use std::os::fd::AsFd;
use std::sync::Arc;

type Lent = Arc<dyn AsFd + Send + Sync>;

/// An open file of a program.
struct Open {
    handle: HandleId,
    node: NodeId,
    flags: OFlags,
    /// What the kernel reads itself.
    lent: Option<Lent>,
}

/// A mount, and the files that a program has open in it.
pub struct Kernel {
    world: World,
    open: [Option<Open>; SLOTS],
}

impl Kernel {
    pub fn new(world: World) -> Self {
        Kernel { world, open: Default::default() }
    }

    fn file(&self, slot: usize) -> &Open {
        self.open[slot].as_ref().expect("only open files are used")
    }

    /// Opens as open(2) does: a look-up, then CREATE or OPEN, and once more after `ESTALE`.
    async fn open(&mut self, slot: usize, name: &str, how: How) -> Result<Outcome, Error> {
        let flags = how.flags();
        let world = &self.world;
        for last in [false, true] {
            let found = world.find(name).await;
            if matches!(found, Err(Error::NotFound)) && how.create {
                let (parent, name) = name.rsplit_once('/').unwrap_or(("", name));
                let parent = world.find(parent).await?.node;
                let made = world.fs.create(parent, name.as_bytes(), flags, SELF).await?;
                let (node, handle) = (made.0.node, made.1);
                self.open[slot] = Some(Open { handle, node, flags, lent: None });
                return Ok(Outcome::Done);
            }
            let node = found?.node;
            if how.create && how.exclusive {
                return Err(Error::Exists);
            }
            match world.fs.open(node, flags, SELF).await {
                Err(Error::Stale) if !last => {}
                Err(error) => return Err(error),
                Ok(opened) => {
                    let lent = match opened.way {
                        Way::Passthrough { file, .. } => Some(file),
                        Way::Direct => None,
                    };
                    self.open[slot] = Some(Open { handle: opened.handle, node, flags, lent });
                    return Ok(Outcome::Done);
                }
            }
        }
        unreachable!("the second try returns")
    }

    async fn read(&self, slot: usize, offset: u64, size: usize) -> Result<Outcome, Error> {
        let file = self.file(slot);
        if let Some(lent) = &file.lent {
            let mut bytes = vec![0; size];
            let read = pread(lent.as_fd(), &mut bytes, offset).expect("a mirror is read");
            bytes.truncate(read);
            return Ok(Outcome::Bytes(bytes));
        }
        let read = ReadAt { handle: file.handle, offset, size, nonblocking: false, fills: false };
        Ok(Outcome::Bytes(self.world.fs.read(read).await?.to_vec()))
    }

    async fn list(&self, directory: &str) -> Result<Outcome, Error> {
        self.world.find(directory).await?;
        let mut names = self.world.ls(directory).await;
        names.sort();
        Ok(Outcome::Names(names))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<Outcome, Error> {
        let (parent, _) = to.rsplit_once('/').unwrap_or(("", to));
        self.world.find(parent).await?;
        self.world.find(from).await?;
        self.world.rename(from, to).await.map(|()| Outcome::Done)
    }

    async fn try_answer(&mut self, op: &Op) -> Result<Outcome, Error> {
        let fs = self.world.fs.clone();
        match op {
            Op::Open { slot, name, how, .. } => self.open(*slot, name, *how).await,
            Op::Close { slot, .. } => {
                let file = self.open[*slot].take().expect("only open files are used");
                fs.flush(file.handle).await?;
                fs.release(file.handle);
                Ok(Outcome::Done)
            }
            Op::Write { slot, at, content, .. } => {
                let file = self.file(*slot);
                let written = self.world.write(file.handle, *at, content, file.flags).await?;
                Ok(Outcome::Number(written as u64))
            }
            Op::Read { slot, at, len, .. } => self.read(*slot, *at, *len).await,
            Op::SeekData { slot, at, .. } => self.seek(*slot, *at, Seek::Data).await,
            Op::SeekHole { slot, at, .. } => self.seek(*slot, *at, Seek::Hole).await,
            Op::SetAppend { slot, append, .. } => {
                let file = self.open[*slot].as_mut().expect("only open files are used");
                file.flags.set(OFlags::APPEND, *append);
                Ok(Outcome::Done)
            }
            Op::Fsync { slot, .. } => {
                fs.fsync(self.file(*slot).handle).await.map(|()| Outcome::Done)
            }
            Op::Size { name, .. } => Ok(Outcome::Number(self.world.stat(name).await?.size)),
            Op::List { directory, .. } => self.list(directory).await,
            Op::Truncate { name, size, .. } => {
                let node = self.world.find(name).await?.node;
                fs.setattr(node, None, Some(*size)).await.map(|_| Outcome::Done)
            }
            Op::Rename { from, to, .. } => self.rename(from, to).await,
            Op::Unlink { name, .. } => {
                self.world.find(name).await?;
                self.world.unlink(name).await.map(|()| Outcome::Done)
            }
            Op::Mkdir { name, .. } => match self.world.find(name).await {
                Ok(_) => Err(Error::Exists),
                Err(_) => self.world.mkdir(name).await.map(|_| Outcome::Done),
            },
            Op::Rmdir { name, .. } => {
                self.world.find(name).await?;
                self.world.rmdir(name).await.map(|()| Outcome::Done)
            }
            Op::Elsewhere { name, content } => {
                let journal = crate::world::journal(&format!("test/{name}"));
                if self.world.double.bytes(&journal).is_none() {
                    self.world.double.create(&journal).await?;
                }
                let append = Append::new(journal, content.clone().into());
                self.world.double.append(append).await?;
                Ok(Outcome::Done)
            }
            Op::Restart { .. } => {
                *self = Kernel::new(self.world.other());
                Ok(Outcome::Done)
            }
        }
    }

    async fn seek(&self, slot: usize, at: u64, seek: Seek) -> Result<Outcome, Error> {
        let at = i64::try_from(at).expect("files are small");
        self.world.fs.seek(self.file(slot).node, at, seek).await.map(Outcome::Number)
    }
}

/// Does it on the mount that it names.
pub async fn answer(mounts: &mut [Kernel], op: &Op) -> Outcome {
    let answer = mounts[op.mount()].try_answer(op).await;
    answer.unwrap_or_else(|error| Outcome::Failed(error.errno()))
}
