//! Properties of cover sets: against a model that looks at every fragment, and with stores below
//! (case T18): a read equals the journal's bytes, or finds a hole exactly where nothing has them.

#![allow(clippy::unwrap_used)]

use futures::{StreamExt, TryStreamExt};
use index::cover::{Cover, CoverSet};
use index::name;
use index::store::{Source, Store, StoreError, digest};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use proptest::prelude::*;
use protocol::{Codec, Fragment, Journal, Offset, Span, Sum};
use std::io;
use std::sync::Arc;

/// The journals of these tests are this long, in bytes.
const JOURNAL_LEN: u32 = 4000;

const URL: &str = "s3://bucket/prefix/";

fn fragment(span: Span, codec: Codec) -> Fragment {
    Fragment {
        journal: Journal::new("a/journal").unwrap(),
        span,
        sum: Sum::ZERO,
        codec,
        backing_store: String::new(),
        mod_time: 0,
        path_postfix: String::new(),
    }
}

/// Spans of all lengths, zero included, many of them adjacent, nested or equal.
fn spans(count: usize) -> impl Strategy<Value = Vec<Span>> {
    let edge = prop_oneof![0..JOURNAL_LEN, (0..JOURNAL_LEN / 100).prop_map(|at| at * 100)];
    let span = (edge.clone(), edge)
        .prop_map(|(one, other)| Span::new(one.min(other).into(), one.max(other).into()).unwrap());
    // Half of the spans are short, so that they don't all end up within the longest.
    let short = span.clone().prop_map(|span| Span::at(span.begin(), span.len().min(300)));
    prop::collection::vec(prop_oneof![span, short], 0..count)
}

fn codecs() -> impl Strategy<Value = Codec> {
    prop::sample::select(Codec::ALL.to_vec())
}

/// What the set must hold: of what was added that which is within nothing else, and of equal spans
/// the last.
fn model_set(added: &[Fragment]) -> Vec<Fragment> {
    let is_kept = |(at, fragment): &(usize, &Fragment)| {
        let span = fragment.span;
        let within_other = added.iter().any(|f| f.span != span && f.span.covers(span));
        let overridden = added[at + 1..].iter().any(|f| f.span == span);
        !span.is_empty() && !within_other && !overridden
    };
    let kept = added.iter().enumerate().filter(is_kept);
    let mut kept: Vec<Fragment> = kept.map(|(_, fragment)| fragment.clone()).collect();
    kept.sort_by_key(|fragment| fragment.span);
    kept
}

proptest! {
    #[test]
    fn a_set_is_what_the_model_says(
        added in spans(40),
        codecs in prop::collection::vec(codecs(), 40),
    ) {
        let added: Vec<Fragment> =
            added.into_iter().zip(codecs).map(|(span, codec)| fragment(span, codec)).collect();
        let set: CoverSet = added.iter().cloned().collect();
        let model = model_set(&added);
        prop_assert_eq!(set.iter().cloned().collect::<Vec<_>>(), model.clone());
        let ends = model.iter().map(|f| f.span.end());
        prop_assert_eq!(set.end(), ends.max().unwrap_or_default());

        for at in 0..=JOURNAL_LEN {
            let offset = Offset::from(at);
            let covering = model.iter().filter(|f| f.span.contains(offset));
            let furthest = covering.max_by_key(|f| f.span.end());
            let next = model.iter().find(|f| f.span.begin() > offset);
            let expected = match (furthest, next) {
                (Some(fragment), _) => Cover::Here(fragment),
                (None, Some(fragment)) => Cover::Next(fragment),
                (None, None) => Cover::Past,
            };
            prop_assert_eq!(set.covering(offset), expected, "at {}", at);
        }
    }

    #[test]
    fn a_span_is_covered_when_each_byte_is(added in spans(12), asked in spans(20)) {
        let set: CoverSet = added.iter().map(|span| fragment(*span, Codec::None)).collect();
        for span in asked {
            let each = (span.begin().get()..span.end().get())
                .all(|at| added.iter().any(|f| f.contains(Offset::new(at).unwrap())));
            prop_assert_eq!(set.covers(span), each, "{}", span);
        }
    }
}

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[offset.as_u64() as usize..];
        // Short reads, so that passes are pieced together.
        let len = rest.len().min(buf.len()).min(777);
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

impl Bytes {
    fn new() -> Arc<Self> {
        let byte = |at: u32| (at.wrapping_mul(2654435761) >> (8 + at % 16)) as u8;
        Arc::new(Bytes((0..JOURNAL_LEN).map(byte).collect()))
    }
}

async fn put(store: &Store, source: &Arc<Bytes>, span: Span, codec: Codec) -> Fragment {
    let sum = digest(span, source.clone()).await.unwrap().sum;
    store.put(&Fragment { sum, ..fragment(span, codec) }, source.clone()).await.unwrap()
}

/// An object whose name says that it is empty, as some writers of buckets leave.
async fn put_empty(objects: &InMemory, span: Span) {
    let path = name::path(&fragment(span, Codec::None));
    objects.put(&Key::parse(format!("prefix/{path}")).unwrap(), "".into()).await.unwrap();
}

/// The state of one run of T18: a bucket, and what a reader knows of it.
struct World {
    store: Store,
    source: Arc<Bytes>,
    /// As listed before the last changes of the bucket.
    listed: CoverSet,
    deleted: Vec<Fragment>,
}

async fn world(before: Vec<(Span, Codec)>, deleted: Vec<bool>, after: Vec<(Span, Codec)>) -> World {
    let objects = Arc::new(InMemory::new());
    let store = Store::over(URL, objects.clone()).unwrap();
    let source = Bytes::new();
    let mut stored = Vec::new();
    for (span, codec) in before {
        if span.is_empty() {
            put_empty(&objects, span).await;
        } else {
            stored.push(put(&store, &source, span, codec).await);
        }
    }
    let listed = store.list(&fragment(Span::default(), Codec::None).journal).await.unwrap();
    let listed: CoverSet = listed.into_iter().collect();
    let mut gone = Vec::new();
    for (fragment, _) in stored.into_iter().zip(deleted).filter(|(_, deleted)| *deleted) {
        store.delete(&fragment).await.unwrap();
        gone.push(fragment);
    }
    for (span, codec) in after {
        if !span.is_empty() {
            let fragment = put(&store, &source, span, codec).await;
            gone.retain(|gone| name::content_name(gone) != name::content_name(&fragment));
        }
    }
    World { store, source, listed, deleted: gone }
}

impl World {
    async fn check_read(&self, offset: Offset) {
        let Cover::Here(fragment) = self.listed.covering(offset) else {
            let has_bytes = self.listed.iter().any(|f| f.span.contains(offset));
            assert!(!has_bytes, "a hole at {offset} where there are bytes");
            return;
        };
        let is_gone = |gone: &Fragment| name::content_name(gone) == name::content_name(fragment);
        match self.read(fragment, offset).await {
            Ok(content) => {
                let span = offset.as_u64() as usize..fragment.span.end().as_u64() as usize;
                assert!(content == self.source.0[span], "{fragment:?} from {offset}");
                assert!(!self.deleted.iter().any(is_gone));
            }
            Err(StoreError::Missing { .. }) => assert!(self.deleted.iter().any(is_gone)),
            Err(error) => panic!("{fragment:?} from {offset}: {error}"),
        }
    }

    async fn read(&self, fragment: &Fragment, from: Offset) -> Result<Vec<u8>, StoreError> {
        let chunks: Vec<_> = self.store.open(fragment, from).await?.try_collect().await?;
        Ok(chunks.concat())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    /// T18: 50 buckets, 200 reads each.
    #[test]
    fn reads_equal_the_journal_or_find_a_hole(
        before in spans(12),
        after in spans(4),
        codecs in prop::collection::vec(codecs(), 16),
        deleted in prop::collection::vec(prop::bool::weighted(0.2), 12),
        reads in prop::collection::vec(0..JOURNAL_LEN, 200),
    ) {
        let mut codecs = codecs.into_iter();
        let mut pair = |spans: Vec<Span>| spans.into_iter().zip(&mut codecs).collect::<Vec<_>>();
        let (before, after) = (pair(before), pair(after));
        let covered = |at: u32| before.iter().any(|(span, _)| span.contains(Offset::from(at)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = world(before.clone(), deleted, after).await;
            for at in reads {
                let found = matches!(world.listed.covering(Offset::from(at)), Cover::Here(_));
                assert_eq!(found, covered(at), "at {at}");
                world.check_read(Offset::from(at)).await;
            }
        });
    }
}

#[tokio::test]
async fn foreign_objects_are_no_fragments() {
    let objects = Arc::new(InMemory::new());
    let store = Store::over(URL, objects.clone()).unwrap();
    let source = Bytes::new();
    let stored = put(&store, &source, Span::at(Offset::ZERO, 10), Codec::Gzip).await;
    let sum = stored.sum;
    let keys = [
        // Case: no fragment at all; of another journal; outside the prefix.
        "prefix/a/journal/README".to_owned(),
        format!("prefix/a/journal-2/0000000000000000-000000000000000a-{sum}.raw"),
        format!("a/journal/0000000000000000-000000000000000a-{sum}.raw"),
        // Case: a name that nobody who knows only the fragment could find again.
        format!("prefix/a/journal/0-a-{sum}.raw"),
        format!("prefix/a/journal/0000000000000000-000000000000000a-{sum}.RAW"),
    ];
    for key in keys {
        objects.put(&Key::parse(key).unwrap(), "0123456789".into()).await.unwrap();
    }
    assert_eq!(store.list(&stored.journal).await.unwrap(), std::slice::from_ref(&stored));

    // Case: the other spelling of an extension is found and read.
    let key = Key::parse(format!("prefix/{}", name::path(&stored))).unwrap();
    let body = objects.get(&key).await.unwrap().bytes().await.unwrap();
    let other = Key::parse(format!("prefix/{}", name::paths(&stored).nth(1).unwrap())).unwrap();
    objects.put(&other, body.into()).await.unwrap();
    objects.delete(&key).await.unwrap();
    assert_eq!(store.list(&stored.journal).await.unwrap().len(), 1);
    store.verify(&stored).await.unwrap();
    let left = store.delete(&stored).await;
    assert!(left.is_ok() && store.list(&stored.journal).await.unwrap().is_empty());
    assert_eq!(objects.list(None).collect::<Vec<_>>().await.len(), 5);
}

#[tokio::test]
async fn offloaded_gzip_is_marked_for_its_store() {
    let objects = Arc::new(InMemory::new());
    let store = Store::over(URL, objects.clone()).unwrap();
    let stored = put(&store, &Bytes::new(), Span::at(Offset::ZERO, 10), Codec::GzipOffload).await;
    let key = Key::parse(format!("prefix/{}", name::path(&stored))).unwrap();
    let object = objects.get(&key).await.unwrap();
    let encoding = object.attributes.get(&object_store::Attribute::ContentEncoding);
    assert_eq!(encoding.map(AsRef::as_ref), Some("gzip"));
}
