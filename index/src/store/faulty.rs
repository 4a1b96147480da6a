//! A store that behaves as badly as a real one may: late, failing, and silent after it did what it
//! was asked. For tests of this crate and of others.

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::path::Path as Key;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// An operation of a store, as it is failed and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A put, or the begin of one in parts.
    Put,
    /// A read of an object or of what is known about it.
    Get,
    List,
    Delete,
}

/// How a store behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    #[default]
    Works,
    /// Answers 503 to everything.
    Down,
    /// Does the next so many puts and deletions, and answers 503 all the same.
    LosesReplies(u32),
}

/// Another store behind a bad line. Cheap to clone: all clones are one.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    manner: Manner,
    delay: Duration,
    asked: BTreeMap<Operation, u64>,
    /// The offsets of listings that did not begin at the first object.
    listed_behind: Vec<Key>,
}

impl FaultyStore {
    /// A store that works, so far.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        FaultyStore { inner, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the state panics")
    }

    pub fn set(&self, manner: Manner) {
        self.state().manner = manner;
    }

    /// How long each operation waits before anything happens.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// How often the store was asked for that, whatever came of it.
    pub fn asked(&self, operation: Operation) -> u64 {
        self.state().asked.get(&operation).copied().unwrap_or(0)
    }

    /// How often the store was asked for anything.
    pub fn asked_in_all(&self) -> u64 {
        self.state().asked.values().sum()
    }

    /// Where the listings began that did not list everything.
    pub fn listed_behind(&self) -> Vec<Key> {
        self.state().listed_behind.clone()
    }

    /// Counts the request, waits, and fails it if the store is down.
    async fn begin(&self, operation: Operation) -> Result<()> {
        let delay = {
            let mut state = self.state();
            *state.asked.entry(operation).or_default() += 1;
            state.delay
        };
        tokio::time::sleep(delay).await;
        match self.state().manner {
            Manner::Down => Err(unavailable()),
            Manner::Works | Manner::LosesReplies(_) => Ok(()),
        }
    }

    /// Loses the reply of what was done, while replies are lost.
    fn end<T>(&self, done: T) -> Result<T> {
        let mut state = self.state();
        match &mut state.manner {
            Manner::LosesReplies(left) if *left > 0 => {
                *left -= 1;
                Err(unavailable())
            }
            Manner::Works | Manner::Down | Manner::LosesReplies(_) => Ok(done),
        }
    }

    fn listing(
        &self,
        list: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (store, listed) = (self.clone(), list(&*self.inner));
        let begun = async move {
            match store.begin(Operation::List).await {
                Ok(()) => listed,
                Err(error) => futures::stream::iter([Err(error)]).boxed(),
            }
        };
        begun.flatten_stream().boxed()
    }
}

fn unavailable() -> Error {
    let source = "503 Service Unavailable: please reduce your request rate".into();
    Error::Generic { store: "faulty", source }
}

impl std::fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        key: &Key,
        body: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.begin(Operation::Put).await?;
        self.end(self.inner.put_opts(key, body, options).await?)
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.begin(Operation::Put).await?;
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        self.begin(Operation::Get).await?;
        self.inner.get_opts(key, options).await
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
                store.begin(Operation::Delete).await?;
                let one = futures::stream::iter([Ok(key)]).boxed();
                let deleted = store.inner.delete_stream(one).next().await;
                store.end(deleted.expect("each key is answered")?)
            }
        })
        .boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(|inner| inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.state().listed_behind.push(offset.clone());
        self.listing(|inner| inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.begin(Operation::List).await?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.begin(Operation::Put).await?;
        self.inner.copy_opts(from, to, options).await
    }
}
