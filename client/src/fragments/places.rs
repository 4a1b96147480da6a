//! Who may fetch large objects in parts: that takes memory, so that not everybody may.

use crate::limits::PARTED_FLOWS;
use index::store::{Content, Parts, Store, StoreError};
use protocol::{Fragment, Offset};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The places of one client. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<Semaphore>);

/// What is known of who opens a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: it may want a few bytes.
    Any,
    /// It reads the fragment before, and is near its end; or it reads all.
    All,
}

impl Places {
    pub fn new() -> Self {
        Places(Arc::new(Semaphore::new(PARTED_FLOWS)))
    }

    /// Parts for a reader, if a place is free.
    pub fn take(&self, wish: Wish) -> Option<Parts> {
        let permit = self.0.clone().try_acquire_owned().ok()?;
        Some(Parts { place: Box::new(permit), is_sequential: wish == Wish::All })
    }

    /// A stored fragment from `from` on, in parts if a place is free.
    pub async fn open(
        &self,
        store: &Store,
        fragment: &Fragment,
        from: Offset,
        wish: Wish,
    ) -> Result<Content, StoreError> {
        match self.take(wish) {
            Some(parts) => store.open_in_parts(fragment, from, parts).await,
            None => store.open(fragment, from).await,
        }
    }
}
