//! Case T15: whatever bit of a stored object is wrong, and wherever it is cut, a read gives the
//! right bytes or an error that names the fragment; the object stays.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use futures::TryStreamExt;
use index::name;
use index::store::{Source, Store, StoreError, digest};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use protocol::{Codec, Fragment, Journal, Offset, Span};
use std::io;
use std::sync::Arc;

const CONTENT: &[u8] = b"a line of text, a line of text, a line of text, and another one\n";

struct Content;

impl Source for Content {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let at = usize::try_from(offset.get()).unwrap();
        let len = buf.len().min(CONTENT.len() - at);
        buf[..len].copy_from_slice(&CONTENT[at..at + len]);
        Ok(len)
    }
}

/// A store in memory with one fragment, where its object is, and what it holds.
async fn stored(codec: Codec) -> (Store, Fragment, Arc<InMemory>, Key, Bytes) {
    let objects = Arc::new(InMemory::new());
    let store = Store::over("s3://bucket/", objects.clone()).unwrap();
    let span = Span::at(Offset::ZERO, CONTENT.len() as u64);
    let sum = digest(span, Arc::new(Content)).await.unwrap().sum;
    let local = Fragment::local(Journal::new("a/journal").unwrap(), span, sum, codec);
    let fragment = store.put(&local, Arc::new(Content)).await.unwrap();
    let key = Key::parse(name::path(&fragment)).unwrap();
    let right = objects.get(&key).await.unwrap().bytes().await.unwrap();
    (store, fragment, objects, key, right)
}

async fn read(store: &Store, fragment: &Fragment) -> Result<Vec<u8>, StoreError> {
    let chunks = store.open(fragment, Offset::ZERO).await?.try_collect::<Vec<_>>().await?;
    Ok(chunks.concat())
}

#[tokio::test]
async fn a_wrong_bit_is_never_read() {
    for codec in Codec::ALL {
        let (store, fragment, objects, key, right) = stored(codec).await;
        let (mut named, mut harmless) = (0, 0);
        for bit in 0..right.len() * 8 {
            let mut wrong = right.to_vec();
            wrong[bit / 8] ^= 1 << (bit % 8);
            objects.put(&key, wrong.into()).await.unwrap();
            match read(&store, &fragment).await {
                // A bit that says nothing of the content, such as the time in a gzip header.
                Ok(content) => {
                    assert_eq!(content, CONTENT, "{codec}: bit {bit}");
                    harmless += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(matches!(error, StoreError::Damaged { .. }), "{codec}: {bit}: {text}");
                    assert!(text.contains(&name::path(&fragment)), "{codec}: {bit}: {text}");
                    named += 1;
                }
            }
        }
        assert!(named > harmless, "{codec}: {named} of {} bits are noticed", named + harmless);
        // Nobody deletes what is damaged: it may be all that is left.
        assert!(objects.head(&key).await.is_ok());
    }
}

#[tokio::test]
async fn a_cut_is_never_the_end() {
    for codec in Codec::ALL {
        let (store, fragment, objects, key, right) = stored(codec).await;
        for len in 0..right.len() {
            objects.put(&key, right.slice(..len).into()).await.unwrap();
            let error = read(&store, &fragment).await.expect_err("bytes are missing");
            assert!(matches!(error, StoreError::Damaged { .. }), "{codec}: cut at {len}: {error}");
        }
        // Case: bytes behind its end.
        let longer = [&right[..], b"more"].concat();
        objects.put(&key, longer.into()).await.unwrap();
        let read = read(&store, &fragment).await;
        assert!(matches!(read, Err(StoreError::Damaged { .. })), "{codec}: {read:?}");
    }
}
