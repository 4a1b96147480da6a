//! Reading a large object in parts, several of which are fetched at once.
//!
//! A single answer of a cloud's store comes at a fraction of what its line carries. The first part
//! is read alone, so that who wants little fetches little, unless the reader is known to want all.

use super::error::{Doing, StoreError};
use super::{Content, Kind, Store};
use crate::blocking::joined;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange};
use protocol::{Codec, Fragment, Offset};
use std::ops::Range;
use tokio::task::JoinSet;

/// Bytes of a part: a request's latency is small beside its transfer.
pub const PART_LEN: u64 = 4 << 20;

/// Parts that are fetched at once. With `PART_LEN` it bounds the memory of one reader: 16 MiB.
pub const PARTS_AT_ONCE: usize = 4;

/// Held while the parts of a fragment may take memory: a permit of whoever bounds that.
pub type Place = Box<dyn Send + Sync>;

/// How a large object is read in parts.
pub struct Parts {
    pub place: Place,
    /// The reader comes from the fragment before: nothing is kept back.
    pub is_sequential: bool,
}

/// A part, in the pieces in which it came: nobody needs it in one.
pub type Pieces<E> = Result<Vec<Bytes>, E>;

impl Store {
    /// As [`open`](Self::open), where `parts` are given by ranged gets of parts of 4 MiB, of which
    /// four are under way: once the first is read and more is wanted, or from the begin, as `parts`
    /// says. Its place is given back with the content.
    ///
    /// A file is read as `open` does, and so is what a store may decompress on the way: that has no
    /// ranges.
    pub async fn open_in_parts(
        &self,
        fragment: &Fragment,
        from: Offset,
        parts: Option<Parts>,
    ) -> Result<Content, StoreError> {
        let has_ranges = fragment.codec != Codec::GzipOffload;
        let is_far = !matches!(self.kind, Kind::Files(_));
        self.open_by(fragment, from, parts.filter(|_| has_ranges && is_far)).await
    }

    /// The bytes of an object: those of its `first` part, and from one place to another.
    pub(super) fn parts(
        &self,
        key: &Key,
        first: BoxStream<'static, Result<Bytes, StoreError>>,
        range: Range<u64>,
        parts: Parts,
    ) -> BoxStream<'static, Result<Bytes, StoreError>> {
        let (store, key) = (self.clone(), key.clone());
        let part = move |part| {
            let (store, key) = (store.clone(), key.clone());
            async move {
                let got = store.part(&key, part).await;
                got.map_err(|error| store.failed(Doing::Read, key.as_ref(), error))
            }
        };
        parts.in_order(first, range, part)
    }

    async fn part(&self, key: &Key, part: Range<u64>) -> Pieces<object_store::Error> {
        let range = GetRange::Bounded(part);
        let got = self.objects.get_opts(key, GetOptions::new().with_range(Some(range))).await?;
        got.into_stream().try_collect().await
    }
}

impl Parts {
    /// The bytes of a `first` part whose answer is there, and those of a range, in order. Each part
    /// of the range is what `part` answers for it, on a task of its own: it comes in while those
    /// before it are read. Needs a tokio runtime around it.
    pub fn in_order<E, F>(
        self,
        first: BoxStream<'static, Result<Bytes, E>>,
        range: Range<u64>,
        part: impl Fn(Range<u64>) -> F + Send + 'static,
    ) -> BoxStream<'static, Result<Bytes, E>>
    where
        E: Send + 'static,
        F: Future<Output = Pieces<E>> + Send + 'static,
    {
        let Parts { place, is_sequential } = self;
        let (end, len) = (range.end, usize::try_from(PART_LEN).expect("a part is small"));
        let begins = range.step_by(len).map(move |begin| begin..(begin + PART_LEN).min(end));
        let rest = begins.map(move |range| {
            let _held = &place;
            by_task(part(range)).boxed()
        });
        let (alone, together) = match is_sequential {
            true => (None, Some(by_task(first.try_collect()).boxed())),
            false => (Some(first), None),
        };
        let parts = stream::iter(together.into_iter().chain(rest)).buffered(PARTS_AT_ONCE);
        let pieces = parts.map_ok(|pieces| stream::iter(pieces).map(Ok)).try_flatten();
        stream::iter(alone).flatten().chain(pieces).boxed()
    }
}

/// Runs on a task that ends with this future.
async fn by_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let mut task = JoinSet::new();
    task.spawn(work);
    joined(task.join_next().await.expect("it was spawned")).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Source, digest};
    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt};
    use protocol::Span;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LEN: usize = 14 << 20;

    /// Bytes that hardly compress.
    fn byte(at: usize) -> u8 {
        let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as u8
    }

    struct Numbers;

    impl Source for Numbers {
        fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
            let from = offset.get() as usize;
            (from..).zip(buf.iter_mut()).for_each(|(at, byte_of)| *byte_of = byte(at));
            Ok(buf.len())
        }
    }

    /// Tells when it is dropped.
    struct Guard(Arc<AtomicBool>);

    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn whole() -> Parts {
        Parts { place: Box::new(()), is_sequential: true }
    }

    async fn stored(objects: Arc<dyn ObjectStore>, codec: Codec) -> (Store, Fragment) {
        let store = Store::over("s3://bucket/", objects).unwrap();
        let span = Span::at(Offset::ZERO, LEN as u64);
        let sum = digest(span, Arc::new(Numbers)).await.unwrap().sum;
        let fragment = Fragment::local("a/log".parse().unwrap(), span, sum, codec);
        let fragment = store.put(&fragment, Arc::new(Numbers)).await.unwrap();
        (store, fragment)
    }

    #[tokio::test]
    async fn parts_are_the_whole() {
        for codec in [Codec::None, Codec::Snappy, Codec::GzipOffload] {
            let (store, fragment) = stored(Arc::new(InMemory::new()), codec).await;
            // Case: where the read begins, and whether it is to go on.
            let begins = [0, 1, PART_LEN as usize, (PART_LEN + 5) as usize, LEN - 1, LEN];
            let both = begins.map(|from| [(from, false), (from, true)]);
            for (from, is_sequential) in both.into_iter().flatten() {
                let is_free = Arc::new(AtomicBool::new(false));
                let at = Offset::try_from(from as u64).unwrap();
                let parts = Parts { place: Box::new(Guard(is_free.clone())), is_sequential };
                let content = store.open_in_parts(&fragment, at, Some(parts)).await.unwrap();
                let read: Vec<u8> = content.try_collect::<Vec<Bytes>>().await.unwrap().concat();
                assert!(is_free.load(Ordering::SeqCst), "its place is given back");
                assert_eq!(read.len(), LEN - from, "{codec} from {from}");
                assert!(
                    (from..).zip(&read).all(|(at, found)| *found == byte(at)),
                    "{codec} {from}"
                );
            }
        }
    }

    #[tokio::test]
    async fn damage_shows_in_parts_too() {
        let objects = Arc::new(InMemory::new());
        let (store, fragment) = stored(objects.clone(), Codec::None).await;
        let key = Key::parse(crate::name::path(&fragment)).unwrap();
        let mut bytes = objects.get(&key).await.unwrap().bytes().await.unwrap().to_vec();
        bytes[LEN - 10] ^= 1;
        objects.put(&key, bytes.into()).await.unwrap();
        let opened = store.open_in_parts(&fragment, Offset::ZERO, Some(whole())).await.unwrap();
        let failed = opened.try_collect::<Vec<Bytes>>().await.unwrap_err();
        assert!(matches!(failed, StoreError::Damaged { .. }), "{failed}");
        objects.delete(&key).await.unwrap();
        let missing = store.open_in_parts(&fragment, Offset::ZERO, Some(whole())).await;
        assert!(matches!(missing, Err(StoreError::Missing { .. })));
    }
}
