//! Reading stored fragments past a broker: a double of one, and a web server of one object.

mod server;

use super::*;
use crate::remote::double::Double;
use crate::{Error, Journals, Piece, Read, Reader, Remote};
use bytes::Bytes;
use futures::TryStreamExt;
use index::codec::Compressor;
use index::disk::Open;
use index::store::{Source, digest};
use protocol::request::ReadFrom;
use protocol::{Codec, Span};
use server::{Manner, Server};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

const NAME: &str = "local/log";

/// Local bytes come after those of the store.
const STORED: usize = 700_000;
const LOCAL: usize = 10_000;

fn content() -> Bytes {
    let number = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8;
    (0..STORED + LOCAL).map(number).collect()
}

struct Whole(Bytes);

impl Source for Whole {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset.get()).expect("small");
        let len = buf.len().min(self.0.len() - from);
        buf[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }
}

async fn stored(codec: Codec, store: &str) -> Fragment {
    let span = Span::at(Offset::ZERO, STORED as u64);
    let sum = digest(span, Arc::new(Whole(content()))).await.expect("memory").sum;
    let journal = NAME.parse().expect("valid");
    let fragment = Fragment::local(journal, span, sum, codec);
    Fragment { backing_store: store.to_owned(), mod_time: 7, ..fragment }
}

fn packed(codec: Codec) -> Vec<u8> {
    let mut compressor = Compressor::new(codec, Vec::new());
    compressor.write_all(&content()[..STORED]).expect("memory takes it");
    compressor.finish().expect("memory takes it")
}

/// A broker whose journal is in a store but for its end, and the web server of that.
async fn world(codec: Codec, object: Vec<u8>, manner: Manner) -> (Double, Server, Arc<Remote>) {
    let (double, url) = Double::start(true).await;
    let server = Server::start(object, manner).await;
    double.create(NAME);
    double.append(NAME, &content());
    // The scheme is one that is not read with own credentials.
    double.store(stored(codec, "file:///").await, server.url());
    (double, server, Arc::new(Remote::new(&url).expect("a valid URL")))
}

/// All of the journal, as a program reads it.
async fn drain(remote: &Arc<Remote>, from: u32) -> Result<Vec<u8>, Error> {
    let from = ReadFrom::At(Offset::from(from));
    let mut reader = Reader::new(remote.clone(), NAME.parse().expect("valid"), from, 1);
    let mut bytes = Vec::new();
    while let Some(piece) = reader.next().await? {
        match piece {
            Piece::Content(offset, content) => {
                assert_eq!(offset.as_u64() as usize, bytes.len() + from_of(from));
                bytes.extend_from_slice(&content);
            }
            Piece::Gap(span) => panic!("a gap at {span}"),
        }
    }
    Ok(bytes)
}

fn from_of(from: ReadFrom) -> usize {
    match from {
        ReadFrom::At(offset) => offset.as_u64() as usize,
        ReadFrom::Head => 0,
    }
}

#[tokio::test]
async fn fragments_are_fetched_by_their_urls_in_every_codec() {
    let cases = [
        (Codec::None, "identity"),
        (Codec::Gzip, "gzip"),
        (Codec::Zstandard, "identity"),
        (Codec::Snappy, "identity"),
        (Codec::GzipOffload, "identity"),
    ];
    for (codec, encoding) in cases {
        let (double, server, remote) = world(codec, packed(codec), Manner::Works).await;
        for from in [0, 1, 650_000, 705_000] {
            let read = drain(&remote, from).await.expect("readable");
            assert!(read == content()[from as usize..], "{codec} from {from}: {}", read.len());
        }
        assert_eq!(double.requests("proxied"), 0, "{codec}");
        // Case: what only the broker has is not fetched.
        let requests = server.requests();
        assert_eq!(requests.len(), 3, "{codec}");
        let asks = format!("accept-encoding: {encoding}\r\n");
        assert!(requests.iter().all(|head| head.contains(&asks)), "{codec}: {requests:?}");
        let ranged = requests.iter().filter(|head| head.contains("range: bytes=")).count();
        assert_eq!(ranged, if codec == Codec::None { 2 } else { 0 }, "{codec}");
    }
    // Case: a store that has undone the compression.
    let plain = content()[..STORED].to_vec();
    let (double, _server, remote) = world(Codec::GzipOffload, plain, Manner::Works).await;
    assert!(drain(&remote, 5).await.expect("readable") == content()[5..]);
    assert_eq!(double.requests("proxied"), 0);
}

/// An object of three parts.
async fn large() -> (Bytes, Fragment) {
    const LEN: usize = 11 << 20;
    let content: Bytes = (0..LEN).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect();
    let span = Span::at(Offset::ZERO, LEN as u64);
    let sum = digest(span, Arc::new(Whole(content.clone()))).await.expect("memory").sum;
    let fragment = Fragment { span, sum, ..stored(Codec::None, "file:///").await };
    (content, fragment)
}

#[tokio::test]
async fn a_sequential_reader_has_the_parts_before_it_takes_them() {
    let (content, fragment) = large().await;
    // Case: who reads, and the requests that its first bytes cause.
    for (wish, requests) in [(Wish::Any, 1), (Wish::All, 3)] {
        let server = Server::start(content.to_vec(), Manner::Works).await;
        let ways = Fragments::new(None);
        let opened = ways.open(&fragment, server.url(), fragment.begin(), wish).await;
        let (mut opened, _) = opened.expect("it answers");
        assert!(opened.try_next().await.expect("readable").is_some());
        let all_asked = async {
            while server.requests().len() < requests {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), all_asked).await.expect("all are asked for");
        assert_eq!(server.requests().len(), requests, "{wish:?}");
    }
}

#[tokio::test]
async fn large_objects_are_fetched_in_parts() {
    let (content, fragment) = large().await;
    // Case: how the server behaves, where the read begins, how many requests it gets; none where
    // the read fails.
    let cases = [
        (Manner::Works, 0, Some(3)),
        (Manner::Works, 5, Some(3)),
        (Manner::Works, 8 << 20, Some(1)),
        (Manner::IgnoresRanges, 5, Some(1)),
        (Manner::EndsEarly(1 << 20), 0, None),
    ];
    let wishes = [Wish::Any, Wish::All];
    let cases = cases.into_iter().flat_map(|case| wishes.map(|wish| (case, wish)));
    for ((manner, from, requests), wish) in cases {
        let server = Server::start(content.to_vec(), manner).await;
        let ways = Fragments::new(None);
        let at = Offset::try_from(from as u64).expect("small");
        let (opened, way) = ways.open(&fragment, server.url(), at, wish).await.expect("it answers");
        assert_eq!(way, Way::Url);
        let read = opened.try_collect::<Vec<Bytes>>().await;
        match requests {
            Some(requests) => {
                assert!(read.expect("readable").concat() == content[from..], "{manner:?} {from}");
                assert_eq!(server.requests().len(), requests, "{manner:?} {from}");
            }
            None => assert!(read.is_err(), "{manner:?}"),
        }
    }
}

#[tokio::test]
async fn whatever_the_server_does_the_bytes_are_right() {
    // Case: how it behaves, whether the broker has to help, the most requests that it gets.
    let cases = [
        (Manner::Works, false, 1),
        (Manner::IgnoresRanges, false, 1),
        (Manner::Status(403), true, 1),
        (Manner::Status(500), true, 1),
        (Manner::Status(404), true, 1),
        // It gives nothing.
        (Manner::Breaks(0), true, 2),
        (Manner::EndsEarly(0), true, 2),
        // It cuts each answer.
        (Manner::Breaks(300_000), false, 4),
        (Manner::Breaks(20_000), true, 6),
        (Manner::EndsEarly(300_000), false, 4),
    ];
    for (manner, is_proxied, requests_max) in cases {
        let (double, server, remote) = world(Codec::None, packed(Codec::None), manner).await;
        let read = drain(&remote, 10).await.expect("readable");
        assert!(read == content()[10..], "{manner:?}: {} bytes", read.len());
        assert_eq!(double.requests("proxied") > 0, is_proxied, "{manner:?}");
        let requests = server.requests().len();
        assert!((1..=requests_max).contains(&requests), "{manner:?}: {requests}");
    }
}

#[tokio::test]
async fn a_way_that_fails_is_remembered_and_tried_again_later() {
    let object = packed(Codec::Snappy);
    let (double, server, remote) = world(Codec::Snappy, object, Manner::Status(403)).await;
    for _ in 0..3 {
        assert!(drain(&remote, 0).await.expect("readable") == content());
    }
    assert_eq!(server.requests().len(), 1, "it rests");
    assert_eq!(double.requests("proxied"), 3);
    server.behave(Manner::Works);
    tokio::time::pause();
    tokio::time::advance(crate::limits::REST_FIRST * 2).await;
    tokio::time::resume();
    assert!(drain(&remote, 0).await.expect("readable") == content());
    assert_eq!(server.requests().len(), 2, "it has rested");
    assert_eq!(double.requests("proxied"), 3);
}

#[tokio::test]
async fn other_bytes_than_the_sum_says_are_never_taken_for_a_whole_fragment() {
    for codec in [Codec::None, Codec::Zstandard] {
        let mut object = packed(codec);
        object[100] ^= 1;
        let (_double, _server, remote) = world(codec, object, Manner::Works).await;
        match drain(&remote, 0).await {
            // Where it shows before anything was given, the broker has the right bytes.
            Ok(read) => assert!(read == content(), "{codec}"),
            Err(Error::Damaged { span, .. }) => assert_eq!(span.end().as_u64(), STORED as u64),
            Err(error) => panic!("{codec}: {error}"),
        }
    }
}

#[tokio::test]
async fn mounts_read_the_same_way() {
    let (double, server, remote) =
        world(Codec::Gzip, packed(Codec::Gzip), Manner::Breaks(1_000)).await;
    let life = remote.stat(&NAME.parse().expect("valid")).await.expect("there").life;
    let mut bytes = Vec::new();
    loop {
        let offset = Offset::try_from(bytes.len() as u64).expect("small");
        let journal = NAME.parse().expect("valid");
        let read = Read { journal, life: Some(life), offset, max: 64 << 10 };
        let piece = remote.read(read).await.expect("readable");
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
    }
    assert!(bytes == content(), "{} bytes", bytes.len());
    assert!(double.requests("proxied") > 0 && !server.requests().is_empty());
}

#[tokio::test]
async fn a_known_root_of_files_is_read_past_the_broker() {
    let disk = Arc::new(ForgetfulDisk::new());
    let fragment = stored(Codec::None, "file:///").await;
    disk.create_dir(Path::new(NAME)).expect("memory takes it");
    let file = disk.open(Path::new(&name::path(&fragment)), Open::New).expect("memory takes it");
    file.write_at(&content()[..STORED], 0).expect("memory takes it");

    let (double, url) = Double::start(true).await;
    double.create(NAME);
    double.append(NAME, &content());
    double.store(fragment.clone(), &format!("file:///{}", name::path(&fragment)));
    let remote = Remote::new(&url).expect("a valid URL");
    let without = Arc::new(Remote::new(&url).expect("a valid URL"));
    let with = Arc::new(remote.with_files(disk));
    assert!(drain(&with, 7).await.expect("readable") == content()[7..]);
    assert_eq!(double.requests("proxied"), 0);
    assert!(drain(&without, 7).await.expect("readable") == content()[7..]);
    assert_eq!(double.requests("proxied"), 1);
}

#[tokio::test]
async fn errors_never_tell_a_url() {
    let server = Server::start(Vec::new(), Manner::Status(403)).await;
    let fragment = stored(Codec::None, "s3://bucket/").await;
    let ways = Fragments::new(None);
    let url = server.url().to_owned();
    let nobody = "http://127.0.0.1:1/secret".to_owned();
    for url in [url, nobody] {
        let http = index::cloud::http_client().expect("a client");
        let failed = fetch::fetch(&http, &url, &fragment, fragment.begin(), None);
        let error = failed.await.expect_err("it fails").to_string();
        assert!(!error.contains("secret") && error.contains(NAME), "{error}");
    }
    assert!(ways.given("file:///").is_err_and(|error| error.to_string().contains("--file-root")));
}
