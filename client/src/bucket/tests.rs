//! A bucket over a store of files in memory.

use super::*;
use index::disk::{Disk, ForgetfulDisk, Open};
use index::store::{Source, digest};
use protocol::{Codec, Fragment, Span};
use std::io;
use std::path::Path;

/// Bytes that a fragment is made of, from its begin on.
struct Part(Offset, Bytes);

impl Source for Part {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let from = offset.since(self.0) as usize;
        let len = buf.len().min(self.1.len() - from);
        buf[..len].copy_from_slice(&self.1[from..from + len]);
        Ok(len)
    }
}

struct World {
    disk: Arc<ForgetfulDisk>,
    store: Store,
}

fn journal() -> Journal {
    "a/log".parse().expect("valid")
}

/// Bytes that tell their offset.
fn content(begin: u64, len: usize) -> Bytes {
    (begin..).take(len).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

impl World {
    async fn new() -> World {
        let disk = Arc::new(ForgetfulDisk::new());
        let store = Store::new("file:///", disk.clone()).expect("a file store needs nothing");
        store.create_root().await.expect("memory takes it");
        World { disk, store }
    }

    async fn put(&self, postfix: &str, codec: Codec, begin: u64, len: usize) -> Fragment {
        let begin_at = Offset::try_from(begin).expect("small");
        let span = Span::at(begin_at, len as u64);
        let source = Arc::new(Part(begin_at, content(begin, len)));
        let sum = digest(span, source.clone()).await.expect("memory").sum;
        let fragment = Fragment::local(journal(), span, sum, codec);
        let fragment = Fragment { path_postfix: postfix.to_owned(), ..fragment };
        self.store.put(&fragment, source).await.expect("memory takes it")
    }

    async fn open(&self) -> Bucket {
        let bucket = Bucket::open(self.store.clone(), Postfix::Guessed).await;
        bucket.expect("the store can be listed")
    }

    /// Changes one byte of an object.
    fn flip(&self, fragment: &Fragment, at: u64) {
        let path = index::name::path(fragment);
        let file = self.disk.open(Path::new(&path), Open::Existing).expect("it is there");
        let mut byte = [0];
        file.read_at(&mut byte, at).expect("memory");
        file.write_at(&[byte[0] ^ 1], at).expect("memory");
    }
}

async fn read(bucket: &Bucket, offset: u64, max: usize) -> Result<Bytes, Error> {
    let offset = Offset::try_from(offset).expect("small");
    bucket.read(Read { journal: journal(), life: None, offset, max }).await
}

/// Reads on until the head or an error.
async fn read_on(bucket: &Bucket, mut offset: u64, max: usize) -> (Vec<u8>, Option<Error>) {
    let mut bytes = Vec::new();
    loop {
        match read(bucket, offset, max).await {
            Ok(piece) if piece.is_empty() => return (bytes, None),
            Ok(piece) => {
                assert!(piece.len() <= max);
                offset += piece.len() as u64;
                bytes.extend_from_slice(&piece);
            }
            Err(error) => return (bytes, Some(error)),
        }
    }
}

#[tokio::test]
async fn all_is_read_whatever_the_codec_and_the_sizes_of_reads() {
    let world = World::new().await;
    let mut begin = 0;
    for codec in [Codec::None, Codec::Gzip, Codec::Zstandard, Codec::Snappy] {
        world.put(&format!("day={begin}"), codec, begin, 300_000).await;
        begin += 300_000;
    }
    let bucket = world.open().await;
    let whole = content(0, 1_200_000);
    let stat = bucket.stat(&journal()).await.expect("it is listed");
    assert_eq!((stat.first.get(), stat.head.get(), stat.fragments), (0, 1_200_000, 4));
    assert!(stat.may_read && !stat.may_write);
    // Case: the first offset, the most of a read.
    for (from, max) in [(0, 131_072), (0, 1 << 20), (1, 4096), (299_999, 70_000), (899_000, 1)] {
        let len = if max == 1 { 2_000 } else { whole.len() - from };
        let bucket = world.open().await;
        let (read, error) = match max {
            1 => (read(&bucket, from as u64, len).await.expect("there").to_vec(), None),
            _ => read_on(&bucket, from as u64, max).await,
        };
        assert!(error.is_none(), "{error:?}");
        assert!(read == whole[from..from + read.len()] && !read.is_empty(), "from {from}");
        assert!(max == 1 || read.len() == len, "from {from}: {}", read.len());
    }
    // Case: backwards, and over a few bytes.
    for from in [900_000, 500_000, 500_100, 520_000, 100] {
        let piece = read(&bucket, from, 1000).await.expect("there");
        assert!(piece[..] == whole[from as usize..from as usize + piece.len()], "{from}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_later_is_found_and_wakes_who_waits() {
    let world = World::new().await;
    world.put("", Codec::None, 0, 100).await;
    let bucket = Arc::new(world.open().await);
    let stat = bucket.stat(&journal()).await.expect("it is listed");
    let waiting = {
        let (bucket, life) = (bucket.clone(), stat.life);
        tokio::spawn(async move { bucket.grown(&journal(), life, Offset::from(100)).await })
    };
    tokio::task::yield_now().await;
    world.put("", Codec::Gzip, 100, 50).await;
    let grown = waiting.await.expect("no panic").expect("it grows");
    assert_eq!((grown.head.get(), grown.life), (150, stat.life));
    // Case: a journal of a followed one's directory is none of its fragments.
    assert_eq!(bucket.list("").await.expect("listed").len(), 1);
    let census = *bucket.census().borrow();
    bucket.refresh().await.expect("listed");
    assert_eq!(*bucket.census().borrow(), census, "no journal came");
}

#[tokio::test]
async fn damage_is_an_error_and_never_other_bytes() {
    for codec in [Codec::None, Codec::Zstandard] {
        let world = World::new().await;
        world.put("", Codec::None, 0, 1000).await;
        let fragment = world.put("", codec, 1000, 400_000).await;
        world.put("", Codec::None, 401_000, 1000).await;
        world.flip(&fragment, 300);
        let bucket = world.open().await;
        let (bytes, error) = read_on(&bucket, 0, 65_536).await;
        let Some(Error::Damaged { span, detail, .. }) = error else { panic!("{error:?}") };
        assert_eq!(span, fragment.span);
        assert!(detail.contains(&index::name::content_name(&fragment)), "{detail}");
        assert!(bytes.len() < 401_000, "the damage is told before the fragment's end");
        // Case: from the middle, where it could be read without being checked.
        assert!(matches!(read(&bucket, 200_000, 10).await, Err(Error::Damaged { .. })));
        // Case: what comes after it is whole.
        let (rest, error) = read_on(&bucket, 401_000, 65_536).await;
        assert!(error.is_none() && rest == content(401_000, 1000));
    }
}

#[tokio::test]
async fn its_size_is_that_of_what_is_stored_and_none_is_free() {
    let world = World::new().await;
    world.put("", Codec::None, 0, 100).await;
    world.put("", Codec::Gzip, 100, 50).await;
    assert_eq!(world.open().await.space(), crate::Space { total: 150, free: 0 });
}

#[tokio::test]
async fn nothing_is_written() {
    let world = World::new().await;
    world.put("", Codec::None, 0, 10).await;
    let bucket = world.open().await;
    let append = Append::new(journal(), Bytes::from_static(b"x"));
    assert!(matches!(bucket.append(append).await, Err(Error::NotAllowed { .. })));
    assert!(matches!(bucket.create(&journal()).await, Err(Error::NotAllowed { .. })));
    assert!(matches!(bucket.purge(&journal()).await, Err(Error::NotAllowed { .. })));
    assert!(bucket.may_create(&journal()).is_err());
    let other: Journal = "a/other".parse().expect("valid");
    assert!(matches!(bucket.stat(&other).await, Err(Error::NotFound(_))));
}

/// A sequence that is the same in each run.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[tokio::test]
async fn t18_any_fragments_read_as_the_bytes_that_they_hold() {
    const END: u64 = 3_000;
    const READS: usize = 1_000;
    for seed in 1..=10 {
        let mut number = numbers(seed);
        let world = World::new().await;
        let mut covered = vec![false; END as usize];
        // Overlapping, contained, adjacent and doubled ones, of all codecs and under two postfixes.
        for at in 0..25 {
            let codec = Codec::ALL[number(5) as usize];
            let (begin, len) = (number(END - 300), 1 + number(300));
            let postfix = if number(2) == 0 { "" } else { "day=1" };
            world.put(postfix, codec, begin, len as usize).await;
            if at % 5 == 0 {
                world.put("day=2", Codec::None, begin, len as usize).await;
            }
            covered[begin as usize..(begin + len) as usize].fill(true);
        }
        let known = Postfix::Known(vec!["day=?".to_owned()]);
        let bucket = Bucket::open(world.store.clone(), known).await.expect("it can be listed");
        let first = covered.iter().position(|covered| *covered).expect("there are fragments");
        let head = END as usize - covered.iter().rev().position(|covered| *covered).expect("same");
        for _ in 0..READS {
            let offset = number(END) as usize;
            let max = 1 + number(400) as usize;
            let found = read(&bucket, offset as u64, max).await;
            match found {
                Ok(bytes) if offset >= head => assert!(bytes.is_empty(), "seed {seed} at {offset}"),
                Ok(bytes) => {
                    let end = offset + bytes.len();
                    assert!(!bytes.is_empty() && bytes.len() <= max, "seed {seed} at {offset}");
                    assert!(covered[offset..end].iter().all(|covered| *covered), "seed {seed}");
                    assert!(
                        bytes == content(offset as u64, bytes.len()),
                        "seed {seed} at {offset}"
                    );
                }
                Err(Error::Trimmed { span, .. }) => {
                    assert!(offset < first && span.end().as_u64() as usize == first);
                }
                Err(Error::Damaged { span, .. }) => {
                    let hole = span.begin().as_u64() as usize..span.end().as_u64() as usize;
                    assert!(hole.start == offset && offset > first, "seed {seed} at {offset}");
                    assert!(
                        !covered[hole].iter().any(|covered| *covered),
                        "seed {seed} at {offset}"
                    );
                }
                Err(error) => panic!("seed {seed} at {offset}: {error}"),
            }
        }
    }
}
