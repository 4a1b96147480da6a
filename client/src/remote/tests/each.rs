//! Appends that go by themselves, over the one stream of them.

use super::wires::wired;
use super::*;
use crate::limits::{EACH_LEN, EACH_MAX};
use crate::retry::{Pauses, is_worth_a_retry, patiently};
use futures::FutureExt;
use futures::future::join_all;
use protocol::wire::courant::Fault;

/// An append of a writer of its own.
pub(super) fn of_writer(number: usize, name: &str, content: &str) -> Append {
    let id = [u8::try_from(number % 251).expect("below 251"); 16];
    let writer = Some(Writer { id, sequence: number as u64 });
    Append { writer, ..Append::new(journal(name), Bytes::from(content.to_owned())) }
}

/// Appends, and asks again while that is worth it.
pub(super) async fn surely(remote: &Remote, append: Append) -> Result<Appended, Error> {
    patiently(PATIENCE, Pauses::new(1), || remote.append(append.clone())).await
}

#[tokio::test]
async fn what_is_appended_at_once_goes_together_and_is_answered_singly() {
    let (double, remote) = pair(true).await;
    let names = ["local/one", "local/two", "local/three"];
    names.iter().for_each(|name| double.create(name));
    let lines: Vec<String> = (0..200).map(|number| format!("line {number}\n")).collect();
    let asked = lines
        .iter()
        .enumerate()
        .map(|(number, line)| remote.append(of_writer(number, names[number % names.len()], line)));
    let answers = join_all(asked).await;
    for (number, (line, answer)) in lines.iter().zip(answers).enumerate() {
        let Appended { span, repeated, .. } = answer.expect("appended");
        let bytes = double.bytes(names[number % names.len()]);
        let (begin, end) = (span.begin().as_u64() as usize, span.end().as_u64() as usize);
        assert_eq!((&bytes[begin..end], repeated), (line.as_bytes(), false));
    }
    assert_eq!((double.requests("each"), double.requests("one of each")), (1, 200));
    assert!(double.requests("each message") < 100, "{}", double.requests("each message"));
    assert_eq!(double.requests("append"), 0);
}

#[tokio::test]
async fn a_refusal_is_of_its_append_alone() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.refuse(Fault::OverRate);
    let offset = |at| Some(Offset::from(at));
    let asked = [
        of_writer(1, "local/log", "over the rate\n"),
        of_writer(2, "local/log", "one\n"),
        of_writer(3, "local/none", "nowhere\n"),
        Append { offset: offset(99), ..of_writer(4, "local/log", "elsewhere\n") },
        Append { offset: offset(4), ..of_writer(5, "local/log", "two\n") },
    ];
    let answers = join_all(asked.map(|append| remote.append(append))).await;
    let told: Vec<_> = answers.iter().map(|answer| answer.as_ref().map(|made| made.span)).collect();
    assert!(matches!(told[0], Err(Error::OverRate { .. })), "{told:?}");
    assert!(matches!(told[1], Ok(span) if span.begin() == Offset::ZERO), "{told:?}");
    assert!(matches!(told[2], Err(Error::NotFound(_))), "{told:?}");
    let ended = Offset::from(4);
    assert!(matches!(told[3], Err(Error::WrongOffset { head, .. }) if *head == ended), "{told:?}");
    assert!(matches!(told[4], Ok(span) if span.begin() == ended), "{told:?}");
    assert_eq!(double.bytes("local/log"), b"one\ntwo\n");
    assert_eq!(double.requests("each"), 1, "the stream goes on");
}

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_repeats_nothing() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    for round in 0..10 {
        // The answer is lost to one, and with the stream to all that are under way.
        double.lose_answers(1);
        let asked = (0..20).map(|number| {
            let number = round * 20 + number;
            surely(&remote, of_writer(number, "local/log", "0123456789\n"))
        });
        let answers = join_all(asked).await;
        let mut begins: Vec<_> =
            answers.into_iter().map(|answer| answer.expect("appended").span.begin()).collect();
        begins.sort();
        let first = u32::try_from(round).expect("small") * 20;
        let expected: Vec<_> = (first..first + 20).map(|at| Offset::from(at * 11)).collect();
        assert_eq!(begins, expected);
    }
    assert_eq!(double.bytes("local/log"), b"0123456789\n".repeat(200));
    assert!(double.requests("each") > 10, "the streams were cut");
    assert_eq!(double.requests("append"), 0);
    // Case: one attempt fails with what a retry is worth, and is not told as unknown
    double.lose_answers(1);
    let error = remote.append(of_writer(1, "local/log", "x")).await.expect_err("cut");
    assert!(is_worth_a_retry(&error), "{error}");
}

#[tokio::test]
async fn what_may_not_go_over_the_stream_goes_by_a_call() {
    // Case: the append, and whether it is a call
    let long = "x".repeat(EACH_LEN);
    let cases = [
        (of_writer(1, "local/log", ""), false),
        (of_writer(2, "local/log", &long), false),
        (of_writer(3, "local/log", &(long.clone() + "x")), true),
        (Append { writer: None, ..of_writer(4, "local/log", "x") }, true),
        (Append { staged: Some(staged(b"rest", 4)), ..of_writer(5, "local/log", "x") }, true),
    ];
    for (append, is_call) in cases {
        let (double, remote) = pair(true).await;
        double.create("local/log");
        let len = append.content_len();
        assert_eq!(remote.append(append).await.expect("appended").span.len(), len);
        let asked = (double.requests("one of each"), double.requests("append"));
        assert_eq!(asked, if is_call { (0, 1) } else { (1, 0) });
    }
}

#[tokio::test]
async fn a_broker_that_has_no_such_stream_gets_calls() {
    // Case: it is known not to have them; it is another one than it was; it is one of Gazette
    for (speaks_courant, is_known, asked) in [(true, true, 0), (true, false, 1), (false, true, 0)] {
        let (double, remote) = pair(speaks_courant).await;
        double.create("local/log");
        if is_known {
            double.without_sessions();
        }
        remote.probe().await.expect("there");
        double.without_sessions();
        for number in 1..=3 {
            let appended = remote.append(of_writer(number, "local/log", "line\n")).await;
            appended.expect("appended");
        }
        assert_eq!(double.bytes("local/log"), b"line\nline\nline\n");
        assert_eq!(double.requests("each"), asked);
        let calls = if speaks_courant { "append" } else { "gazette.append" };
        assert_eq!(double.requests(calls), 3);
    }
}

#[tokio::test]
async fn what_nobody_waits_for_is_given_up() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.hold_sessions(true);
    {
        let mut given_up = remote.append(of_writer(1, "local/log", "given up\n")).boxed();
        let sent = double.until(|double| double.requests("each message") == 1);
        tokio::select! {
            biased;
            answer = &mut given_up => panic!("{answer:?}"),
            () = sent => {}
        }
    }
    let waits = remote.append(of_writer(2, "local/log", "waits\n"));
    let going_on = async {
        double.until(|double| double.requests("each message") > 1).await;
        double.hold_sessions(false);
    };
    let (answer, ()) = tokio::join!(waits, going_on);
    answer.expect("appended");
    assert_eq!(double.bytes("local/log"), b"waits\n");
}

#[tokio::test]
async fn what_gets_nowhere_stops_no_others() {
    let (double, remote) = pair(true).await;
    double.create("local/log");
    double.hold_sessions(true);
    let stuck = (0..EACH_MAX).map(|number| {
        let (remote, number) = (remote.clone(), number + 1);
        tokio::spawn(async move { remote.append(of_writer(number, "local/log", "s\n")).await })
    });
    let stuck: Vec<_> = stuck.collect();
    double.until(|double| double.requests("each message") > 0).await;
    // Those that were spawned are polled before this goes on, on a runtime of one thread.
    tokio::task::yield_now().await;
    let other = remote.append(of_writer(0, "local/log", "other\n"));
    timeout(LIMIT, other).await.expect("in time").expect("appended");
    assert_eq!((double.bytes("local/log"), double.requests("append")), (b"other\n".to_vec(), 1));
    double.hold_sessions(false);
    for answer in join_all(stuck).await {
        answer.expect("no panic").expect("appended");
    }
}

#[tokio::test]
async fn who_is_dropped_leaves_no_connection() {
    // Case: an append that went over the stream of them, one of a session
    for is_of_session in [false, true] {
        let (_double, remote, wires) = wired().await;
        if is_of_session {
            let appender = Appender::new(remote, [7; 16], PATIENCE);
            appender.append(append("local/log", b"line\n")).await.expect("appended");
        } else {
            remote.append(of_writer(1, "local/log", "line\n")).await.expect("appended");
            drop(remote);
        }
        let is_closed = async {
            while !wires.are_closed() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, is_closed).await.expect("it is closed");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again() {
    let (double, remote, wires) = wired().await;
    let mut made = 0;
    for round in 0..20 {
        let asked = (0..10).map(|number| {
            let append = of_writer(round * 10 + number, "local/log", "0123456789\n");
            let remote = remote.clone();
            tokio::spawn(async move { surely(&remote, append).await })
        });
        let asked: Vec<_> = asked.collect();
        // Case: nothing is made yet, some is, all is
        let some = made + round * 10 / 19;
        double.until(|double| double.bytes("local/log").len() >= some * 11).await;
        wires.cut();
        for answer in join_all(asked).await {
            answer.expect("no panic").expect("appended");
        }
        made += 10;
        assert_eq!(double.bytes("local/log").len(), made * 11, "each is made once");
    }
    assert!(double.requests("each") > 10, "streams were begun again");
}
