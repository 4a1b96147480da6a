//! What one journal took and gave, counted where it happens.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one journal since this process serves it. They only grow.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    appended: AtomicU64,
    read: AtomicU64,
}

impl Traffic {
    /// Content that was committed.
    pub fn add_appended(&self, len: u64) {
        self.appended.fetch_add(len, Ordering::Relaxed);
    }

    /// Content that a client over the network read.
    pub fn add_read(&self, len: usize) {
        self.read.fetch_add(len as u64, Ordering::Relaxed);
    }

    pub fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}
