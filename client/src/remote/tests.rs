//! The client against a broker in memory, over a real connection.

mod anchored;
mod away;
mod each;
mod waiting;
mod wires;

use super::double::Double;
use super::*;
use crate::{Appender, Durability, Piece, Reader, Staged, Writer};
use index::disk::{ForgetfulDisk, Open};
use protocol::request::{FragmentsRequest, ReadFrom};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Longer than anything here takes, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(60);

const PATIENCE: Duration = Duration::from_secs(30);

/// A double and its client.
async fn pair(speaks_courant: bool) -> (Double, Arc<Remote>) {
    let (double, url) = Double::start(speaks_courant).await;
    (double, Arc::new(Remote::new(&url).expect("a valid URL")))
}

fn journal(name: &str) -> Journal {
    name.parse().expect("valid")
}

fn read(name: &str, offset: u32, max: usize) -> Read {
    Read { journal: journal(name), life: None, offset: Offset::from(offset), max }
}

fn append(name: &str, content: &'static [u8]) -> Append {
    Append::new(journal(name), Bytes::from_static(content))
}

/// Everything from an offset on.
async fn drain(mut reader: Reader) -> (Vec<u8>, Vec<protocol::Span>) {
    let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
    while let Some(piece) = reader.next().await.expect("readable") {
        match piece {
            Piece::Content(_, content) => bytes.extend_from_slice(&content),
            Piece::Gap(span) => gaps.push(span),
        }
    }
    (bytes, gaps)
}

/// Bytes that wait in a file, as a mount stages them.
fn staged(content: &[u8], len: u64) -> Staged {
    let disk = ForgetfulDisk::new();
    let file = disk.open(Path::new("staged"), Open::New).expect("a new disk takes files");
    file.write_at(content, 7).expect("it has room");
    Staged::new(file, 7, len)
}

#[tokio::test]
async fn many_journals_are_asked_for_at_once_on_either_broker() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        let names: Vec<_> = (0..100).map(|number| journal(&format!("local/{number:02}"))).collect();
        for (number, name) in names.iter().enumerate().filter(|(number, _)| *number != 7) {
            double.create(name.as_str());
            let content = Bytes::from(vec![b'x'; number + 1]);
            remote.append(Append::new(name.clone(), content)).await.expect("appended");
        }
        // Case: one of them is not there, and another is asked for twice
        let mut asked = names[..10].to_vec();
        asked.push(names[3].clone());
        let stats_of = |asked| remote.stats(asked).expect("a broker tells of many");
        let mut stats = stats_of(&asked[..]).await.expect("told");
        stats.sort_by(|one, other| one.journal.cmp(&other.journal));
        stats.dedup();
        let singly = asked[..10].iter().map(|name| remote.stat(name));
        let singly: Vec<_> =
            futures::future::join_all(singly).await.into_iter().flatten().collect();
        assert_eq!(stats, singly, "{speaks_courant}");
        let heads: Vec<_> = stats.iter().map(|stat| stat.head.get()).collect();
        assert_eq!(heads, [1, 2, 3, 4, 5, 6, 7, 9, 10], "{speaks_courant}");
        // Case: none
        assert_eq!(stats_of(&[]).await.expect("told"), [], "{speaks_courant}");
        assert_eq!(stats_of(&names[7..8]).await.expect("told"), [], "{speaks_courant}");
    }
}

#[tokio::test]
async fn staged_content_is_one_append_on_either_broker() {
    let content: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        let rest = staged(&content, 700_000);
        let request = Append { staged: Some(rest), ..append("local/log", b"first ") };
        // Case: asked for again, the content is the same
        for begin in [0, 700_006] {
            let appended = remote.append(request.clone()).await.expect("appended");
            assert_eq!((appended.span.begin().get(), appended.span.len()), (begin, 700_006));
        }
        let (name, from) = (journal("local/log"), ReadFrom::At(Offset::ZERO));
        let (bytes, _) = drain(Reader::new(remote.clone(), name, from, 1)).await;
        let once = [b"first ", content.as_slice()].concat();
        assert!(bytes == [once.as_slice(), &once].concat(), "{speaks_courant}");
        // Case: what can't be read is not appended, and says so
        let short = staged(b"short", 6);
        let request = Append { staged: Some(short), ..append("local/log", b"") };
        let error = remote.append(request).await.expect_err("a part of it is missing");
        assert!(matches!(&error, Error::Io(why) if why.contains("can't be read")), "{error}");
        assert_eq!(remote.stat(&journal("local/log")).await.expect("there").head.get(), 1_400_012);
    }
}

#[tokio::test]
async fn journals_are_appended_to_and_read_on_either_broker() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        double.create("local/other");
        double.create("elsewhere/log");
        let request =
            Append { durability: Some(Durability::Memory), ..append("local/log", b"hello") };
        let appended = remote.append(request).await.expect("appended");
        assert_eq!((appended.span.begin().get(), appended.span.end().get()), (0, 5));

        let stat = remote.stat(&journal("local/log")).await.expect("there");
        assert_eq!((stat.head.get(), stat.life), (5, appended.life));
        assert!(matches!(remote.stat(&journal("local/none")).await, Err(Error::NotFound(_))));
        let listed = remote.list("local/").await.expect("listed");
        let names: Vec<&str> = listed.iter().map(|stat| stat.journal.as_str()).collect();
        assert_eq!(names, ["local/log", "local/other"]);

        assert_eq!(remote.read(read("local/log", 1, 3)).await.expect("read"), "ell");
        assert_eq!(remote.read(read("local/log", 5, 3)).await.expect("at the head"), "");
        let missing = remote.read(read("local/none", 0, 3)).await;
        assert!(matches!(missing, Err(Error::NotFound(_))));
    }
}

#[tokio::test]
async fn conditions_are_checked_and_told() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        double.append("local/log", b"12345");
        // Case: the offset that is expected, whether it is the head
        for (offset, expected) in [(0, false), (4, false), (5, true), (6, false)] {
            let offset = Some(Offset::from(offset));
            let appended = remote.append(Append { offset, ..append("local/log", b"") }).await;
            match appended {
                Err(Error::WrongOffset { head, .. }) => {
                    assert_eq!((head.get(), expected), (5, false))
                }
                other => assert!(other.is_ok() == expected, "{offset:?}: {other:?}"),
            }
        }
        let stat = remote.stat(&journal("local/log")).await.expect("there");
        double.remove("local/log");
        double.create("local/log");
        double.append("local/log", b"other bytes");
        let old = Read { life: Some(stat.life), ..read("local/log", 0, 5) };
        assert!(matches!(remote.read(old).await, Err(Error::Deleted(_))));
        let old = Append { life: Some(stat.life), ..append("local/log", b"") };
        assert!(matches!(remote.append(old).await, Err(Error::Deleted(_))));
    }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_applied_once() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.without_sessions();
    double.lose_answers(2);
    let appender = Appender::new(remote.clone(), [7; 16], PATIENCE);
    let appended = appender.append(append("local/log", b"once")).await.expect("appended");
    assert!(appended.repeated);
    assert_eq!(double.requests("append"), 3);
    let appended = appender.append(append("local/log", b" and on")).await.expect("appended");
    assert!(!appended.repeated);
    assert_eq!(double.bytes("local/log"), b"once and on");

    // Case: nobody can say whether it was applied, so it is not asked for again
    double.lose_answers(1);
    let unnamed = remote.append(append("local/log", b"!")).await;
    assert!(matches!(unnamed, Err(Error::Unknown)));
    assert_eq!(double.bytes("local/log"), b"once and on!");
}

#[tokio::test]
async fn a_gazette_broker_is_never_asked_twice_to_append() {
    let (double, remote) = pair(false).await;
    double.create("local/log");
    double.lose_answers(1);
    let appender = Appender::new(remote.clone(), [7; 16], PATIENCE);
    let appended = appender.append(append("local/log", b"once")).await;
    assert!(matches!(appended, Err(Error::Unknown)));
    assert_eq!(double.bytes("local/log"), b"once");

    let disk = Append { durability: Some(Durability::Disk), ..append("local/log", b"x") };
    assert!(matches!(remote.append(disk).await, Err(Error::NoDisk(_))));
    assert!(matches!(
        remote.sync(&journal("local/log"), Offset::ZERO).await,
        Err(Error::NoDisk(_))
    ));
    assert!(remote.create(&journal("local/log")).await.is_ok());
    let created = remote.create(&journal("local/new")).await;
    assert!(matches!(created, Err(Error::NotAllowed { .. })));
}

#[tokio::test]
async fn content_in_parts_is_committed_at_its_end_or_not_at_all() {
    for speaks_courant in [true, false] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        for commits in [false, true] {
            let (sender, parts) = mpsc::channel(4);
            let part = |text: &'static [u8]| AppendPart::Content(Bytes::from_static(text));
            sender.try_send(part(b"one ")).expect("room");
            sender.try_send(part(b"two")).expect("room");
            if commits {
                sender.try_send(AppendPart::Commit).expect("room");
            }
            drop(sender);
            let appended = remote.append_parts(append("local/log", b""), parts).await;
            assert_eq!(appended.is_ok(), commits);
        }
        assert_eq!(double.bytes("local/log"), b"one two");
    }
}

#[tokio::test]
async fn sequential_reads_share_a_stream() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
    double.append("local/log", &content);
    let mut found = Vec::new();
    loop {
        let at = u32::try_from(found.len()).expect("small");
        let bytes = remote.read(read("local/log", at, 128 << 10)).await.expect("readable");
        if bytes.is_empty() {
            break;
        }
        found.extend_from_slice(&bytes);
    }
    assert!(found == content);
    // Case: one stream for the content, one that found the head
    assert_eq!(double.requests("gazette.read"), 2);

    // Case: a stream that met the head says nothing about what came later
    double.append("local/log", b"more");
    let bytes = remote.read(read("local/log", 3_000_000, 100)).await.expect("readable");
    assert_eq!(bytes, "more");
    assert_eq!(remote.read(read("local/log", 3_000_004, 100)).await.expect("readable"), "");
    double.append("local/log", b"again");
    assert_eq!(remote.read(read("local/log", 3_000_004, 100)).await.expect("readable"), "again");
}

#[tokio::test]
async fn streams_that_nobody_drains_stop_nobody() {
    let (double, remote) = pair(true).await;
    let content = vec![7; 4 << 20];
    let names: Vec<String> = (0..3 * limits_of_streams()).map(|i| format!("local/{i}")).collect();
    for name in &names {
        double.create(name);
        double.append(name, &content);
        let bytes = remote.read(read(name, 0, 4096)).await.expect("readable");
        assert!(!bytes.is_empty());
    }
    for name in &names {
        assert!(!remote.read(read(name, 0, 4096)).await.expect("readable").is_empty());
    }
}

fn limits_of_streams() -> usize {
    crate::limits::OPEN_STREAMS / 2
}

#[tokio::test]
async fn bytes_that_are_gone_are_told_apart() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.append("local/log", b"0123456789");
    double.trim("local/log", 3);
    double.lose("local/log", 5..8);
    // Case: the offset, what is read or why not
    let trimmed = remote.read(read("local/log", 1, 10)).await.unwrap_err();
    assert!(matches!(trimmed, Error::Trimmed { span, .. } if span.to_string() == "1..3"));
    assert_eq!(remote.read(read("local/log", 3, 10)).await.expect("readable"), "34");
    let lost = remote.read(read("local/log", 6, 10)).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { span, .. } if span.to_string() == "6..8"));
    assert_eq!(remote.read(read("local/log", 8, 10)).await.expect("readable"), "89");

    let (name, from) = (journal("local/log"), ReadFrom::At(Offset::ZERO));
    let (bytes, gaps) = drain(Reader::new(remote.clone(), name, from, 1)).await;
    assert_eq!(bytes, b"3489");
    let gaps: Vec<String> = gaps.iter().map(ToString::to_string).collect();
    assert_eq!(gaps, ["0..3", "5..8"]);

    // Case: what is lost follows what is trimmed
    double.create("local/begin");
    double.append("local/begin", b"0123456789");
    double.trim("local/begin", 3);
    double.lose("local/begin", 3..6);
    let trimmed = remote.read(read("local/begin", 1, 10)).await.unwrap_err();
    assert!(matches!(trimmed, Error::Trimmed { span, .. } if span.to_string() == "1..3"));
    let lost = remote.read(read("local/begin", 4, 10)).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { span, .. } if span.to_string() == "4..6"));

    // Case: nothing follows what is lost, as right after a power cut
    double.create("local/cut");
    double.append("local/cut", b"0123456789");
    double.lose("local/cut", 6..10);
    let lost = remote.read(read("local/cut", 7, 10)).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { span, .. } if span.to_string() == "7..10"));
    assert_eq!(remote.read(read("local/cut", 10, 10)).await.expect("the head"), "");
}

#[tokio::test]
async fn a_reader_goes_on_where_a_connection_broke() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    let content: Vec<u8> = (0..400_000u32).map(|i| (i / 3) as u8).collect();
    double.append("local/log", &content);
    double.break_reads(&[100_000, 40_000, 0, 100_000]);
    let (name, from) = (journal("local/log"), ReadFrom::At(Offset::from(10)));
    let (bytes, gaps) = drain(Reader::new(remote, name, from, 1)).await;
    assert!(bytes == content[10..]);
    assert!(gaps.is_empty());
    assert_eq!(double.requests("gazette.read"), 5);
}

#[tokio::test]
async fn a_blocking_reader_waits_at_the_head() {
    for from in [ReadFrom::Head, ReadFrom::At(Offset::from(3))] {
        let (double, remote) = pair(true).await;
        double.create("local/log");
        double.append("local/log", b"old");
        let mut reader = Reader::new(remote, journal("local/log"), from, 1).blocking(true);
        let mut found = Vec::new();
        for (at, text) in ["one", "two", "three"].into_iter().enumerate() {
            // The read waits before the append is made.
            let appending = async {
                double.until(|double| double.requests("wait") > at).await;
                double.append("local/log", text.as_bytes());
            };
            let (piece, ()) = tokio::join!(timeout(LIMIT, reader.next()), appending);
            match piece.expect("in time").expect("readable") {
                Some(Piece::Content(_, content)) => found.extend_from_slice(&content),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, b"onetwothree");
    }
}

#[tokio::test]
async fn a_reader_ends_where_it_was_told() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.append("local/log", b"0123456789");
    let from = ReadFrom::At(Offset::from(2));
    let reader = Reader::new(remote, journal("local/log"), from, 1);
    let (bytes, _) = drain(reader.until(Some(Offset::from(6)))).await;
    assert_eq!(bytes, b"2345");
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let remote = Remote::new(&format!("http://{address}")).expect("a valid URL");
    let errors = [
        remote.probe().await.unwrap_err(),
        remote.append(append("local/log", b"x")).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::Unreachable(_)), "{error}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
    for url in ["nowhere", "127.0.0.1:80", "http://", "http://a b/", "ftp://a:1"] {
        assert!(matches!(Remote::new(url), Err(Error::Invalid(_))), "{url}");
    }
}

#[tokio::test]
async fn operators_are_answered() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    let listed = remote.list_specs("name:prefix=local/".parse().expect("valid")).await;
    let mut listed = listed.expect("listed");
    let spec = Box::new(listed.remove(0).spec);
    let change = |expect| protocol::request::Change::Upsert { spec: spec.clone(), expect };
    let apply =
        |expect| remote.apply(protocol::request::ApplyRequest { changes: vec![change(expect)] });
    let refused = apply(protocol::request::Expect::Absent).await;
    assert!(matches!(refused, Err(Error::Conflict(..))));
    assert!(apply(protocol::request::Expect::Any).await.expect("applied") > 0);

    let fragments = remote.fragments(FragmentsRequest::new(journal("local/log"))).await;
    let begins: Vec<i64> =
        fragments.expect("listed").iter().map(|listed| listed.fragment.begin().get()).collect();
    assert_eq!(begins, [0, 10]);
    // Case: as a mount asks; the double's fragments are local ones
    let stored = remote.stored(&journal("local/log"), Offset::ZERO, 100).await;
    assert_eq!(stored.expect("listed"), []);
    let found = remote.spec(&journal("local/log")).await.expect("there");
    assert_eq!(found.spec, *spec);
    let none = remote.spec(&journal("local/none")).await;
    assert!(matches!(none, Err(Error::NotFound(_))));
    let refused = remote.change(change(protocol::request::Expect::Absent)).await;
    assert!(matches!(refused, Err(Error::Conflict(..))));
    assert!(remote.change(change(protocol::request::Expect::Any)).await.expect("applied") > 0);

    let refused = remote.create(&journal("local/refused")).await;
    assert!(matches!(refused, Err(Error::Refused(..))));
    let deleted = remote.delete(&journal("local/log"), true, true, None).await.expect("said");
    assert_eq!(deleted.objects, ["local/log/object"]);
    assert!(remote.stat(&journal("local/log")).await.is_ok());
    remote.purge(&journal("local/log")).await.expect("purged");
    assert!(remote.stat(&journal("local/log")).await.is_err());
}

#[tokio::test]
async fn writers_number_their_appends() {
    let (_double, remote) = pair(true).await;
    let appender = Appender::new(remote, [9; 16], PATIENCE);
    let numbers: Vec<Writer> = (0..3).map(|_| appender.next_writer()).collect();
    let expected = [1, 2, 3].map(|sequence| Writer { id: [9; 16], sequence });
    assert_eq!(numbers, expected);
}
