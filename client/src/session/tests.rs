//! Appends that are pushed, against a broker in memory over a real connection.

use crate::remote::double::Double;
use crate::{Append, Appender, Durability, Error, Receipt, Remote};
use bytes::Bytes;
use futures::FutureExt;
use protocol::wire::courant::Fault;
use protocol::{Journal, Life};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const ID: [u8; 16] = [7; 16];

fn append(name: &str, content: impl Into<Bytes>) -> Append {
    let journal: Journal = name.parse().expect("valid");
    Append::new(journal, content.into())
}

async fn pair(speaks_courant: bool) -> (Double, Appender) {
    let (double, url) = Double::start(speaks_courant).await;
    double.create("local/log");
    double.create("local/other");
    let remote = Arc::new(Remote::new(&url).expect("a valid URL"));
    (double, Appender::new(remote, ID, PATIENCE))
}

/// Pushes numbered lines, and answers all of them joined.
async fn push_lines(appender: &Appender, count: usize) -> (Vec<Receipt>, String) {
    let mut receipts = Vec::new();
    let mut all = String::new();
    for number in 0..count {
        let line = format!("line {number}\n");
        all += &line;
        receipts.push(appender.push(append("local/log", line)).await);
    }
    (receipts, all)
}

/// Expects the receipts of lines to lie one behind the other, from an offset on.
async fn expect_in_order(receipts: Vec<Receipt>, mut at: u64) {
    for receipt in receipts {
        let appended = receipt.appended().await.expect("appended");
        assert_eq!(appended.span.begin().as_u64(), at);
        at = appended.span.end().as_u64();
    }
}

#[tokio::test]
async fn what_is_pushed_goes_together_and_each_append_has_its_span() {
    // Case: a broker with sessions, one without, one of Gazette
    for (speaks_courant, has_sessions) in [(true, true), (true, false), (false, false)] {
        let (double, appender) = pair(speaks_courant).await;
        if !has_sessions {
            double.without_sessions();
        }
        double.append("local/log", b"before\n");
        let (receipts, all) = push_lines(&appender, 3000).await;
        let other = appender.push(append("local/other", "else\n")).await;
        appender.flush().await.expect("all are made");
        expect_in_order(receipts, 7).await;
        assert_eq!(other.appended().await.expect("appended").span.len(), 5);
        assert!(double.bytes("local/log") == format!("before\n{all}").as_bytes());
        let of_ours = if has_sessions { "group" } else { "append" };
        let asked = double.requests(if speaks_courant { of_ours } else { "gazette.append" });
        assert!((2..1000).contains(&asked), "{asked} requests of 3001 appends");
    }
}

#[tokio::test]
async fn a_session_that_is_cut_anywhere_repeats_nothing() {
    for lost in 1..6 {
        let (double, appender) = pair(true).await;
        let mut at = 0;
        let mut expected = String::new();
        for _ in 0..4 {
            double.lose_answers(lost);
            // Groups of several kilobytes, several of which are under way.
            let (receipts, all) = push_lines(&appender, 20_000).await;
            expect_in_order(receipts, at).await;
            at += all.len() as u64;
            expected += &all;
            // Case: an answer is not lost while another is waited for
            double.lose_answers(0);
        }
        assert!(double.bytes("local/log") == expected.as_bytes(), "{lost}");
        assert!(double.requests("appends") > 1, "the session was cut");
    }
}

#[tokio::test]
async fn a_refused_append_stops_its_journal_until_it_was_told() {
    let (double, appender) = pair(true).await;
    double.refuse(Fault::OverSize);
    let refused = appender.push(append("local/log", "one\n")).await;
    assert!(matches!(refused.appended().await, Err(Error::OverSize { .. })));
    // Case: what follows does not overtake it, also what goes by itself
    for content in ["two\n".into(), "x".repeat(100_000)] {
        let behind = appender.push(append("local/log", content)).await;
        assert!(matches!(behind.appended().await, Err(Error::OverSize { .. })));
    }
    // Case: other journals go on
    let other = appender.push(append("local/other", "else\n")).await;
    assert!(other.appended().await.is_ok());
    assert!(matches!(appender.flush().await, Err(Error::OverSize { .. })));
    appender.flush().await.expect("it was told");
    let three = appender.push(append("local/log", "three\n")).await;
    assert_eq!(three.appended().await.expect("appended").span.len(), 6);
    // Case: whoever waits for one append has been told
    let missing = append("local/none", "x");
    assert!(matches!(appender.append(missing.clone()).await, Err(Error::NotFound(_))));
    double.create("local/none");
    appender.append(missing).await.expect("it is there");
    assert_eq!(double.bytes("local/log"), b"three\n");
}

#[tokio::test]
async fn what_passes_is_asked_again_in_order() {
    let (double, appender) = pair(true).await;
    double.refuse(Fault::Later);
    double.refuse(Fault::Later);
    let (receipts, all) = push_lines(&appender, 5000).await;
    expect_in_order(receipts, 0).await;
    assert!(double.bytes("local/log") == all.as_bytes());
}

#[tokio::test]
async fn appends_on_other_terms_wait_for_those_before_them() {
    let (double, appender) = pair(true).await;
    let mut receipts = Vec::new();
    for durability in [Durability::Memory, Durability::Disk, Durability::Disk] {
        let append = Append { durability: Some(durability), ..append("local/log", "line\n") };
        receipts.push(appender.push(append).await);
    }
    expect_in_order(receipts, 0).await;
    assert_eq!(double.bytes("local/log"), b"line\nline\nline\n");
    // Case: a life that is over
    let old = Append { life: Some(Life::new(1)), ..append("local/log", "old\n") };
    assert!(matches!(appender.append(old).await, Err(Error::Deleted(_))));
}

#[tokio::test]
async fn long_appends_go_by_themselves_and_in_their_place() {
    let (double, appender) = pair(true).await;
    let long = "x".repeat(100_000);
    let mut receipts = Vec::new();
    for content in ["one\n", &long, "two\n"] {
        receipts.push(appender.push(append("local/log", content.to_owned())).await);
    }
    expect_in_order(receipts, 0).await;
    assert!(double.bytes("local/log") == format!("one\n{long}two\n").as_bytes());
    assert_eq!(double.requests("append"), 1);
}

#[tokio::test]
async fn what_is_not_answered_is_bounded_and_given_up_in_time() {
    let (double, url) = Double::start(true).await;
    double.create("local/log");
    double.hold_sessions(true);
    let remote = Arc::new(Remote::new(&url).expect("a valid URL"));
    let appender = Appender::new(remote.clone(), ID, Duration::from_millis(500));
    let mut receipts = Vec::new();
    let piece = Bytes::from(vec![b'x'; 32 << 10]);
    while let Some(receipt) = appender.push(append("local/log", piece.clone())).now_or_never() {
        receipts.push(receipt);
        assert!(receipts.len() <= 32, "1 MiB of a journal waits");
    }
    assert_eq!(receipts.len(), 32);
    // Case: what was sent may have been made; what follows is told the same
    for receipt in receipts {
        assert!(matches!(receipt.appended().await, Err(Error::Unknown)));
    }
    assert!(matches!(appender.flush().await, Err(Error::Unknown)));
    // Case: it goes on, with what is pushed from then on
    double.hold_sessions(false);
    appender.append(append("local/log", "later\n")).await.expect("appended");
    assert!(double.bytes("local/log").ends_with(b"later\n"));

    // Case: nothing was sent to a broker that is not there
    let nobody = Arc::new(Remote::new("http://127.0.0.1:1").expect("a valid URL"));
    let appender = Appender::new(nobody, ID, Duration::from_millis(500));
    let told = appender.append(append("local/log", "x")).await;
    assert!(matches!(told, Err(Error::Unreachable(_))), "{told:?}");
}
