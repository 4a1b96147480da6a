//! Journals over HTTP/1.1: by hand over a socket, and with curl as it comes.

use crate::http::{self, Answer, parse};
use crate::world::{World, append, spec};
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

async fn ask(world: &World, method: &str, target: &str, more: &str) -> Answer {
    http::ask(TcpStream::connect(world.address).await.unwrap(), method, target, more).await
}

async fn with_journal(content: &[u8]) -> World {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    append(&mut world.gazette().await, "logs/app", content).await;
    world
}

#[tokio::test]
async fn a_get_reads_to_the_head() {
    let world = with_journal(b"0123456789").await;
    // Case: target, body, content range
    for (target, body, begin) in [
        ("/logs/app", "0123456789", 0),
        ("/logs/app?offset=7", "789", 7),
        ("/logs/%61pp?Offset=9&block=false", "9", 9),
        ("/logs/app;meta?offset=8", "89", 8),
    ] {
        let answer = ask(&world, "GET", target, "TE: trailers\r\n").await;
        assert_eq!((answer.status, answer.body.as_str()), (206, body), "{target}");
        let range = format!("bytes {begin}-9223372036854775807/9223372036854775807");
        assert_eq!(answer.header("content-range"), range);
        assert_eq!(answer.header("x-write-head"), "10");
        assert_eq!(answer.header("trailer"), "X-Close-Error");
        assert_eq!(answer.header("x-close-error"), "OFFSET_NOT_YET_AVAILABLE");
        assert_eq!(answer.header("location"), world.url("/logs/app"));
        assert!(answer.header("x-route-token").starts_with("members:<zone:\"local\" suffix:"));
        assert!(answer.header("x-fragment-name").starts_with("0000000000000000-"), "{answer:?}");
    }
    world.stop().await;
}

#[tokio::test]
async fn requests_that_cannot_be_served_say_why() {
    let world = with_journal(b"0123456789").await;
    world.apply([gazette_read_only("logs/read-only"), write_only("logs/write-only")]).await;
    let cases = [
        ("GET", "/logs/app?offset=10", 416, "OFFSET_NOT_YET_AVAILABLE\n"),
        ("GET", "/logs/app?offset=-1", 416, "OFFSET_NOT_YET_AVAILABLE\n"),
        ("GET", "/no/such", 404, "JOURNAL_NOT_FOUND\n"),
        (
            "PUT",
            "/no/such",
            404,
            "no/such: JOURNAL_NOT_FOUND: nothing was appended; create it first, with courant \
             journals apply or by writing to its file in a mount\n",
        ),
        ("GET", "/logs/write-only", 500, "NOT_ALLOWED\n"),
        ("GET", "/a", 400, "Journal: invalid length (1; expected 4 <= length <= 512)\n"),
        ("GET", "/logs/app/", 400, "Journal: must be a clean path (logs/app/)\n"),
        (
            "GET",
            "/logs/app?ofset=1",
            400,
            "unknown parameter \"ofset\" (expected offset or block)\n",
        ),
        ("PUT", "/logs/app?offset=1", 400, "unknown parameter \"offset\" (expected none)\n"),
        ("POST", "/logs/app", 400, "unknown method: POST\n"),
        ("DELETE", "/logs/app", 400, "unknown method: DELETE\n"),
        ("GET", "/debug/ready", 200, "ready\n"),
    ];
    for (method, target, status, body) in cases {
        let answer = ask(&world, method, target, "").await;
        let found = (answer.status, answer.body.as_str());
        assert_eq!(found, (status, body), "{method} {target}");
        if status == 416 {
            assert_eq!(answer.header("x-write-head"), "10");
        }
    }
    let refused = ask(&world, "PUT", "/logs/read-only", "Content-Length: 0\r\n").await;
    assert_eq!(refused.status, 204, "a barrier is no content: {refused:?}");
    world.stop().await;
}

fn gazette_read_only(name: &str) -> protocol::wire::gazette::JournalSpec {
    protocol::wire::gazette::JournalSpec { flags: 1, ..spec(name) }
}

fn write_only(name: &str) -> protocol::wire::gazette::JournalSpec {
    protocol::wire::gazette::JournalSpec { flags: 2, ..spec(name) }
}

#[tokio::test]
async fn a_head_request_has_the_headers_alone() {
    let world = with_journal(b"0123456789").await;
    let answer = ask(&world, "HEAD", "/logs/app?offset=4", "").await;
    assert_eq!((answer.status, answer.body.as_str()), (206, ""));
    assert!(answer.header("content-range").starts_with("bytes 4-"));
    // Case: the idiom for the write head.
    let answer = ask(&world, "HEAD", "/logs/app?offset=-1", "").await;
    assert_eq!((answer.status, answer.header("x-write-head")), (416, "10"));
    world.stop().await;
}

#[tokio::test]
async fn a_put_is_one_append() {
    let world = with_journal(b"0123456789").await;
    // Case: headers and body, commit, sum of the content
    for (more, begin, end, sum) in [
        ("Content-Length: 3\r\n\r\nabc", "10", "13", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n",
            "13",
            "16",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
        ),
        ("Content-Length: 0\r\n", "16", "16", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ] {
        let answer = ask(&world, "PUT", "/logs/app", more).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        let commit = (answer.header("x-commit-begin"), answer.header("x-commit-end"));
        assert_eq!(commit, (begin, end));
        assert_eq!(answer.header("x-write-head"), end);
        assert_eq!(answer.header("x-commit-sha1-sum"), sum);
        assert_eq!(answer.header("location"), world.url("/logs/app"));
    }
    assert_eq!(ask(&world, "GET", "/logs/app?offset=10", "").await.body, "abcabc");
    world.stop().await;
}

#[tokio::test]
async fn a_put_that_breaks_off_appends_nothing() {
    let world = with_journal(b"0123456789").await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let request = b"PUT /logs/app HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf";
    stream.write_all(request).await.unwrap();
    drop(stream);
    let answer = ask(&world, "PUT", "/logs/app", "Content-Length: 4\r\n\r\nnext").await;
    assert_eq!(answer.header("x-commit-begin"), "10");
    assert_eq!(ask(&world, "GET", "/logs/app?offset=10", "").await.body, "next");
    world.stop().await;
}

#[tokio::test]
async fn a_refused_put_is_told_to_who_sends_it_whole() {
    let world = with_journal(b"").await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let len = 8 << 20;
    let head =
        format!("PUT /no/such HTTP/1.1\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // Such a client looks at the answer only when it has sent everything.
    stream.write_all(&vec![b'x'; len]).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(parse(&String::from_utf8(answer).unwrap()).status, 404);
    world.stop().await;
}

fn curl(arguments: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--no-buffer"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command
}

#[tokio::test]
async fn curl_follows_and_appends() {
    let world = with_journal(b"first\n").await;
    let url = world.url("/logs/app");
    let follow = format!("{url}?offset=0&block=true");
    let mut reader = curl(&[&follow]).spawn().expect("curl is installed");
    let mut output = reader.stdout.take().unwrap();
    expect(&mut output, "first\n").await;

    let mut writer = curl(&["-T", "-", "--write-out", "%{http_code}", &url]).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"second\n").await.unwrap();
    input.write_all(b"third\n").await.unwrap();
    drop(input);
    let written = writer.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8(written.stdout).unwrap(), "204");
    expect(&mut output, "second\nthird\n").await;

    // The reader ends as at a head when the broker stops, not with a broken transfer.
    world.stop().await;
    let mut rest = String::new();
    output.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    assert!(reader.wait().await.unwrap().success());
}

async fn expect(output: &mut (impl AsyncReadExt + Unpin), text: &str) {
    let mut found = vec![0; text.len()];
    output.read_exact(&mut found).await.unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), text);
}

#[tokio::test]
async fn curl_sends_a_large_file_after_asking() {
    let world = with_journal(b"").await;
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| b'a' + (at % 23) as u8).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("large");
    std::fs::write(&file, &content).unwrap();
    let (file, url) = (file.to_str().unwrap(), world.url("/logs/app"));
    let put = curl(&["-H", "Expect: 100-continue", "-T", file, &url]).output().await.unwrap();
    assert!(put.status.success(), "{put:?}");
    let read = curl(&[&url]).output().await.unwrap();
    assert!(read.status.success() && read.stdout == content, "{} bytes", read.stdout.len());
    world.stop().await;
}
