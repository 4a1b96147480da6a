//! Fragment stores: those that a real Gazette wrote are read to the byte, and ours read back.

#![allow(clippy::unwrap_used)]

use futures::TryStreamExt;
use index::cover::{Cover, CoverSet};
use index::disk::RealDisk;
use index::store::{Source, Store, StoreError, digest};
use protocol::{Codec, Fragment, Journal, Offset, Remedy, Span, Sum};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Journal, fragments, bytes and SHA256 of what Gazette stored (the README beside the fixtures).
const JOURNALS: [(&str, usize, usize, &str); 6] = [
    ("fixtures/none", 4, 10200, "7f5b5dcec942c5112441df4e4cc10e0e42b06c1473eea265cd3f5445d0f33c27"),
    ("fixtures/gzip", 4, 10200, "6397bb6b296bf43c8df721a959b83812b587a9c3b18c6e9ebc3739ee758b0701"),
    (
        "fixtures/zstandard",
        4,
        13200,
        "2ef10fe97efd7bd7df5b7efc987b30d44c728dfd9610c56772d9b753d071257a",
    ),
    (
        "fixtures/snappy",
        4,
        11400,
        "83f8c26593160e56e865e8a74f2ad2e735bce76ea7c8fbb1ccafa2a79b9c25d6",
    ),
    (
        "fixtures/postfix",
        4,
        12000,
        "39247754981d4bc3c59074c5336739f05d2c87236fd4dff424e4f9b86f60322e",
    ),
    (
        "fixtures/gzip-members",
        2,
        3600000,
        "0e07840609b3e071c5068609904b63437981b2bef03f81571485853d3827f8eb",
    ),
];

fn fixtures() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/gazette-store");
    assert!(path.is_dir(), "the store that Gazette wrote is not at {}", path.display());
    path
}

fn store_at(dir: &Path, url: &str) -> Store {
    Store::new(url, Arc::new(RealDisk::new(dir).unwrap())).unwrap()
}

fn journal(name: &str) -> Journal {
    Journal::new(name).unwrap()
}

async fn read(store: &Store, fragment: &Fragment, from: Offset) -> Result<Vec<u8>, StoreError> {
    let chunks: Vec<bytes::Bytes> = store.open(fragment, from).await?.try_collect().await?;
    Ok(chunks.concat())
}

/// Reads from `offset` to the end of all fragments, as a reader of the journal does.
async fn read_on(store: &Store, set: &CoverSet, mut offset: Offset) -> Vec<u8> {
    let mut content = Vec::new();
    while let Cover::Here(fragment) = set.covering(offset) {
        content.extend(read(store, fragment, offset).await.unwrap());
        offset = fragment.span.end();
    }
    assert_eq!(set.covering(offset), Cover::Past, "a hole at {offset}");
    content
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A sequence that is the same in each run, for picking offsets.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    }
}

#[tokio::test]
async fn what_gazette_stored_is_read_to_the_byte() {
    let store = store_at(&fixtures(), "file:///");
    for (name, fragments, len, sha256) in JOURNALS {
        let listed = store.list(&journal(name)).await.unwrap();
        assert_eq!(listed.len(), fragments, "{name}");
        assert!(listed.iter().all(|f| f.backing_store == "file:///" && f.is_persisted()), "{name}");
        let set: CoverSet = listed.into_iter().collect();
        let content = read_on(&store, &set, Offset::ZERO).await;
        assert_eq!(content.len(), len, "{name}");
        assert_eq!(hex(&Sha256::digest(&content)), sha256, "{name}");

        let mut number = numbers(len as u64);
        for _ in 0..20 {
            let offset = number(len as u64);
            let tail = read_on(&store, &set, Offset::try_from(offset).unwrap()).await;
            assert!(tail == content[offset as usize..], "{name} at {offset}");
        }
    }
}

#[tokio::test]
async fn the_postfix_of_a_fragment_comes_from_its_key() {
    let listed =
        store_at(&fixtures(), "file:///").list(&journal("fixtures/postfix")).await.unwrap();
    assert!(listed.iter().all(|f| f.path_postfix == "date=2026-11-29/hour=17"), "{listed:?}");
}

#[tokio::test]
async fn a_url_path_and_a_rewrite_lead_to_the_same_objects() {
    let fixtures = fixtures();
    let cases = [
        (fixtures.parent().unwrap(), "file:///gazette-store/", "fixtures/gzip"),
        (&fixtures, "file:///?find=elsewhere/&replace=fixtures/", "elsewhere/gzip"),
        // Case: no such journal.
        (&fixtures, "file:///", "fixtures/none-such"),
    ];
    let expected = [4, 4, 0];
    for ((dir, url, name), expected) in cases.into_iter().zip(expected) {
        let store = store_at(dir, url);
        let listed = store.list(&journal(name)).await.unwrap();
        assert_eq!(listed.len(), expected, "{url}");
        for fragment in &listed {
            store.verify(fragment).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_signed_url_is_as_gazette_gives_it() {
    let store = store_at(&fixtures(), "file:///");
    let listed = store.list(&journal("fixtures/none")).await.unwrap();
    assert_eq!(
        store.signed_url(&listed[0], Duration::from_secs(60)).await.unwrap(),
        "file:///fixtures/none/0000000000000000-0000000000000154-\
         2694a149d43eeb58db6c97dcd384e42f49391442.raw"
    );
}

/// A journal of text and noise that begins at offset 0.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(len: usize) -> Arc<Self> {
        let mut number = numbers(7);
        let byte = |at: usize| {
            if at % 10_000 < 5_000 { b"all work and no play\n"[at % 21] } else { number(256) as u8 }
        };
        Arc::new(Bytes((0..len).map(byte).collect()))
    }
}

impl Source for Bytes {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[offset.as_u64() as usize..];
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

/// A fragment that is only local, with its sum.
async fn local(source: &Arc<Bytes>, span: Span, codec: Codec, postfix: &str) -> Fragment {
    let digest = digest(span, source.clone()).await.unwrap();
    let content = &source.0[span.begin().as_u64() as usize..span.end().as_u64() as usize];
    assert_eq!(digest.crc32c, crc32c::crc32c(content));
    Fragment {
        journal: journal("a/journal"),
        span,
        sum: digest.sum,
        codec,
        backing_store: String::new(),
        mod_time: 0,
        path_postfix: postfix.to_owned(),
    }
}

async fn round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let url = "file:///sub/?find=journal&replace=elsewhere";
    let store = store_at(dir.path(), url);
    store.create_root().await.unwrap();
    // Long enough that noise takes several parts of an upload.
    let source = Bytes::new(24 << 20);
    let begin = Offset::from(12_345);
    for codec in Codec::ALL {
        for (postfix, len) in [("", 1), ("day=1/h=2", 70_000), ("long", 23 << 20)] {
            let span = Span::at(begin, len);
            let local = local(&source, span, codec, postfix).await;
            let stored = store.put(&local, source.clone()).await.unwrap();
            let expected =
                Fragment { backing_store: url.into(), mod_time: stored.mod_time, ..local.clone() };
            assert_eq!(stored, expected);
            assert!(stored.is_persisted());
            assert_eq!(store.list(&local.journal).await.unwrap(), std::slice::from_ref(&stored));

            // Case: it is there already, and stays as it is.
            assert_eq!(store.put(&local, source.clone()).await.unwrap(), stored);

            for skipped in [0, 1, len / 2, len - 1, len] {
                let from = begin.plus(skipped.min(len));
                let content = read(&store, &stored, from).await.unwrap();
                let at = from.as_u64() as usize;
                assert!(content == source.0[at..span.end().as_u64() as usize], "{codec} {from}");
            }
            store.delete(&stored).await.unwrap();
            assert_eq!(store.list(&local.journal).await.unwrap(), []);
            // Case: it is gone already.
            store.delete(&stored).await.unwrap();
        }
    }
    assert_eq!(partial_files(dir.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn round_trip_on_one_thread() {
    round_trip().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn round_trip_on_many_threads() {
    round_trip().await;
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn partial_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = files(dir);
    files.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".partial-"));
    files
}

#[tokio::test]
async fn a_damaged_object_is_an_error_that_names_the_fragment() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///");
    let source = Bytes::new(300_000);
    let span = Span::at(Offset::from(10), 250_000);
    for codec in Codec::ALL {
        let stored =
            store.put(&local(&source, span, codec, "").await, source.clone()).await.unwrap();
        let path = files(dir.path()).pop().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let middle = whole.len() / 2;

        let mut flipped = whole.clone();
        flipped[middle] ^= 0x10;
        let longer = [&whole[..], b"more"].concat();
        let cases: [(&str, &[u8]); 5] = [
            ("a flipped bit", &flipped),
            ("a cut in the middle", &whole[..middle]),
            ("a missing byte", &whole[..whole.len() - 1]),
            ("bytes after the end", &longer),
            ("an empty object", b""),
        ];
        for (case, damaged) in cases {
            std::fs::write(&path, damaged).unwrap();
            let error = read(&store, &stored, span.begin()).await.unwrap_err();
            let told = error.to_string();
            assert!(matches!(error, StoreError::Damaged { .. }), "{codec} {case}: {told}");
            assert!(told.contains(name) && told.contains("a/journal"), "{codec} {case}: {told}");
            assert_eq!(error.remedy(), Remedy::Lost);
            let StoreError::Damaged { offset, .. } = error else { unreachable!() };
            assert!(span.begin() <= offset && offset <= span.end(), "{codec} {case}: {told}");
            // Case: from the middle; without compression only the length is known there.
            let is_seen = codec != Codec::None || damaged.len() != whole.len();
            let from_middle = read(&store, &stored, Offset::from(200_000)).await;
            assert_eq!(from_middle.is_err(), is_seen, "{codec} {case}");
        }
        store.delete(&stored).await.unwrap();
    }
}

#[tokio::test]
async fn damage_is_told_before_the_last_chunk_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///");
    let source = Bytes::new(1000);
    let span = Span::at(Offset::ZERO, 1000);
    let stored =
        store.put(&local(&source, span, Codec::None, "").await, source.clone()).await.unwrap();
    let wrong = Fragment { sum: Sum::new([1; 20]), ..stored.clone() };
    let path = files(dir.path()).pop().unwrap();
    std::fs::rename(&path, path.with_file_name(index::name::content_name(&wrong))).unwrap();
    let mut content = store.open(&wrong, span.begin()).await.unwrap();
    assert!(content.try_next().await.is_err());
    assert!(content.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_rewrite_may_end_within_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///?find=a/journal/&replace=flat/x-");
    let source = Bytes::new(100);
    let fragment = local(&source, Span::at(Offset::ZERO, 100), Codec::Snappy, "").await;
    let stored = store.put(&fragment, source.clone()).await.unwrap();
    std::fs::write(dir.path().join("flat/another"), b"").unwrap();
    assert!(files(dir.path()).iter().any(|path| path.to_str().unwrap().contains("/flat/x-00")));
    assert_eq!(store.list(&fragment.journal).await.unwrap(), std::slice::from_ref(&stored));
    store.verify(&stored).await.unwrap();
    let signed = store.signed_url(&stored, Duration::ZERO).await.unwrap();
    assert!(signed.starts_with("file:///flat/x-00"));
}

#[tokio::test]
async fn a_missing_object_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///");
    let source = Bytes::new(100);
    for codec in Codec::ALL {
        let fragment = local(&source, Span::at(Offset::ZERO, 100), codec, "").await;
        let error = store.open(&fragment, Offset::from(5)).await.unwrap_err();
        assert!(matches!(&error, StoreError::Missing { .. }), "{error}");
        assert!(error.to_string().contains(&index::name::content_name(&fragment)), "{error}");
        assert_eq!(error.remedy(), Remedy::Later);
    }
}

#[tokio::test]
async fn an_object_that_a_power_cut_left_short_is_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///");
    let source = Bytes::new(100);
    let fragment = local(&source, Span::at(Offset::ZERO, 100), Codec::None, "").await;
    store.put(&fragment, source.clone()).await.unwrap();
    std::fs::write(files(dir.path()).pop().unwrap(), b"").unwrap();
    let stored = store.put(&fragment, source.clone()).await.unwrap();
    assert_eq!(read(&store, &stored, Offset::ZERO).await.unwrap(), source.0);
}

#[tokio::test]
async fn local_bytes_that_are_not_the_fragments_are_not_put() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///");
    // Case: one part, several parts.
    for len in [1000, 11 << 20] {
        let source = Bytes::new(len);
        let fragment = local(&source, Span::at(Offset::ZERO, len as u64), Codec::None, "").await;
        let mut changed = source.0.clone();
        changed[len - 1] ^= 1;
        let error = store.put(&fragment, Arc::new(Bytes(changed))).await.unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
        assert_eq!(error.remedy(), Remedy::Lost);
        assert_eq!(files(dir.path()), Vec::<PathBuf>::new());

        // Case: bytes that can't be read.
        let short = Arc::new(Bytes(source.0[..len - 1].to_vec()));
        let error = store.put(&fragment, short).await.unwrap_err();
        assert!(matches!(error, StoreError::Source { .. }), "{error}");
        assert_eq!(files(dir.path()), Vec::<PathBuf>::new());
    }
}

#[tokio::test]
async fn a_store_that_is_not_mounted_is_not_an_empty_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_at(dir.path(), "file:///mnt/store/");
    let source = Bytes::new(100);
    let fragment = local(&source, Span::at(Offset::ZERO, 100), Codec::Gzip, "").await;
    let errors = [
        store.list(&fragment.journal).await.unwrap_err(),
        store.put(&fragment, source.clone()).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("mnt/store"), "{error}");
        assert_eq!(error.remedy(), Remedy::Fix, "{error}");
    }
    store.create_root().await.unwrap();
    assert_eq!(store.list(&fragment.journal).await.unwrap(), []);
    store.put(&fragment, source.clone()).await.unwrap();
}
