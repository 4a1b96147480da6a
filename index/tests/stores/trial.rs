//! One store on trial: how it is reached rightly and wrongly, and short ways to fill it.

use bytes::Bytes;
use futures::future::BoxFuture;
use index::store::{Source, Store, digest};
use protocol::{Codec, Fragment, Journal, LabelSet, Offset, Span};
use std::io;
use std::sync::Arc;

/// Fetches a URL with a client that knows nothing of stores.
pub type Fetch = dyn Fn(String) -> BoxFuture<'static, Result<Bytes, String>> + Send + Sync;

/// A store, and what it can do.
pub struct Trial {
    pub store: Store,
    /// Opens the same place by a URL with other arguments.
    pub open: Box<dyn Fn(&str) -> Store + Send + Sync>,
    /// None where the store has no URLs.
    pub fetch: Option<Box<Fetch>>,
    /// Whether names with a `%` have URLs, as all others do.
    pub signs_percent: bool,
    /// Whether a URL that was changed is refused.
    pub checks_signatures: bool,
    pub keeps_registers: bool,
    /// Whether long fragments can go up in parts.
    pub takes_parts: bool,
    pub wrong: Vec<Wrong>,
}

/// The store as it is reached by mistake.
pub struct Wrong {
    pub store: Store,
    /// What the error says.
    pub says: String,
}

impl Trial {
    pub fn with_arguments(&self, arguments: &str) -> Store {
        (self.open)(arguments)
    }
}

pub fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

/// The content of a fragment, from the offset on at which it begins.
#[derive(Debug)]
pub struct Content(pub Bytes);

/// `Content` at an offset.
#[derive(Debug)]
struct Placed {
    begin: Offset,
    content: Bytes,
}

impl Source for Content {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        Placed { begin: Offset::ZERO, content: self.0.clone() }.read_at(offset, buf)
    }
}

impl Source for Placed {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(offset.since(self.begin)).map_err(io::Error::other)?;
        let len = buf.len().min(self.content.len() - at);
        buf[..len].copy_from_slice(&self.content[at..at + len]);
        Ok(len)
    }
}

/// Bytes that no codec makes shorter, each time others.
pub fn random(len: usize) -> Bytes {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SEED: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
    let mut state = SEED.fetch_add(0x1234_5679, Ordering::Relaxed);
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(next).flatten().take(len).collect()
}

/// The fragment of `content`, not stored yet.
pub async fn local(
    journal: &Journal,
    begin: Offset,
    content: &Bytes,
    codec: Codec,
    postfix: &str,
) -> Fragment {
    let span = Span::at(begin, content.len() as u64);
    let source = Arc::new(Placed { begin, content: content.clone() });
    let sum = digest(span, source).await.expect("memory").sum;
    let fragment = Fragment::local(journal.clone(), span, sum, codec);
    Fragment { path_postfix: postfix.to_owned(), ..fragment }
}

pub async fn put(
    store: &Store,
    journal: &Journal,
    begin: Offset,
    content: &Bytes,
    codec: Codec,
    postfix: &str,
) -> Fragment {
    put_with(store, journal, begin, content, codec, postfix, &LabelSet::default()).await
}

pub async fn put_with(
    store: &Store,
    journal: &Journal,
    begin: Offset,
    content: &Bytes,
    codec: Codec,
    postfix: &str,
    registers: &LabelSet,
) -> Fragment {
    let fragment = local(journal, begin, content, codec, postfix).await;
    let source = Arc::new(Placed { begin, content: content.clone() });
    store.put_with(&fragment, registers, source).await.expect("it is put")
}
