//! Who may fetch large objects in parts: that takes memory, so that not everybody may.

use crate::limits::PARTED_FLOWS;
use index::store::{Content, Place, Store, StoreError};
use protocol::{Fragment, Offset};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The places of one client. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Semaphore>);

impl Places {
    pub fn new() -> Self {
        Places(Arc::new(Semaphore::new(PARTED_FLOWS)))
    }

    /// A place, if one is free.
    pub fn take(&self) -> Option<Place> {
        let permit = self.0.clone().try_acquire_owned().ok()?;
        Some(Box::new(permit))
    }

    /// A stored fragment from `from` on, in parts if a place is free.
    pub async fn open(
        &self,
        store: &Store,
        fragment: &Fragment,
        from: Offset,
    ) -> Result<Content, StoreError> {
        match self.take() {
            Some(place) => store.open_in_parts(fragment, from, place).await,
            None => store.open(fragment, from).await,
        }
    }
}
