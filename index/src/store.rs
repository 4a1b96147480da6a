//! A fragment store of a journal's spec: listing, reading, putting and deleting fragments.
//!
//! The store's URL is its identity: the same bucket with other arguments is another store
//! (gazette-spec 3.8). Objects are named by their content, so one that exists is the right one.

mod content;
mod error;
mod pack;
mod url;

pub use content::Content;
pub use error::StoreError;
pub use pack::{Digest, Source, digest};

use self::url::{Scheme, StoreUrl};
use crate::disk::Disk;
use crate::file_store::FileStore;
use crate::name;
use error::Doing;
use futures::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt};
use protocol::{Codec, Fragment, Journal, Offset};
use std::sync::Arc;
use std::time::Duration;

/// One fragment store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    url: Arc<StoreUrl>,
    objects: Arc<dyn ObjectStore>,
    /// The same store once more where it is one of files, for what only those need.
    files: Option<FileStore>,
}

impl Store {
    /// The store that a spec names. `files` is the root of `file` stores (`--file-root`).
    pub fn new(url: &str, files: Arc<dyn Disk>) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        match url.scheme {
            Scheme::File => {
                let files = FileStore::new(files, url.prefix.trim_matches('/'));
                let objects = Arc::new(files.clone());
                Ok(Store { url: Arc::new(url), objects, files: Some(files) })
            }
            Scheme::S3 | Scheme::Gs | Scheme::Azure | Scheme::AzureAd => {
                Err(StoreError::NotBuiltIn { scheme: url.scheme.name(), url: url.text })
            }
        }
    }

    /// A store of the URL's prefix and arguments whose objects lie in `objects`, whatever the
    /// scheme: for stores in memory.
    pub fn over(url: &str, objects: Arc<dyn ObjectStore>) -> Result<Self, StoreError> {
        Ok(Store { url: Arc::new(StoreUrl::parse(url)?), objects, files: None })
    }

    /// The URL exactly as in the spec.
    pub fn url(&self) -> &str {
        &self.url.text
    }

    /// Makes the store's own directory, where it is one of files. Others have theirs made by who
    /// runs them, and so does Gazette for files.
    pub async fn create_root(&self) -> Result<(), StoreError> {
        match &self.files {
            Some(files) => {
                files.create_root().await.map_err(|error| self.failed(Doing::Create, "", error))
            }
            None => Ok(()),
        }
    }

    /// The fragments of `journal`, in the order of their keys. Objects that are no fragments are
    /// skipped (gazette-spec 3.1).
    pub async fn list(&self, journal: &Journal) -> Result<Vec<Fragment>, StoreError> {
        let prefix = self.key_text(&format!("{journal}/"));
        // The rewritten prefix need not end where a directory does.
        let dir = prefix.rfind('/').map_or("", |end| &prefix[..end]);
        let dir = self.key_of(dir)?;
        let listed = self.objects.list(Some(&dir)).try_collect::<Vec<ObjectMeta>>().await;
        let mut objects = listed.map_err(|error| self.failed(Doing::List, &prefix, error))?;
        objects.sort_by(|a, b| a.location.cmp(&b.location));
        let found = objects.iter().filter_map(|object| {
            let below = object.location.as_ref().strip_prefix(&prefix)?;
            self.listed(journal, below, object)
        });
        Ok(found.collect())
    }

    fn listed(&self, journal: &Journal, below: &str, object: &ObjectMeta) -> Option<Fragment> {
        // At least 1: 0 would say that the fragment is not in a store.
        let mod_time = object.last_modified.timestamp().max(1);
        let key = &object.location;
        match name::parse(below) {
            Ok(named) => {
                let store = self.url.text.clone();
                let fragment = named.into_fragment(journal.clone(), store, mod_time);
                // A fragment says where it lies by its fields alone. One that lies elsewhere (an
                // offset without its padding, say) could be listed, and never read.
                let is_there =
                    name::paths(&fragment).any(|path| self.key_text(&path) == key.as_ref());
                if !is_there {
                    tracing::debug!(%key, "skipping an object whose name is not a fragment's own");
                }
                is_there.then_some(fragment)
            }
            Err(error) => {
                tracing::debug!(%key, %error, "skipping an object that is no fragment");
                None
            }
        }
    }

    /// The fragment's bytes from `from` to its end, decompressed and checked: a stream that does
    /// not hold exactly the span, or whose sum is wrong, ends in an error before its last chunk.
    /// From the middle of an uncompressed fragment only the length is checked.
    ///
    /// Panics when `from` is not within the fragment or at its end.
    pub async fn open(&self, fragment: &Fragment, from: Offset) -> Result<Content, StoreError> {
        let span = fragment.span;
        assert!(span.begin() <= from && from <= span.end(), "{from} is not within {span}");
        if from == span.end() {
            return Ok(Content::nothing());
        }
        // Compressed bytes are read from the begin, and skipped when decompressed.
        let skipped = if fragment.codec == Codec::None { from.since(span.begin()) } else { 0 };
        for path in name::paths(fragment) {
            let key = self.key_of(&self.key_text(&path))?;
            if let Some(object) = self.get(fragment, &key, skipped).await? {
                let start = span.begin().plus(skipped);
                return Ok(Content::new(self.clone(), fragment.clone(), object, start, from));
            }
        }
        Err(StoreError::Missing { store: self.url.text.clone(), name: name::path(fragment) })
    }

    /// The object without its first `skipped` bytes; `None` when there is none.
    async fn get(
        &self,
        fragment: &Fragment,
        key: &Key,
        skipped: u64,
    ) -> Result<Option<GetResult>, StoreError> {
        let range = (skipped > 0).then_some(GetRange::Offset(skipped));
        match self.objects.get_opts(key, GetOptions::new().with_range(range)).await {
            Ok(object) => {
                check_len(fragment, object.meta.size)?;
                Ok(Some(object))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => {
                // A damaged object may end before the range begins, which stores tell apart from
                // other failures in their own ways.
                if let Ok(meta) = self.objects.head(key).await {
                    check_len(fragment, meta.size)?;
                }
                Err(self.failed(Doing::Read, key.as_ref(), error))
            }
        }
    }

    /// Reads all of a stored fragment and checks it, keeping nothing.
    pub async fn verify(&self, fragment: &Fragment) -> Result<(), StoreError> {
        let mut content = self.open(fragment, fragment.span.begin()).await?;
        while content.try_next().await?.is_some() {}
        Ok(())
    }

    /// Puts the bytes of a local fragment, which `source` has, and answers it as stored. When this
    /// returns they are durable, and were those that the fragment's sum names.
    ///
    /// An object of the fragment's name is success: it has the same content.
    pub async fn put(
        &self,
        fragment: &Fragment,
        source: Arc<dyn Source>,
    ) -> Result<Fragment, StoreError> {
        assert!(!fragment.span.is_empty(), "an empty fragment is not stored");
        let path = name::path(fragment);
        let key = self.key_of(&self.key_text(&path))?;
        let meta = match self.find(fragment, &key).await? {
            Some(meta) => meta,
            None => {
                pack::upload(self, fragment, &key, source).await?;
                let put = self.objects.head(&key).await;
                put.map_err(|error| self.failed(Doing::Put, key.as_ref(), error))?
            }
        };
        let mod_time = meta.last_modified.timestamp().max(1);
        Ok(Fragment { backing_store: self.url.text.clone(), mod_time, ..fragment.clone() })
    }

    /// The object that holds the fragment already, made durable.
    async fn find(&self, fragment: &Fragment, key: &Key) -> Result<Option<ObjectMeta>, StoreError> {
        let failed = |error| self.failed(Doing::Put, key.as_ref(), error);
        let meta = match self.objects.head(key).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Gazette syncs no files: a power cut may leave one short, and then it is put again.
        if check_len(fragment, meta.size).is_err() {
            return Ok(None);
        }
        if let Some(files) = &self.files {
            files.settle(key).await.map_err(failed)?;
        }
        Ok(Some(meta))
    }

    /// Deletes a stored fragment; one that is gone already is success.
    pub async fn delete(&self, fragment: &Fragment) -> Result<(), StoreError> {
        for path in name::paths(fragment) {
            let key = self.key_of(&self.key_text(&path))?;
            match self.objects.delete(&key).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(self.failed(Doing::Delete, key.as_ref(), error)),
            }
        }
        Ok(())
    }

    /// A URL by which the fragment's object can be fetched without this process for `ttl`. That of
    /// a file store leaves out the file root and holds for ever, as Gazette's does.
    pub fn signed_url(&self, fragment: &Fragment, _ttl: Duration) -> Result<String, StoreError> {
        let path = name::path(fragment);
        match self.url.scheme {
            Scheme::File => Ok(self.url.file_url(&path)),
            Scheme::S3 | Scheme::Gs | Scheme::Azure | Scheme::AzureAd => {
                let (url, scheme) = (self.url.text.clone(), self.url.scheme.name());
                Err(StoreError::NotBuiltIn { url, scheme })
            }
        }
    }

    /// The key of an object whose path below the store is `path`, as text.
    fn key_text(&self, path: &str) -> String {
        self.url.key_prefix().to_owned() + &self.url.rewrite(path)
    }

    fn key_of(&self, text: &str) -> Result<Key, StoreError> {
        Key::parse(text).map_err(|source| StoreError::Key {
            store: self.url.text.clone(),
            key: text.to_owned(),
            source,
        })
    }

    fn failed(&self, doing: Doing, key: &str, source: object_store::Error) -> StoreError {
        StoreError::Failed {
            store: self.url.text.clone(),
            doing,
            key: key.to_owned(),
            source: Box::new(source),
        }
    }
}

/// What an object's size alone says about it.
fn check_len(fragment: &Fragment, size: u64) -> Result<(), StoreError> {
    let span = fragment.span;
    let is_right = if fragment.codec == Codec::None { size == span.len() } else { size > 0 };
    if is_right {
        return Ok(());
    }
    Err(StoreError::Damaged {
        name: name::path(fragment),
        offset: span.begin().plus(size.min(span.len())),
        reason: format!("the object has {size} bytes"),
    })
}
