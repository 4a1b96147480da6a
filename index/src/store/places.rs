//! Who may fetch large objects in parts: that takes memory, so that not everybody may.

use super::parts::{PART_LEN, PARTS_AT_ONCE, Parts};
use super::{Content, Store, StoreError};
use protocol::{Fragment, Offset};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Bytes that the parts of one reader take: what one place stands for.
pub const PLACE_LEN: u64 = PART_LEN * PARTS_AT_ONCE as u64;

/// The places of one process. Clones share them.
#[derive(Debug, Clone)]
pub struct Places(Arc<Semaphore>);

/// What is known of who opens a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Nothing: it may want a few bytes.
    Any,
    /// It reads the fragment before, and is near its end; or it reads all.
    All,
}

impl Places {
    /// So many readers may fetch in parts at a time; the others fetch in one piece.
    pub fn new(count: usize) -> Self {
        Places(Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))))
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
        store.open_in_parts(fragment, from, self.take(wish)).await
    }
}
