//! A fragment store of a journal's spec: listing, reading, putting and deleting fragments.
//!
//! The store's URL is its identity: the same bucket with other arguments is another store
//! (gazette-spec 3.8). Objects are named by their content, so one that exists is the right one.

mod content;
mod error;
mod failure;
pub mod faulty;
mod health;
mod list;
mod pack;
mod parts;
mod places;
mod registers;
mod sign;
mod survey;
pub(crate) mod url;

pub use content::Content;
pub use error::{Doing, StoreError};
pub use pack::{Digest, Source, digest};
pub use parts::{PART_LEN, PARTS_AT_ONCE, Parts, Pieces};
pub use places::{PLACE_LEN, Places, Wish};
pub use survey::Object;

use self::url::{Scheme, StoreUrl};
use crate::cloud::{self, Surroundings};
use crate::disk::Disk;
use crate::file_store::FileStore;
use crate::name;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::signer::Signer;
use object_store::{
    Attributes, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt,
};
use protocol::{Codec, Fragment, LabelSet, Offset};
use std::sync::Arc;

/// One fragment store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    url: Arc<StoreUrl>,
    objects: Arc<dyn ObjectStore>,
    /// The same store once more, for what only its kind has.
    kind: Kind,
    /// What each object is put with.
    attributes: Attributes,
}

/// What a store is, beside a place of objects.
#[derive(Debug, Clone)]
enum Kind {
    Files(FileStore),
    Cloud(Arc<dyn Signer>),
    /// Handed in, such as one in memory.
    Given,
}

impl Store {
    /// The store that a spec names. `files` is the root of `file` stores (`--file-root`); the
    /// credentials of others are found as their clouds have it, in the environment of the process.
    pub fn new(url: &str, files: Arc<dyn Disk>) -> Result<Self, StoreError> {
        Store::within(url, files, &Surroundings::of_process())
    }

    /// As [`new`](Self::new), with credentials from those surroundings.
    pub fn within(
        url: &str,
        files: Arc<dyn Disk>,
        around: &Surroundings,
    ) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(url)?;
        match url.scheme {
            Scheme::File => {
                let files = FileStore::new(files, url.prefix.trim_matches('/'));
                let objects = Arc::new(files.clone());
                let kind = Kind::Files(files);
                Ok(Store { url: Arc::new(url), objects, kind, attributes: Attributes::new() })
            }
            Scheme::S3 | Scheme::Gs | Scheme::Azure | Scheme::AzureAd => {
                let cloud::Cloud { objects, signer, attributes } = cloud::open(&url, around)?;
                Ok(Store { url: Arc::new(url), objects, kind: Kind::Cloud(signer), attributes })
            }
        }
    }

    /// A store of the URL's prefix and arguments whose objects lie in `objects`, whatever the
    /// scheme: for stores in memory.
    pub fn over(url: &str, objects: Arc<dyn ObjectStore>) -> Result<Self, StoreError> {
        let url = Arc::new(StoreUrl::parse(url)?);
        Ok(Store { url, objects, kind: Kind::Given, attributes: Attributes::new() })
    }

    /// The same store by way of `wrap`: how tests put delays and failures before any store.
    pub fn through(
        mut self,
        wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>,
    ) -> Self {
        self.objects = wrap(self.objects);
        self
    }

    /// The URL exactly as in the spec.
    pub fn url(&self) -> &str {
        &self.url.text
    }

    /// Makes the store's own directory, where it is one of files. Others have theirs made by who
    /// runs them, and so does Gazette for files.
    pub async fn create_root(&self) -> Result<(), StoreError> {
        match &self.kind {
            Kind::Files(files) => {
                files.create_root().await.map_err(|error| self.failed(Doing::Create, "", error))
            }
            Kind::Cloud(_) | Kind::Given => Ok(()),
        }
    }

    /// The fragment's bytes from `from` to its end, decompressed and checked: a stream that does
    /// not hold exactly the span, or whose sum is wrong, ends in an error before its last chunk.
    /// From the middle of an uncompressed fragment only the length is checked.
    ///
    /// Panics when `from` is not within the fragment or at its end.
    pub async fn open(&self, fragment: &Fragment, from: Offset) -> Result<Content, StoreError> {
        self.open_by(fragment, from, None).await
    }

    async fn open_by(
        &self,
        fragment: &Fragment,
        from: Offset,
        parts: Option<Parts>,
    ) -> Result<Content, StoreError> {
        let span = fragment.span;
        assert!(span.begin() <= from && from <= span.end(), "{from} is not within {span}");
        if from == span.end() {
            return Ok(Content::nothing());
        }
        // Compressed bytes are read from the begin, and skipped when decompressed.
        let skipped = if fragment.codec == Codec::None { from.since(span.begin()) } else { 0 };
        let range = match &parts {
            Some(_) => Some(GetRange::Bounded(skipped..skipped + parts::PART_LEN)),
            None => (skipped > 0).then_some(GetRange::Offset(skipped)),
        };
        for path in name::paths(fragment) {
            let key = self.key_of(&self.key_text(&path))?;
            if let Some(object) = self.get(fragment, &key, range.clone()).await? {
                let (start, size, got) =
                    (span.begin().plus(skipped), object.meta.size, object.range.end);
                let (store, failing) = (self.clone(), path.clone());
                let told = move |error| store.failed(Doing::Read, &failing, error);
                let fetched = object.into_stream().map_err(told);
                let fetched = match parts {
                    Some(parts) => self.parts(&key, fetched.boxed(), got..size, parts),
                    None => fetched.boxed(),
                };
                return Ok(Content::of_object(fragment.clone(), fetched, start, from));
            }
        }
        Err(StoreError::Missing { store: self.url.text.clone(), name: name::path(fragment) })
    }

    /// A range of the object, or all; `None` when there is none.
    async fn get(
        &self,
        fragment: &Fragment,
        key: &Key,
        range: Option<GetRange>,
    ) -> Result<Option<GetResult>, StoreError> {
        match self.objects.get_opts(key, GetOptions::new().with_range(range)).await {
            Ok(object) => {
                check_len(fragment, object.meta.size)?;
                Ok(Some(object))
            }
            Err(error) if failure::is_missing_object(&error) => Ok(None),
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
        self.put_with(fragment, &LabelSet::default(), source).await
    }

    /// As [`put`](Self::put), with the journal's registers beside the content where the store keeps
    /// such: see [`registers`](Self::registers).
    pub async fn put_with(
        &self,
        fragment: &Fragment,
        registers: &LabelSet,
        source: Arc<dyn Source>,
    ) -> Result<Fragment, StoreError> {
        assert!(!fragment.span.is_empty(), "an empty fragment is not stored");
        let path = name::path(fragment);
        let key = self.key_of(&self.key_text(&path))?;
        let meta = match self.find(fragment, &key).await? {
            Some(meta) => meta,
            None => {
                pack::upload(self, fragment, &key, registers, source).await?;
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
            // Not even whether the bucket is missing: a HEAD has no text. The put will tell.
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Gazette syncs no files: a power cut may leave one short, and then it is put again.
        if check_len(fragment, meta.size).is_err() {
            return Ok(None);
        }
        if let Kind::Files(files) = &self.kind {
            files.settle(key).await.map_err(failed)?;
        }
        Ok(Some(meta))
    }

    /// Deletes a stored fragment; one that is gone already is success.
    pub async fn delete(&self, fragment: &Fragment) -> Result<(), StoreError> {
        for path in name::paths(fragment) {
            let key = self.key_of(&self.key_text(&path))?;
            self.delete_key(&key).await?;
        }
        Ok(())
    }

    async fn delete_key(&self, key: &Key) -> Result<(), StoreError> {
        match self.objects.delete(key).await {
            Err(error) if !failure::is_missing_object(&error) => {
                Err(self.failed(Doing::Delete, key.as_ref(), error))
            }
            Ok(()) | Err(_) => Ok(()),
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
        failure::told(&self.url.text, doing, key, source)
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
