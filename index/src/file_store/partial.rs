//! An object on its way into a file store: written aside, then given its name.

use super::{Dir, fault, put_result};
use crate::blocking::off_thread;
use crate::disk::{DiskFile, Lock, Open};
use async_trait::async_trait;
use futures::FutureExt;
use object_store::path::Path as Key;
use object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// What names of unfinished objects begin with.
const PREFIX: &str = ".partial-";

/// Whether a file of this name is of an object that is not whole. Listings skip them.
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The file `.partial-NAME` beside the object's place, held alone while this is alive.
///
/// The lock keeps two processes that put the same content (replicas do) out of each other's file,
/// and lets a later one take over what a dead one left.
#[derive(Debug)]
pub(super) struct Partial {
    dir: Arc<Dir>,
    path: PathBuf,
    aside: PathBuf,
    file: Arc<dyn DiskFile>,
    _lock: Held,
}

struct Held(#[allow(dead_code, reason = "held, not used")] Lock);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

impl Partial {
    /// Makes the object's directories and its file aside, which is empty.
    pub fn begin(dir: Arc<Dir>, key: &Key) -> Result<Self> {
        let path = dir.path(key);
        let name =
            key.filename().ok_or_else(|| fault(&path, io::ErrorKind::InvalidInput.into()))?;
        let aside = path.with_file_name(format!("{PREFIX}{name}"));
        dir.check_root()?;
        let open = || {
            dir.disk.create_dir(parent(&path))?;
            dir.disk.open(&aside, Open::Any)?;
            let lock = dir.disk.lock(&aside)?;
            // Opened again: another upload may have renamed the first one before we had the lock.
            // If it did so just before, there is no file, which is no room for us either.
            let file = dir.disk.open(&aside, Open::Existing)?;
            file.set_len(0)?;
            Ok((file, Held(lock)))
        };
        let (file, lock) = open().map_err(|error| busy_or_fault(&aside, error))?;
        Ok(Partial { dir, path, aside, file, _lock: lock })
    }

    pub fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_at(bytes, at).map_err(|error| fault(&self.path, error))
    }

    /// Gives the object its name, durably. With `must_be_new` an object of that name is an error.
    pub fn complete(&self, must_be_new: bool) -> Result<()> {
        self.file.sync().map_err(|error| fault(&self.path, error))?;
        self.rename(must_be_new)?;
        self.dir.sync_up(parent(&self.path)).map_err(|error| fault(&self.path, error))
    }

    fn rename(&self, must_be_new: bool) -> Result<()> {
        let _naming = self.dir.naming.lock().unwrap_or_else(PoisonError::into_inner);
        if must_be_new {
            match self.dir.disk.stat(&self.path) {
                Ok(None) => {}
                Ok(Some(_)) => return Err(fault(&self.path, io::ErrorKind::AlreadyExists.into())),
                Err(error) => return Err(fault(&self.path, error)),
            }
        }
        let renamed = self.dir.disk.rename(&self.aside, &self.path);
        renamed.map_err(|error| fault(&self.path, error))
    }

    /// Removes the file aside. Where that fails too, it stays for the next upload of the name.
    pub fn abandon(&self) {
        if let Err(error) = self.dir.disk.remove(&self.aside) {
            tracing::debug!(path = %self.aside.display(), %error, "unfinished object stays");
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// A partial file that another upload holds, or has just completed, is no missing object.
fn busy_or_fault(aside: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::NotFound => {
            let reason = format!("{}: another upload of it is going on ({error})", aside.display());
            Error::Generic { store: "file", source: io::Error::new(error.kind(), reason).into() }
        }
        _ => fault(aside, error),
    }
}

/// An upload by parts, each written at its place as soon as it is polled.
#[derive(Debug)]
pub(super) struct Upload {
    partial: Arc<Partial>,
    /// Where the next part goes.
    at: u64,
    /// Bytes of the parts that were written: an object with a hole must not get its name.
    written: Arc<AtomicU64>,
}

impl Upload {
    pub fn new(partial: Partial) -> Self {
        Upload { partial: Arc::new(partial), at: 0, written: Arc::default() }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let (partial, written, mut at) = (self.partial.clone(), self.written.clone(), self.at);
        let len = part.content_length() as u64;
        self.at += len;
        off_thread(move || {
            for bytes in &part {
                partial.write(bytes, at)?;
                at += bytes.len() as u64;
            }
            written.fetch_add(len, Ordering::AcqRel);
            Ok(())
        })
        .boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        if self.written.load(Ordering::Acquire) != self.at {
            let reason = "a part of the object is not written";
            return Err(fault(&self.partial.path, io::Error::other(reason)));
        }
        let partial = self.partial.clone();
        off_thread(move || partial.complete(false)).await?;
        Ok(put_result())
    }

    async fn abort(&mut self) -> Result<()> {
        let partial = self.partial.clone();
        off_thread(move || partial.abandon()).await;
        Ok(())
    }
}
