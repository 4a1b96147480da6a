//! URLs by which a fragment's object is fetched without its store's credentials.

use super::error::{Doing, StoreError};
use super::url::Scheme;
use super::{Kind, Store};
use crate::name;
use object_store::path::Path as Key;
use protocol::Fragment;
use reqwest::Method;
use std::time::Duration;

/// The longest time that a URL may hold: seven days, which is the most that S3 and Google sign for.
const TTL_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The shortest, so that one does not end before it is told.
const TTL_MIN: Duration = Duration::from_secs(1);

impl Store {
    /// A URL by which the fragment's object can be fetched without this process for `ttl`, within
    /// bounds. That of a file store leaves out the file root and holds for ever, as Gazette's does.
    ///
    /// Nothing is asked of the store, unless its credentials have run out or can't sign: a
    /// workload's identity has Google sign.
    pub async fn signed_url(
        &self,
        fragment: &Fragment,
        ttl: Duration,
    ) -> Result<String, StoreError> {
        let path = name::path(fragment);
        match &self.kind {
            Kind::Files(_) => Ok(self.url.file_url(&path)),
            Kind::Cloud(_) | Kind::Given => {
                self.sign(&self.key_of(&self.key_text(&path))?, ttl).await
            }
        }
    }

    /// A URL of the object `key`.
    pub(super) async fn sign(&self, key: &Key, ttl: Duration) -> Result<String, StoreError> {
        let unsigned = |detail: &str| StoreError::Unsigned {
            store: self.url.text.clone(),
            detail: detail.into(),
        };
        let signer = match &self.kind {
            Kind::Files(_) => return Ok(self.url.file_url(key.as_ref())),
            Kind::Cloud(signer) => signer,
            Kind::Given => return Err(unsigned("a store in memory has no URLs")),
        };
        // For Google object_store leaves the name as it is in the URL, and for Azure it signs the
        // escapes and not the name. Of the symbols that names have, `%` alone needs an escape.
        let is_escaped = key.as_ref().contains('%');
        if is_escaped && matches!(self.url.scheme, Scheme::Gs | Scheme::Azure | Scheme::AzureAd) {
            return Err(unsigned("its name has a %"));
        }
        let ttl = ttl.clamp(TTL_MIN, TTL_MAX);
        match signer.signed_url(Method::GET, key, ttl).await {
            Ok(url) => Ok(url.into()),
            Err(error) => match self.failed(Doing::Sign, key.as_ref(), error) {
                StoreError::Failed { detail, .. } => Err(unsigned(&detail)),
                other => Err(other),
            },
        }
    }
}
