//! The object store that all lives of the broker share: it outlives them, and behaves as badly as
//! one over a network may. Each request is a line of the trace.

use crate::chance::Chance;
use crate::disk::SimDisk;
use crate::trace::Trace;
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use index::file_store::FileStore;
use index::store::Store;
use index::store::faulty::{FaultyStore, Manner};
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// The URL of every journal's store.
const URL: &str = "file:///";

/// Objects that were put so lately may be missing in a listing that is stale.
const STALE: Duration = Duration::from_secs(4);

/// See the module. Clones are one store.
#[derive(Debug, Clone)]
pub struct SimStore {
    inner: FaultyStore,
    trace: Trace,
    chance: Chance,
    /// What it is made of, for clients who read it themselves.
    files: SimDisk,
    put: Arc<Mutex<BTreeMap<Key, Instant>>>,
    lists_stale: Arc<AtomicBool>,
    /// Whether the process that uses it is alive: what a dead one asks is not heard.
    is_alive: Arc<AtomicBool>,
}

impl SimStore {
    pub fn new(trace: &Trace, seed: u64) -> Self {
        // To the broker its own disk never fails: it is somebody else's.
        let files = SimDisk::new("files", trace);
        let store = FileStore::new(Arc::new(files.inner().clone()), "");
        SimStore {
            inner: FaultyStore::new(Arc::new(store)),
            files,
            trace: trace.clone(),
            chance: Chance::new(seed, "store"),
            put: Arc::default(),
            lists_stale: Arc::default(),
            is_alive: Arc::new(AtomicBool::new(true)),
        }
    }

    /// The same objects for the next process.
    #[must_use]
    pub fn for_next(&self) -> Self {
        self.is_alive.store(false, Ordering::Relaxed);
        SimStore { is_alive: Arc::new(AtomicBool::new(true)), ..self.clone() }
    }

    pub fn store(&self) -> Store {
        Store::over(URL, Arc::new(self.clone())).expect("a valid URL")
    }

    pub fn files(&self) -> &SimDisk {
        &self.files
    }

    pub fn behave(&self, manner: Manner, delay: Duration, lists_stale: bool) {
        self.trace.line(format_args!("store {manner:?} {delay:?} stale {lists_stale}"));
        self.inner.set(manner);
        self.inner.set_delay(delay);
        self.lists_stale.store(lists_stale, Ordering::Relaxed);
    }

    fn note<T>(&self, what: &str, key: impl std::fmt::Display, done: Result<T>) -> Result<T> {
        if !self.is_alive.load(Ordering::Relaxed) {
            return Err(dead());
        }
        match &done {
            Ok(_) => self.trace.line(format_args!("store {what} {key}")),
            Err(_) => self.trace.line(format_args!("store {what} {key} fails")),
        }
        done
    }

    /// Gives an object the time of its put: the files below have none.
    fn date(&self, meta: &mut ObjectMeta) {
        if let Some(at) = self.put_at(&meta.location) {
            let since = at.elapsed();
            let now = self.trace.clock().now();
            meta.last_modified = now.checked_sub(since).expect("a time of day").into();
        }
    }

    fn is_young(&self, meta: &ObjectMeta) -> bool {
        self.put_at(&meta.location).is_some_and(|at| at.elapsed() <= STALE)
    }

    fn put_at(&self, key: &Key) -> Option<Instant> {
        self.put.lock().expect("no holder panics").get(key).copied()
    }

    fn note_put(&self, key: &Key) {
        self.put.lock().expect("no holder panics").insert(key.clone(), Instant::now());
    }

    fn hear(&self) -> Result<()> {
        if self.is_alive.load(Ordering::Relaxed) { Ok(()) } else { Err(dead()) }
    }

    /// A listing as this store gives it: perhaps without what was put a moment ago.
    fn listed(
        &self,
        listing: BoxStream<'static, Result<ObjectMeta>>,
        of: String,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let is_stale = self.lists_stale.load(Ordering::Relaxed) && self.chance.one_in(2);
        self.trace.line(format_args!("store list {of} stale {is_stale}"));
        let store = self.clone();
        let kept = listing.filter_map(move |mut found| {
            if let Ok(meta) = &mut found {
                store.date(meta);
            }
            let is_missing = is_stale && found.as_ref().is_ok_and(|meta| store.is_young(meta));
            std::future::ready((!is_missing).then_some(found))
        });
        kept.boxed()
    }
}

fn dead() -> Error {
    Error::Generic { store: "sim", source: "the process is dead".into() }
}

impl std::fmt::Display for SimStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimStore")
    }
}

#[async_trait]
impl ObjectStore for SimStore {
    async fn put_opts(&self, key: &Key, body: PutPayload, how: PutOptions) -> Result<PutResult> {
        self.hear()?;
        let done = self.inner.put_opts(key, body, how).await;
        self.note_put(key);
        self.note("put", key, done)
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.hear()?;
        let done = self.inner.put_multipart_opts(key, how).await;
        self.note_put(key);
        self.note("put in parts", key, done)
    }

    async fn get_opts(&self, key: &Key, how: GetOptions) -> Result<GetResult> {
        self.hear()?;
        let mut done = self.inner.get_opts(key, how).await;
        done.iter_mut().for_each(|got| self.date(&mut got.meta));
        self.note("get", key, done)
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        let store = self.clone();
        let deleted = self.inner.delete_stream(keys);
        deleted.map(move |done| store.note("delete", "", done)).boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.inner.list(prefix), format!("{prefix:?}"))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let listing = self.inner.list_with_offset(prefix, offset);
        self.listed(listing, format!("{prefix:?} behind {offset}"))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.hear()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, how: CopyOptions) -> Result<()> {
        self.hear()?;
        let done = self.inner.copy_opts(from, to, how).await;
        self.note("copy", to, done)
    }
}
