//! Bytes that nobody promised anything about, through each parser that reads what others wrote:
//! fragment names, the commit log, and the bodies of stored objects. They are refused or
//! understood; nothing panics, and nothing takes memory or time without bound.

use bytes::Bytes;
use index::clock::ManualClock;
use index::codec::{Compressor, Decoder, Step};
use index::disk::{Crash, Disk, ForgetfulDisk, Open};
use index::record::{self, Body, Position, Record};
use index::store::{Store, StoreError};
use index::{Content, DataDir, Entry, Options, log, name};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;
use protocol::{Codec, Fragment, Journal, Span, Sum};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// The most that a decoder gives at once.
const CHUNK_MAX: usize = 128 << 10;

fn journal() -> Journal {
    Journal::new("a/journal").expect("a valid name")
}

fn packed(codec: Codec, content: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(codec, Vec::new());
    compressor.write_all(content).expect("memory");
    compressor.finish().expect("memory")
}

/// Decompresses all, fed in pieces; how many bytes came, and whether the stream ended well.
fn decompress(codec: Codec, packed: &[u8], piece: usize) -> (usize, bool) {
    let mut decoder = Decoder::new(codec);
    let mut pieces = packed.chunks(piece.max(1));
    let mut len = 0;
    loop {
        match decoder.step() {
            Ok(Step::Chunk(chunk)) => {
                assert!(!chunk.is_empty() && chunk.len() <= CHUNK_MAX);
                len += chunk.len();
            }
            Ok(Step::Hungry) => match pieces.next() {
                Some(piece) => decoder.feed(Bytes::copy_from_slice(piece)),
                None => decoder.finish(),
            },
            Ok(Step::End) => return (len, true),
            Err(_) => return (len, false),
        }
    }
}

fn codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(Codec::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn names_are_refused_or_name_their_fragment(
        postfix in "([a-z0-9=.]{1,4}/){0,2}",
        begin in "[0-9a-fA-F]{1,17}",
        end in "[0-9a-f+-]{1,17}",
        sum in "[0-9a-f]{38,41}|da39a3ee5e6b4b0d3255bfef95601890afd80709",
        extension in "(\\.(raw|gz|GZIP|zst|sz|snappy|gzod|x))?|[.a-z]{0,3}",
    ) {
        let text = format!("{postfix}{begin}-{end}-{sum}{extension}");
        let Ok(named) = name::parse(&text) else { return Ok(()) };
        let fragment = named.clone().into_fragment(journal(), "file:///".to_owned(), 1);
        let path = name::path(&fragment);
        let below = path.strip_prefix("a/journal/").expect("it lies below its journal");
        prop_assert_eq!(name::parse(below), Ok(named), "{}", text);
    }

    #[test]
    fn any_text_is_refused_or_is_a_name(text in "\\PC{0,80}") {
        let _ = name::parse(&text);
    }

    #[test]
    fn any_body_ends_in_bounded_steps(
        codec in codec(),
        noise in prop::collection::vec(any::<u8>(), 0..400),
        piece in 1..64_usize,
    ) {
        decompress(codec, &noise, piece);
    }

    #[test]
    fn a_bent_body_ends_in_bounded_steps(
        codec in codec(),
        len in 0..20_000_usize,
        bends in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4),
        cut in any::<Index>(),
    ) {
        let content: Vec<u8> = (0..len).map(|at| (at % 251) as u8 | (at / 977) as u8).collect();
        let mut body = packed(codec, &content);
        for (at, byte) in bends {
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = byte;
            }
        }
        body.truncate(cut.index(body.len() + 1).max(body.len() / 2));
        decompress(codec, &body, 1000);
    }

    /// Frames whose checksum is right and whose meaning may be anything.
    #[test]
    fn a_log_of_any_records_is_opened(bodies in prop::collection::vec(body(), 1..12)) {
        let disk = ForgetfulDisk::new();
        drop(open(&disk));
        let disk = disk.crash(Crash::Kill);
        let (path, position, chain) = end_of_log(&disk);
        let file = disk.open(&path, Open::Existing).expect("memory");
        let (mut at, mut chain) = (position, chain);
        let created = record::Created { life: 7, name: "a/journal".to_owned() };
        for body in [Body::Created(created)].into_iter().chain(bodies) {
            let (frame, checksum) = record::encode(&Record { body: Some(body) }, at, at, chain);
            file.write_at(&frame, u64::from(at.offset())).expect("memory");
            at = Position(at.0 + frame.len() as u64);
            chain = checksum;
        }
        // It opens, or says what is wrong; and what opened takes appends.
        let Some(data) = open(&disk) else { return Ok(()) };
        for replica in data.replicas() {
            let turn = futures::FutureExt::now_or_never(replica.turn());
            let content = Content::Memory("x".into());
            let entry = Entry { content, registers: None, writer: None, is_disk: true };
            let _ = turn.expect("nobody holds the turn").record(entry);
        }
    }

    #[test]
    fn frames_of_noise_are_no_frames(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = record::decode(&Bytes::from(noise.clone()), 0, Position::new(1, 0));
        let _ = Record::decode(&*noise);
    }
}

fn open(disk: &ForgetfulDisk) -> Option<Arc<DataDir>> {
    let options = Options { segment_len: Some(64 << 10), ..Options::default() };
    let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000));
    let (data, _) = DataDir::open(Arc::new(disk.clone()), clock, options).ok()?;
    Some(data)
}

/// Where the next record of a log goes, and what it chains to.
fn end_of_log(disk: &ForgetfulDisk) -> (PathBuf, Position, u32) {
    let start =
        index::checkpoint::Checkpoint::read(disk).expect("it verifies").expect("there").start;
    let scan = log::scan(disk, start, |_| Ok(())).expect("memory");
    (log::path_of(scan.end.segment()), scan.end, scan.chain)
}

/// Numbers at the edges as often as others.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(-1), Just(i64::MAX), Just(i64::MIN), 0..100_000_i64, any::<i64>()]
}

/// Any record that could come after the creation of journal 7.
fn body() -> impl Strategy<Value = Body> {
    let mark = (number(), number()).prop_map(|(begin, end)| record::Mark { life: 7, begin, end });
    let append = (number(), prop::collection::vec(any::<u8>(), 0..40), number(), any::<bool>());
    let append = append.prop_map(|(begin, content, spool_begin, is_honest)| record::Append {
        life: 7,
        begin,
        len: if is_honest { content.len() as u64 } else { spool_begin.unsigned_abs() },
        crc: crc32c::crc32c(&content),
        content: content.into(),
        spool_begin,
        codec: 1,
        ..record::Append::default()
    });
    let rolled = (number(), number()).prop_map(|(begin, end)| record::Rolled {
        life: 7,
        begin,
        end,
        ..record::Rolled::default()
    });
    prop_oneof![
        append.prop_map(Body::Append),
        rolled.prop_map(Body::Rolled),
        (0..7, mark).prop_map(|(kind, mark)| match kind {
            0 => Body::Evicted(mark),
            1 => Body::Trimmed(mark),
            2 => Body::Lost(mark),
            3 => Body::Damaged(mark),
            4 => Body::Adopted(mark),
            5 => Body::Ceiling(mark),
            _ => Body::Deleted(mark),
        }),
    ]
}

/// What a fragment's object that holds a bomb comes to: an error, after no more than the fragment.
#[test]
fn a_bomb_is_bounded_by_its_fragment() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let bomb = vec![0; 64 << 20];
    for codec in [Codec::Gzip, Codec::Zstandard, Codec::Snappy, Codec::GzipOffload] {
        let body = packed(codec, &bomb);
        let span = Span::at(100.into(), 1000);
        let local = Fragment::local(journal(), span, Sum::ZERO, codec);
        let fragment = Fragment { backing_store: "s3://bucket/".to_owned(), ..local };
        let given = runtime.block_on(async {
            let objects = Arc::new(InMemory::new());
            let key = object_store::path::Path::from(name::path(&fragment));
            objects.put(&key, body.into()).await.expect("memory");
            let store = Store::over("s3://bucket/", objects as Arc<dyn ObjectStore>);
            let store = store.expect("a valid URL");
            let mut content = store.open(&fragment, span.begin()).await.expect("it is there");
            let mut given = 0;
            loop {
                match futures::StreamExt::next(&mut content).await {
                    Some(Ok(chunk)) => given += chunk.len() as u64,
                    Some(Err(StoreError::Damaged { .. })) => return given,
                    other => panic!("{codec}: {other:?}"),
                }
            }
        });
        assert!(given <= span.len(), "{codec}: {given}");
    }
}
