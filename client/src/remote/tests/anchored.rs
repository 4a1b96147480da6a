//! Appends by offset: each is made once, though answers are lost and others append meanwhile.

use super::*;
use crate::Anchored;

fn anchored(remote: &Arc<Remote>) -> Anchored {
    Anchored::new(remote.clone(), PATIENCE, 7)
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_made_once() {
    let (double, remote) = pair(false).await;
    double.create("local/log");
    let mut writer = anchored(&remote);
    for content in [&b"one\n"[..], b"two\n", b"three\n"] {
        // Case: the answer is lost, at offset 0 too, which Gazette's protocol can't demand
        double.lose_answers(1);
        let appended = writer.append(append("local/log", content)).await.expect("made");
        assert_eq!(appended.span.len(), content.len() as u64);
        assert!(appended.repeated, "its bytes were found there");
    }
    assert_eq!(double.bytes("local/log"), b"one\ntwo\nthree\n");
}

#[tokio::test]
async fn writers_go_on_behind_each_other() {
    let (double, remote) = pair(false).await;
    double.create("local/log");
    let (mut one, mut two) = (anchored(&remote), anchored(&remote));
    for round in 0..5 {
        let content: &'static [u8] = if round % 2 == 0 { b"even\n" } else { b"odd\n" };
        one.append(append("local/log", content)).await.expect("made");
        // Case: the head that the other knows is an old one
        let appended = two.append(append("local/log", b"other\n")).await.expect("made");
        assert!(!appended.repeated);
        double.append("local/log", b"someone\n");
    }
    let text = String::from_utf8(double.bytes("local/log")).expect("text");
    assert_eq!(text.matches("other\n").count(), 5);
    assert_eq!(text.matches("even\n").count(), 3);
    assert_eq!(text.matches("odd\n").count(), 2);
}

#[tokio::test]
async fn an_append_that_was_not_made_is_made_behind_the_one_that_was() {
    let (double, remote) = pair(false).await;
    double.create("local/log");
    let mut writer = anchored(&remote);
    writer.append(append("local/log", b"first\n")).await.expect("made");
    // Case: no answer, and the bytes there are another's of the same length
    double.append("local/log", b"theirs");
    let appended = writer.append(append("local/log", b"second\n")).await.expect("made");
    assert_eq!(appended.span.begin(), Offset::from(12));
    assert_eq!(double.bytes("local/log"), b"first\ntheirssecond\n");
}

#[tokio::test]
async fn what_no_retry_mends_is_told_at_once() {
    let (_double, remote) = pair(false).await;
    let failed = anchored(&remote).append(append("local/none", b"x")).await;
    assert!(matches!(failed, Err(Error::NotFound(_))), "{failed:?}");
}
