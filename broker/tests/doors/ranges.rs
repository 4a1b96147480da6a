//! Ranges as download tools ask for them, beside the gateway's own answers.

use crate::world::World;
use broker::server::Settings;

async fn with_journal(content: &'static [u8]) -> World {
    let world = World::start(Settings::default()).await;
    world.create("logs/app", content).await;
    world
}

#[tokio::test]
async fn ranges_are_answered_with_their_true_length() {
    let world = with_journal(b"0123456789").await;
    // Case: the range, the status, the body, and what the answer says it is
    let cases = [
        ("bytes=0-", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=7-", 206, "789", "bytes 7-9/10"),
        ("bytes=2-4", 206, "234", "bytes 2-4/10"),
        ("bytes=8-99", 206, "89", "bytes 8-9/10"),
        ("bytes=0-0", 206, "0", "bytes 0-0/10"),
        ("bytes=-3", 206, "789", "bytes 7-9/10"),
        ("bytes=-99", 206, "0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, "the journal has bytes 0..10\n", "bytes */10"),
        ("bytes=99-", 416, "the journal has bytes 0..10\n", "bytes */10"),
        ("bytes=-0", 416, "the journal has bytes 0..10\n", "bytes */10"),
    ];
    for (range, status, body, said) in cases {
        let more = format!("Range: {range}\r\n");
        let answer = world.ask("GET", "/logs/app", &more).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{range}");
        assert_eq!(answer.header("content-range"), said, "{range}");
        assert_eq!(answer.header("content-length"), body.len().to_string(), "{range}");
        assert_eq!(answer.header("accept-ranges"), "bytes");
        assert_eq!(answer.header("trailer"), "");
        if status == 206 {
            assert_eq!(answer.header("x-write-head"), "10");
            let head = world.ask("HEAD", "/logs/app", &more).await;
            let lengths = ["content-length", "content-range", "accept-ranges", "etag"];
            for name in lengths {
                assert_eq!(head.header(name), answer.header(name), "{range} {name}");
            }
            assert_eq!((head.status, head.body.as_str()), (206, ""), "{range}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn a_put_of_a_part_is_refused() {
    let world = with_journal(b"0123456789").await;
    let put = "Content-Range: bytes 8-11/12\r\nContent-Length: 4\r\n\r\n89ab";
    let answer = world.ask("PUT", "/logs/app", put).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("without Content-Range"), "{answer:?}");
    assert_eq!(world.ask("GET", "/logs/app", "").await.body, "0123456789");
    world.stop().await;
}

#[tokio::test]
async fn lines_of_text_are_said_to_be_that() {
    let world = with_journal(b"0123456789").await;
    // Case: what is asked for, and the status
    let cases = [
        ("/logs/none", "", 404),
        ("/logs/app?offset=10", "", 416),
        ("/logs/app", "Range: bytes=10-\r\n", 416),
        ("/logs/app?%3Cscript%3E", "", 400),
        ("/logs//app", "", 301),
        ("/debug/ready", "", 200),
        ("/debug/%3Cscript%3E", "", 404),
    ];
    for (target, more, status) in cases {
        let answer = world.ask("GET", target, more).await;
        assert_eq!(answer.status, status, "{target}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8", "{target}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{target}");
    }
    world.stop().await;
}

#[tokio::test]
async fn what_is_no_range_is_the_gateways_own_read() {
    let world = with_journal(b"0123456789").await;
    // Case: target, header, body
    let cases = [
        ("/logs/app", "", "0123456789"),
        ("/logs/app", "Range: lines=2-\r\n", "0123456789"),
        ("/logs/app", "Range: bytes=4-2\r\n", "0123456789"),
        ("/logs/app", "Range: bytes=0-1,4-5\r\n", "0123456789"),
        // Case: parameters say where a read begins, as Gazette has it
        ("/logs/app?offset=8", "Range: bytes=2-\r\n", "89"),
        ("/logs/app?block=false", "Range: bytes=2-\r\n", "0123456789"),
    ];
    for (target, more, body) in cases {
        let answer = world.ask("GET", target, &format!("TE: trailers\r\n{more}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (206, body), "{target} {more}");
        let range = format!("bytes {}-9223372036854775807/9223372036854775807", 10 - body.len());
        assert_eq!(answer.header("content-range"), range, "{target} {more}");
        assert_eq!(answer.header("x-close-error"), "OFFSET_NOT_YET_AVAILABLE");
        assert_eq!(answer.header("accept-ranges"), "");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_range_of_another_journal_is_the_whole_of_this_one() {
    let world = with_journal(b"0123456789").await;
    let first = world.ask("GET", "/logs/app", "Range: bytes=0-3\r\n").await;
    let tag = first.header("etag");
    assert!(tag.len() == 18 && tag.starts_with('"'), "{tag}");
    // Case: what the client knows, status, body
    let cases = [
        (tag, 206, "456789"),
        ("\"0000000000000000\"", 200, "0123456789"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 200, "0123456789"),
    ];
    for (known, status, body) in cases {
        let more = format!("Range: bytes=4-\r\nIf-Range: {known}\r\n");
        let answer = world.ask("GET", "/logs/app", &more).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{known}");
        assert_eq!(answer.header("content-length"), body.len().to_string());
        assert_eq!(answer.header("content-range").is_empty(), status == 200);
        assert_eq!(answer.header("etag"), tag);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_journal_without_bytes_or_none_has_no_ranges() {
    let world = with_journal(b"").await;
    let empty = world.ask("GET", "/logs/app", "Range: bytes=0-\r\n").await;
    assert_eq!((empty.status, empty.header("content-range")), (416, "bytes */0"));
    let none = world.ask("GET", "/no/such", "Range: bytes=0-\r\n").await;
    assert_eq!((none.status, none.body.as_str()), (404, "JOURNAL_NOT_FOUND\n"));
    world.stop().await;
}

#[tokio::test]
async fn curl_resumes_a_download() {
    let world = with_journal(b"0123456789").await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("part");
    std::fs::write(&file, "0123").unwrap();
    let url = format!("{}/logs/app", world.url);
    let curl = |file: &std::path::Path| {
        let mut curl = tokio::process::Command::new("curl");
        curl.args(["-s", "--fail", "-C", "-", "-o"]).arg(file).arg(&url);
        curl
    };
    assert!(curl(&file).status().await.expect("curl is installed").success());
    assert_eq!(std::fs::read(&file).unwrap(), b"0123456789");
    // Case: nothing is left to fetch, and it stays as it is
    let _ = curl(&file).status().await.unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"0123456789");
    world.stop().await;
}

#[tokio::test]
async fn odd_paths_are_moved() {
    let world = with_journal(b"0123456789").await;
    let answer = world.ask("GET", "/logs//app?offset=3", "").await;
    assert_eq!((answer.status, answer.header("location")), (301, "/logs/app?offset=3"));
    // Case: a redirect that a client takes for success would lose what it sent
    assert_eq!(world.ask("PUT", "/logs//app", "lost").await.status, 400);
    world.stop().await;
}
