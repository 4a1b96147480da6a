//! A broker over a bucket of a real server: scripts/test-stores starts one, makes a bucket
//! `courant`, and names the store by `COURANT_TEST_STORE`.

mod world;

use broker::{Ask, Memory, Served};
use bytes::Bytes;
use protocol::request::{FragmentsRequest, ReadFrom};
use protocol::{Codec, Offset, Span};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use world::{World, journal, until};

/// The store, below a prefix that no other run had.
fn store() -> String {
    let told = std::env::var("COURANT_TEST_STORE");
    told.expect("COURANT_TEST_STORE is not set: run this by scripts/test-stores")
}

/// What the plainest of clients gets: status 200 and a body, or the answer's first line.
async fn fetch(url: &str) -> Result<Bytes, String> {
    let (host, path) =
        url.strip_prefix("http://").expect("loopback").split_once('/').expect("path");
    let mut stream = TcpStream::connect(host).await.expect("it listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("it answers");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let first = String::from_utf8_lossy(&answer[..end]).lines().next().unwrap_or("").to_owned();
    if first.contains(" 200 ") { Ok(Bytes::from(answer.split_off(end))) } else { Err(first) }
}

/// A journal of the bucket, whose fragments are known.
async fn create(world: &World, url: &str, name: &str) -> Arc<Served> {
    let served = world
        .apply(name, |spec| {
            spec.fragment.stores = vec![url.into()];
            spec.fragment.codec = Codec::None;
            spec.fragment.refresh_interval = Duration::from_secs(1);
        })
        .await;
    until("it is listed", || async { served.is_known() }).await;
    served
}

#[tokio::test]
async fn a_bucket_keeps_a_journal() {
    let url = store();
    let content = "0123456789abcdef".repeat(10_000);
    let world = World::new().await;
    let served = create(&world, &url, "a/journal").await;
    let begin = served.stat().head;
    world.append("a/journal", &content).await;
    served.replica().roll().expect("the log takes it");
    let head = served.replica().head();
    until("it is persisted", || async { served.replica().persisted() == head }).await;

    // Case: the URLs that ListFragments signs are fetched by anybody, and no other ones are.
    let request = FragmentsRequest {
        signature_ttl: Some(Duration::from_secs(60)),
        ..FragmentsRequest::new(journal("a/journal"))
    };
    let resolution = world.broker.resolve(&Ask::from(&request)).await.expect("it resolves");
    let page = world.broker.fragments(&resolution, &request).await.expect("it is listed");
    let last = page.fragments.last().expect("it is stored");
    assert_eq!(last.fragment.span, Span::between(begin, head));
    assert_eq!(fetch(&last.signed_url).await.expect("it is signed"), content);
    let unsigned = last.signed_url.split('?').next().expect("a path");
    fetch(unsigned).await.expect_err("nobody reads without a signature");

    // Case: a broker that has nothing goes on at the bucket's end, and reads it.
    let after = World::new().await;
    let served = create(&after, &url, "a/journal").await;
    assert_eq!(served.stat().head, head);
    let (metadata, read) = after.messages("a/journal", ReadFrom::At(begin), |_| ()).await;
    assert_eq!(read, content);
    let shown = metadata.first().expect("metadata");
    assert_eq!(fetch(&shown.fragment_url).await.expect("it is signed"), content);
    let appended = after.append("a/journal", "more").await;
    assert_eq!(appended.span, Span::at(head, 4));
    assert_ne!(appended.span.begin(), Offset::ZERO);
}

/// Fragments of many parts, of which a few readers may fetch several at once.
#[tokio::test]
async fn large_fragments_come_whole_to_many_readers_at_once() {
    let url = store();
    let world = World::new().await;
    let served = create(&world, &url, "a/large").await;
    let begin = served.stat().head;
    let mut expected = Vec::new();
    for fragment in 0..2 {
        let lines = (0..700_000).map(|line| format!("{fragment}: line {line:>16}\n"));
        let content: String = lines.collect();
        world.append("a/large", &content).await;
        served.replica().roll().expect("the log takes it");
        expected.push(content);
    }
    let (expected, head) = (expected.concat(), served.replica().head());
    assert!(expected.len() > 32 << 20, "several parts a fragment");
    until("it is persisted", || async { served.replica().persisted() == head }).await;

    // Case: memory for four readers in parts, and for none; files, and API
    for memory in [Memory::DEFAULT, Memory::of(Memory::MIN)] {
        let after = World::with(|config| config.memory = memory).await;
        create(&after, &url, "a/large").await;
        let at = u32::try_from(begin.get()).expect("a bucket of one run");
        let files = (0..6).map(|_| async { after.read("a/large", at).await.expect("stored") });
        for read in futures::future::join_all(files).await {
            assert!(read == expected, "{} bytes of {}", read.len(), expected.len());
        }
        let apis = (0..6).map(|_| after.messages("a/large", ReadFrom::At(begin), |_| ()));
        for (_, read) in futures::future::join_all(apis).await {
            assert!(read == expected, "{} bytes of {}", read.len(), expected.len());
        }
    }
}
