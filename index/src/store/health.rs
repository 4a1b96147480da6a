//! Whether a store does what fragments need of it (gazette-spec 1.11 and 2.7).

use super::Store;
use super::error::{Doing, StoreError};
use crate::cloud::http;
use futures::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutPayload};
use std::time::Duration;

/// The object that a check puts and leaves, and what it holds: Gazette's, so that brokers of both
/// kinds check one store without tripping over each other.
const PROBE: &str = ".test/health-check";
const PROBE_CONTENT: &[u8] = b"health-check\n";

/// The object that a check of deletion puts and deletes, and what it holds.
const DELETE_PROBE: &str = ".gazette-delete-probe";
const DELETE_PROBE_CONTENT: &[u8] = b"gazette-delete-probe\n";

/// For how long the probe's URL is signed: as long as a check may take.
const URL_TTL: Duration = Duration::from_secs(60);

/// Whether an object is what a check of Courant or of Gazette has left, by its path below the
/// store.
pub(super) fn is_probe(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path == PROBE || name == DELETE_PROBE
}

impl Store {
    /// Puts a probe, reads it back, finds it in a listing, and fetches it by a signed URL where the
    /// store's URLs are of the web. The probe stays: to delete it takes a permission that
    /// persisting does not.
    ///
    /// A URL that can't be signed is no fault of the store: readers ask the broker then.
    pub async fn check(&self) -> Result<(), StoreError> {
        let key = self.probe_key(PROBE)?;
        self.put_probe(&key, PROBE_CONTENT).await?;
        let read = async { self.objects.get(&key).await?.bytes().await };
        let read = read.await.map_err(|error| self.failed(Doing::Read, key.as_ref(), error))?;
        if read != PROBE_CONTENT {
            return Err(self.unhealthy(format!("{key} was put and reads as something else")));
        }
        self.find_probe(&key).await?;
        match self.sign(&key, URL_TTL).await {
            Ok(url) if url.starts_with("http") => self.fetch_probe(&key, &url).await,
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::info!(store = self.url(), %error, "readers have to ask the broker");
                Ok(())
            }
        }
    }

    /// Puts a probe below `prefix` (empty, or ending in a slash) and deletes it.
    pub async fn check_delete(&self, prefix: &str) -> Result<(), StoreError> {
        let key = self.probe_key(&format!("{prefix}{DELETE_PROBE}"))?;
        self.put_probe(&key, DELETE_PROBE_CONTENT).await?;
        self.delete_key(&key).await
    }

    fn probe_key(&self, path: &str) -> Result<Key, StoreError> {
        self.key_of(&format!("{}{path}", self.url.key_prefix()))
    }

    async fn put_probe(&self, key: &Key, content: &'static [u8]) -> Result<(), StoreError> {
        let put = self.objects.put(key, PutPayload::from_static(content)).await;
        put.map(|_| ()).map_err(|error| self.failed(Doing::Put, key.as_ref(), error))
    }

    async fn find_probe(&self, key: &Key) -> Result<(), StoreError> {
        let dir = self.probe_key(".test")?;
        let found = self.objects.list(Some(&dir)).try_collect::<Vec<_>>().await;
        let found = found.map_err(|error| self.failed(Doing::List, dir.as_ref(), error))?;
        if found.iter().any(|object| object.location == *key) {
            return Ok(());
        }
        Err(self.unhealthy(format!("{key} was put and is not listed")))
    }

    async fn fetch_probe(&self, key: &Key, url: &str) -> Result<(), StoreError> {
        match http::fetch(url, PROBE_CONTENT.len()).await {
            Ok(content) if content == PROBE_CONTENT => Ok(()),
            Ok(_) => Err(self.unhealthy(format!("the signed URL of {key} has other content"))),
            Err(error) => Err(self.unhealthy(format!("the signed URL of {key}: {error}"))),
        }
    }

    fn unhealthy(&self, detail: String) -> StoreError {
        StoreError::Unhealthy { store: self.url.text.clone(), detail }
    }
}
