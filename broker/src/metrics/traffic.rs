//! What one journal took and gave, counted where it happens.

use protocol::{Codec, Fragment, Offset};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of one journal since this process serves it. They only grow.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    appended: AtomicU64,
    read: AtomicU64,
    /// By the codecs of [`Codec::ALL`]. Few journals of a million are read from their stores.
    fetched: OnceLock<Box<[Fetched; Codec::ALL.len()]>>,
}

/// What was fetched of a journal's stored fragments of one codec, by this process.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    opened: AtomicU64,
    opened_len: AtomicU64,
    read: AtomicU64,
    skipped: AtomicU64,
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

    /// A fragment was opened, to be read from that offset on. A compressed one is decompressed
    /// from its begin.
    pub fn add_opened(&self, fragment: &Fragment, from: Offset) {
        let fetched = self.fetched(fragment.codec);
        fetched.opened.fetch_add(1, Ordering::Relaxed);
        fetched.opened_len.fetch_add(fragment.span.len(), Ordering::Relaxed);
        if fragment.codec != Codec::None {
            fetched.skipped.fetch_add(from.since(fragment.begin()), Ordering::Relaxed);
        }
    }

    /// Content of fragments of that codec was read.
    pub fn add_fetched(&self, codec: Codec, len: usize) {
        self.fetched(codec).read.fetch_add(len as u64, Ordering::Relaxed);
    }

    fn fetched(&self, codec: Codec) -> &Fetched {
        let at = Codec::ALL.iter().position(|known| *known == codec);
        &self.fetched.get_or_init(Box::default)[at.expect("all codecs are there")]
    }

    /// What was fetched, by codec; nothing where nothing was.
    pub fn all_fetched(&self) -> impl Iterator<Item = (Codec, &Fetched)> {
        let fetched = self.fetched.get().map(|all| all.iter()).into_iter().flatten();
        Codec::ALL.into_iter().zip(fetched).filter(|(_, fetched)| fetched.opened() > 0)
    }
}

impl Fetched {
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Bytes of journals in fragments that were opened.
    pub fn opened_len(&self) -> u64 {
        self.opened_len.load(Ordering::Relaxed)
    }

    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes that were decompressed only to reach what was asked for.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}
