//! The stores of clouds: which bucket a store's URL names, and with whose credentials it is asked.
//!
//! Each scheme has a room that says where its credentials come from, in the order in which they
//! are looked for. All share one way of speaking HTTP, with its limits ([`http`]).

mod azure;
mod gs;
pub(crate) mod http;
mod profile;
mod s3;
mod surroundings;

pub use http::http_client;
pub use surroundings::Surroundings;

use crate::store::StoreError;
use crate::store::url::{Scheme, StoreUrl};
use object_store::signer::Signer;
use object_store::{Attributes, ObjectStore};
use std::sync::Arc;

/// One bucket, opened. That says nothing yet about whether it is there.
#[derive(Debug, Clone)]
pub(crate) struct Cloud {
    pub objects: Arc<dyn ObjectStore>,
    pub signer: Arc<dyn Signer>,
    /// What the URL wants each object to be put with.
    pub attributes: Attributes,
}

impl Cloud {
    fn new<S: ObjectStore + Signer>(store: S) -> Self {
        let store = Arc::new(store);
        Cloud { objects: store.clone(), signer: store, attributes: Attributes::new() }
    }
}

/// Opens the bucket of a URL whose scheme is not `file`. Files of credentials are read here and not
/// later; nothing is asked of the cloud.
pub(crate) fn open(url: &StoreUrl, around: &Surroundings) -> Result<Cloud, StoreError> {
    let opened = match url.scheme {
        Scheme::S3 => s3::open(url, around),
        Scheme::Gs => gs::open(url, around),
        Scheme::Azure => azure::open(url, around),
        Scheme::AzureAd => azure::open_by_tenant(url, around),
        Scheme::File => Err("a file store is no cloud's".to_owned()),
    };
    opened.map_err(|reason| StoreError::Setup { store: url.text.clone(), reason })
}

#[cfg(test)]
mod tests;
