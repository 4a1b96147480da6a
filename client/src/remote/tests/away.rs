//! A broker that goes without a word, or comes back as another one.

use super::each::{of_writer, surely};
use super::wires::{Wires, wired};
use super::*;
use crate::retry::{Pauses, patiently};

#[tokio::test]
async fn a_connection_on_which_nothing_comes_is_replaced() {
    let (double, remote, wires) = wired().await;
    let mut presence = remote.presence();
    remote.append(of_writer(1, "local/log", "one\n")).await.expect("appended");
    // Case: an append that is under way, and one that waits for growth
    let stat = remote.stat(&journal("local/log")).await.expect("it is there");
    let growing = remote.clone();
    let grown = tokio::spawn(async move {
        growing.grown(&stat.journal, stat.life, Offset::new(8).expect("small")).await
    });
    double.until(|double| double.polls().0 == 1).await;
    wires.silence();
    let appending = remote.clone();
    let appended =
        tokio::spawn(async move { surely(&appending, of_writer(2, "local/log", "two\n")).await });
    // Nothing here ends them but that the connection is found to be silent.
    presence.wait_for(Option::is_some).await.expect("the client lives");
    let why = presence.borrow().as_ref().map(|away| away.why.clone());
    appended.await.expect("no panic").expect("appended");
    presence.wait_for(Option::is_none).await.expect("the client lives");
    assert_eq!(why.as_deref(), Some("it does not answer"));
    assert_eq!(wires.len(), 2);
    assert_eq!(double.bytes("local/log"), b"one\ntwo\n", "each is made once");
    double.append("local/log", b"three\n");
    assert_eq!(grown.await.expect("no panic").expect("it grew").head.get(), 14);
}

/// Has the client speak to the double at `url` from here on.
async fn turn(remote: &Remote, wires: &Wires, url: &str) {
    wires.lead_to(url);
    wires.cut();
    // Whatever is asked over the connection that was cut fails, or finds out that there is another.
    let asked = || async { remote.list("local/").await.map(drop) };
    patiently(PATIENCE, Pauses::new(1), asked).await.expect("it is there");
    remote.probe().await.expect("it is there");
}

#[tokio::test]
async fn what_a_broker_speaks_is_asked_of_each_connection() {
    let (_double, remote, wires) = wired().await;
    let (older, older_url) = Double::start(true).await;
    let (newer, newer_url) = Double::start(true).await;
    let (theirs, their_url) = Double::start(false).await;
    older.without_sessions();
    for double in [&older, &newer, &theirs] {
        double.create("local/log");
    }
    let append = |number| {
        let remote = remote.clone();
        async move { remote.append(of_writer(number, "local/log", "line\n")).await }
    };
    for round in 1..=2 {
        // Case: one of Gazette, one that knows no streams of appends, one that does
        turn(&remote, &wires, &their_url).await;
        assert!(!Journals::knows_writers(&*remote));
        append(3 * round).await.expect("appended");
        turn(&remote, &wires, &older_url).await;
        assert!(Journals::knows_writers(&*remote));
        append(3 * round + 1).await.expect("appended");
        turn(&remote, &wires, &newer_url).await;
        append(3 * round + 2).await.expect("appended");
        let [calls, each] = ["append", "each"].map(|it| (older.requests(it), newer.requests(it)));
        assert_eq!((calls, each), ((round, 0), (0, round)));
        assert_eq!(theirs.bytes("local/log").len(), 5 * round);
    }
}
