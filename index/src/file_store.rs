//! A directory of a disk as an object store, laid out as Gazette lays out its `file://` stores.
//!
//! An object is there whole and durable, or not at all: it is written aside as `.partial-NAME`,
//! synced, renamed, and its directories are synced up to the disk's root. What a crash leaves aside
//! is taken over by the next upload of the same name. Directories below the store are made as they
//! are needed; the store's own is not, so that a file system that is not mounted is an error and
//! not an empty store. Tags, attributes and versions are not kept.

mod partial;
mod walk;

use crate::blocking::off_thread;
use crate::disk::{Disk, DiskFile, Entry, Open};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use object_store::path::Path as Key;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result,
};
pub use partial::is_unfinished;
use partial::{Partial, Upload};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Bytes of one read from a file.
const READ_LEN: u64 = 256 << 10;

/// A directory of objects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileStore {
    dir: Arc<Dir>,
}

/// The store's own directory is not there; its place in the file system.
#[derive(Debug, thiserror::Error)]
#[error("invalid file store directory {} (it must exist)", .0.display())]
pub(crate) struct MissingRoot(pub PathBuf);

/// The directory itself, for work on other threads.
#[derive(Debug)]
struct Dir {
    disk: Arc<dyn Disk>,
    /// The store's own directory, relative to the disk's root; empty when it is that.
    root: PathBuf,
    /// Taken from the look whether a name is free to the rename that takes it.
    naming: Mutex<()>,
}

impl FileStore {
    /// The store at `root`, a path relative to the root of `disk`.
    pub fn new(disk: Arc<dyn Disk>, root: impl Into<PathBuf>) -> Self {
        FileStore { dir: Arc::new(Dir { disk, root: root.into(), naming: Mutex::new(()) }) }
    }

    /// Makes the store's own directory, durably; one that exists is success.
    pub async fn create_root(&self) -> Result<()> {
        self.with_dir(|dir| {
            let made = dir.disk.create_dir(&dir.root).and_then(|()| dir.sync_up(&dir.root));
            made.map_err(|error| fault(&dir.root, error))
        })
        .await
    }

    /// Makes sure of an object that is there but may not be durable: another process may have
    /// died, or not cared, between its rename and the sync.
    pub async fn settle(&self, key: &Key) -> Result<()> {
        let key = key.clone();
        self.with_dir(move |dir| {
            let path = dir.path(&key);
            dir.settle(&path).map_err(|error| fault(&path, error))
        })
        .await
    }

    fn listed(
        &self,
        prefix: Option<&Key>,
        offset: Option<Key>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, prefix) = (self.clone(), prefix.cloned().unwrap_or_default());
        let walk = move |dir: &Dir| walk::below(dir, &prefix, offset.as_ref());
        let listed = async move { store.with_dir(walk).await };
        listed
            .map(|listed| match listed {
                Ok(objects) => stream::iter(objects).map(Ok).boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            })
            .flatten_stream()
            .boxed()
    }

    async fn with_dir<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Dir) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let dir = self.dir.clone();
        off_thread(move || work(&dir)).await
    }
}

impl Dir {
    /// Where the object is, relative to the disk's root. A `Key` has no `..` that could lead out.
    fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_ref())
    }

    /// Fails unless the store's own directory is there.
    fn check_root(&self) -> Result<()> {
        match self.disk.stat(&self.root) {
            Ok(Some(entry)) if entry.is_dir => Ok(()),
            Ok(Some(_)) => {
                let reason = "invalid file store directory (it is a file)";
                Err(fault(&self.root, io::Error::other(reason)))
            }
            Ok(None) => {
                let missing = MissingRoot(self.disk.place(&self.root));
                Err(Error::Generic { store: "file", source: missing.into() })
            }
            Err(error) => Err(fault(&self.root, error)),
        }
    }

    fn meta(&self, key: &Key) -> Result<ObjectMeta> {
        let path = self.path(key);
        match self.disk.stat(&path) {
            Ok(Some(entry)) if !entry.is_dir => Ok(object(key.clone(), &entry)),
            Ok(_) => Err(fault(&path, io::ErrorKind::NotFound.into())),
            Err(error) => Err(fault(&path, error)),
        }
    }

    fn settle(&self, path: &Path) -> io::Result<()> {
        self.disk.open(path, Open::Read)?.sync()?;
        self.sync_up(path.parent().unwrap_or(Path::new("")))
    }

    /// Syncs `dir` and the directories above it, up to the disk's root. All of them and not only
    /// those just made: one may be left unsynced by a crash.
    fn sync_up(&self, dir: &Path) -> io::Result<()> {
        dir.ancestors().try_for_each(|dir| self.disk.sync_dir(dir))
    }

    /// A missing object is success: what counts is that it is gone.
    fn remove(&self, key: &Key) -> Result<()> {
        let path = self.path(key);
        match self.disk.remove(&path) {
            Ok(()) => {
                let dir = path.parent().unwrap_or(Path::new(""));
                self.disk.sync_dir(dir).map_err(|error| fault(&path, error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(fault(&path, error)),
        }
    }
}

fn object(location: Key, entry: &Entry) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: entry.modified.into(),
        size: entry.len,
        e_tag: None,
        version: None,
    }
}

fn put_result() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Extensions::default() }
}

/// The store's error for a disk's, naming the path relative to the disk's root.
fn fault(path: &Path, error: io::Error) -> Error {
    let (kind, path) = (error.kind(), path.display().to_string());
    match kind {
        io::ErrorKind::NotFound => Error::NotFound { path, source: error.into() },
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: error.into() },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::PermissionDenied { path, source: error.into() }
        }
        _ => {
            let named = io::Error::new(kind, format!("{path}: {error}"));
            Error::Generic { store: "file", source: named.into() }
        }
    }
}

fn not_supported(what: &str) -> Error {
    Error::NotSupported { source: format!("a file store does not {what}").into() }
}

impl std::fmt::Display for FileStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileStore({})", self.dir.root.display())
    }
}

#[async_trait]
impl ObjectStore for FileStore {
    /// `PutMode::Create` is exact among the users of one `FileStore`. Of two processes that create
    /// one name at the same moment both may succeed, and the last one's content stays.
    async fn put_opts(
        &self,
        key: &Key,
        body: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let must_be_new = match options.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return Err(not_supported("update by version")),
        };
        let (dir, key) = (self.dir.clone(), key.clone());
        off_thread(move || {
            let partial = Partial::begin(dir, &key)?;
            let mut at = 0;
            for bytes in &body {
                partial.write(bytes, at).inspect_err(|_| partial.abandon())?;
                at += bytes.len() as u64;
            }
            partial.complete(must_be_new).inspect_err(|_| partial.abandon())
        })
        .await?;
        Ok(put_result())
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (dir, key) = (self.dir.clone(), key.clone());
        let partial = off_thread(move || Partial::begin(dir, &key)).await?;
        Ok(Box::new(Upload::new(partial)))
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        if options.version.is_some() {
            return Err(not_supported("keep versions"));
        }
        let key = key.clone();
        self.with_dir(move |dir| {
            let path = dir.path(&key);
            let meta = dir.meta(&key)?;
            options.check_preconditions(&meta)?;
            let range = match &options.range {
                Some(range) => range
                    .as_range(meta.size)
                    .map_err(|error| fault(&path, io::Error::other(error)))?,
                None => 0..meta.size,
            };
            let body = if options.head {
                stream::empty().boxed()
            } else {
                let opened = dir.disk.open(&path, Open::Read);
                read(opened.map_err(|error| fault(&path, error))?, path, range.clone())
            };
            Ok(GetResult {
                payload: GetResultPayload::Stream(body),
                meta,
                range,
                attributes: Attributes::default(),
                extensions: Extensions::default(),
            })
        })
        .await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        let store = self.clone();
        keys.then(move |key| {
            let store = store.clone();
            async move {
                let key = key?;
                let gone = key.clone();
                store.with_dir(move |dir| dir.remove(&gone)).await.map(|()| key)
            }
        })
        .boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(prefix, None)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(prefix, Some(offset.clone()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        self.with_dir(move |dir| walk::within(dir, &prefix)).await
    }

    async fn copy_opts(&self, _from: &Key, _to: &Key, _options: CopyOptions) -> Result<()> {
        Err(not_supported("copy"))
    }
}

/// Reads `range` of the file in pieces, each when it is asked for.
fn read(
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    range: Range<u64>,
) -> BoxStream<'static, Result<Bytes>> {
    let pieces = stream::try_unfold((file, path, range), |(file, path, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        off_thread(move || {
            let len = READ_LEN.min(range.end - range.start);
            let mut piece = vec![0; usize::try_from(len).expect("a piece is small")];
            match crate::disk::read_exact_at(&*file, &mut piece, range.start) {
                Ok(()) => {
                    Ok(Some((Bytes::from(piece), (file, path, range.start + len..range.end))))
                }
                Err(error) => Err(fault(&path, error)),
            }
        })
        .await
    });
    pieces.boxed()
}

#[cfg(test)]
mod tests;
