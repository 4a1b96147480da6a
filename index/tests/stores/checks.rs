//! What every store must do that we claim to support: one set of checks for all.

use crate::trial::{self, Content, Trial, journal, local, put, put_with, random};
use bytes::Bytes;
use futures::TryStreamExt;
use index::name;
use index::store::StoreError;
use index::store::faulty::{FaultyStore, Manner, Operation};
use protocol::{Codec, Fragment, LabelSet, Offset, Remedy};
use std::sync::Arc;
use std::time::Duration;

/// Longer than two parts of an upload, and no multiple of one.
const LONG: usize = (11 << 20) + 7;

/// Runs all checks, each over journals of its own.
pub async fn all(trial: &Trial) {
    lists(trial).await;
    lists_behind(trial).await;
    puts_once(trial).await;
    reads_ranges(trial).await;
    if trial.takes_parts {
        puts_in_parts(trial).await;
    }
    rewrites(trial).await;
    signs(trial).await;
    deletes(trial).await;
    is_healthy(trial).await;
    tells_what_is_wrong(trial).await;
    bears_a_bad_line(trial).await;
    loses_no_reply(trial).await;
}

async fn whole(trial: &Trial, fragment: &Fragment, from: Offset) -> Result<Bytes, StoreError> {
    let chunks = trial.store.open(fragment, from).await?.try_collect::<Vec<Bytes>>().await?;
    Ok(Bytes::from(chunks.concat()))
}

async fn lists(trial: &Trial) {
    // Case: a journal whose name has every symbol that a name may have.
    for name in ["list/a-journal", "list/odd_%41+b=c.d%"] {
        let journal = journal(name);
        assert_eq!(trial.store.list(&journal).await.expect(name), [], "nothing was put yet");
        let mut expected = Vec::new();
        for (nth, codec) in Codec::ALL.into_iter().enumerate() {
            for postfix in ["", "day=1/h%2=+"] {
                let begin = Offset::from(u32::try_from(nth).expect("few") * 100);
                let stored = put(&trial.store, &journal, begin, &random(80), codec, postfix).await;
                assert_eq!(stored.backing_store, trial.store.url());
                expected.push(stored);
            }
        }
        // Case: neighbours, whose names begin alike.
        for other in [format!("{name}-2"), format!("{name}0")] {
            let other = trial::journal(&other);
            put(&trial.store, &other, Offset::ZERO, &random(10), Codec::None, "").await;
        }
        expected.sort_by_key(name::path);
        assert_eq!(trial.store.list(&journal).await.expect(name), expected, "{name}");
    }
}

async fn lists_behind(trial: &Trial) {
    let journal = journal("behind/a-journal");
    let mut stored = Vec::new();
    for nth in 0..5 {
        let postfix = format!("day=2026112{nth}");
        let begin = Offset::from(nth * 10);
        stored.push(put(&trial.store, &journal, begin, &random(10), Codec::None, &postfix).await);
    }
    // Case: all that come behind the known one, and nothing behind the last.
    for known in 0..stored.len() {
        let found = trial.store.list_behind(&stored[known]).await.expect("it is listed");
        assert_eq!(found, stored[known + 1..], "behind {known}");
    }
}

async fn puts_once(trial: &Trial) {
    let journal = journal("once/a-journal");
    let first = LabelSet::default().with("author", "first/1").expect("a label");
    let second = LabelSet::default().with("author", "second").expect("a label");
    let content = random(1000);
    let put = async |registers| {
        put_with(&trial.store, &journal, Offset::ZERO, &content, Codec::Gzip, "", registers).await
    };
    let stored = put(&first).await;
    let again = put(&second).await;
    assert_eq!(stored, again, "the object that is there stays");
    assert_eq!(whole(trial, &stored, Offset::ZERO).await.expect("it is there"), content);
    let kept = trial.store.registers(&stored).await.expect("it is there");
    let expected = if trial.keeps_registers { first } else { LabelSet::default() };
    assert_eq!(kept, expected);
    // Case: two at once, as replicas do.
    let (content, begin) = (random(500), Offset::from(1000));
    let put = || put_with(&trial.store, &journal, begin, &content, Codec::None, "", &second);
    let (one, two) = futures::join!(put(), put());
    assert!(one.same_content(&two));
    assert_eq!(whole(trial, &one, begin).await.expect("it is there"), content);
}

async fn reads_ranges(trial: &Trial) {
    let journal = journal("ranges/a-journal");
    let content = random(300_000);
    for (codec, begin) in Codec::ALL.into_iter().zip([0, 1, 1 << 32, 5, 6]) {
        let begin = Offset::new(begin).expect("an offset");
        let stored = put(&trial.store, &journal, begin, &content, codec, "").await;
        for skipped in [0, 1, 150_000, 299_999, 300_000] {
            let from = begin.plus(skipped);
            let read = whole(trial, &stored, from).await.expect("it is there");
            let skipped = usize::try_from(skipped).expect("small");
            assert_eq!(read, content[skipped..], "{codec} from {skipped}");
        }
        trial.store.verify(&stored).await.expect("the sum is right");
    }
}

async fn puts_in_parts(trial: &Trial) {
    let journal = journal("parts/a-journal");
    for codec in [Codec::None, Codec::GzipOffload] {
        let content = random(LONG);
        let stored = put(&trial.store, &journal, Offset::ZERO, &content, codec, "").await;
        assert_eq!(whole(trial, &stored, Offset::ZERO).await.expect("it is there"), content);
        let from = LONG - 100;
        let read = whole(trial, &stored, Offset::ZERO.plus(from as u64)).await;
        assert_eq!(read.expect("it is there"), content[from..]);
    }
}

async fn rewrites(trial: &Trial) {
    let rewriting = trial.with_arguments("find=rewritten/&replace=else-");
    let journal = journal("rewritten/a-journal");
    let content = random(100);
    let stored = put(&rewriting, &journal, Offset::ZERO, &content, Codec::Snappy, "p").await;
    let listed = rewriting.list(&journal).await.expect("it is listed");
    assert_eq!(listed, std::slice::from_ref(&stored));
    rewriting.verify(&stored).await.expect("it is read where it was put");
    assert_eq!(trial.store.list(&journal).await.expect("it is listed"), [], "it is not there");
    let moved = trial::journal("else-a-journal");
    assert_eq!(trial.store.list(&moved).await.expect("it is listed").len(), 1);
}

async fn signs(trial: &Trial) {
    let content = random(5000);
    let cases = [
        ("signed/a-journal=+", Codec::None),
        ("signed/a-journal=+", Codec::GzipOffload),
        ("signed/a-journal%41", Codec::None),
    ];
    for (name, codec) in cases {
        let journal = journal(name);
        let stored = put(&trial.store, &journal, Offset::ZERO, &content, codec, "p=1").await;
        let signed = trial.store.signed_url(&stored, Duration::from_secs(60)).await;
        let can_sign = trial.signs_percent || !name.contains('%');
        let Some(fetch) = trial.fetch.as_ref().filter(|_| can_sign) else {
            assert!(matches!(signed, Err(StoreError::Unsigned { .. })), "{signed:?}");
            continue;
        };
        let url = signed.expect("it is signed");
        let fetched = fetch(url.clone()).await.expect("it is fetched");
        match codec {
            Codec::None => assert_eq!(fetched, content),
            // The store may have undone it on the way.
            _ => assert!(fetched == content || fetched.starts_with(&[0x1f, 0x8b]), "{url}"),
        }
        if trial.checks_signatures {
            let forged = url.replace(&name::content_name(&stored)[..34], &"0".repeat(34));
            assert_ne!(forged, url);
            fetch(forged).await.expect_err("it is signed for another object");
        }
    }
}

async fn deletes(trial: &Trial) {
    let journal = journal("deleted/a-journal");
    let stored = put(&trial.store, &journal, Offset::ZERO, &random(10), Codec::Gzip, "").await;
    trial.store.delete(&stored).await.expect("it goes");
    assert_eq!(trial.store.list(&journal).await.expect("it is listed"), []);
    let missing = trial.store.verify(&stored).await.expect_err("it is gone");
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    assert!(missing.to_string().contains(trial.store.url()), "{missing}");
    trial.store.delete(&stored).await.expect("that it is gone is success");
}

async fn is_healthy(trial: &Trial) {
    trial.store.check().await.expect("it is healthy");
    trial.store.check().await.expect("the probe that is there is no trouble");
    for prefix in ["", "some/where/"] {
        trial.store.check_delete(prefix).await.expect("it deletes");
    }
}

async fn tells_what_is_wrong(trial: &Trial) {
    let journal = journal("wrong/a-journal");
    let content = random(10);
    let fragment = local(&journal, Offset::ZERO, &content, Codec::None, "").await;
    let source = Arc::new(Content(content));
    for (store, says) in trial.wrong.iter().map(|wrong| (&wrong.store, &wrong.says)) {
        let results = [
            ("put", store.put(&fragment, source.clone()).await.map(|_| ())),
            ("list", store.list(&journal).await.map(|_| ())),
            ("check", store.check().await),
        ];
        for (what, result) in results {
            let error = result.expect_err(what);
            let line = error.to_string();
            assert_eq!(error.remedy(), Remedy::Fix, "{what}: {line}");
            assert!(line.starts_with(&format!("store {}: ", store.url())), "{what}: {line}");
            // A put asks by HEAD first, whose answer has no more than a status.
            assert!(line.contains(says) || line.contains("403"), "{what}: {line}");
            assert!(!line.contains('\n'), "{what}: {line}");
        }
    }
}

async fn bears_a_bad_line(trial: &Trial) {
    let (store, faulty) = trial.faulty();
    let journal = journal("faulty/a-journal");
    let stored = put(&store, &journal, Offset::ZERO, &random(10), Codec::None, "").await;
    // Case: it answers 503.
    faulty.set(Manner::Down);
    let before = faulty.asked_in_all();
    let failed = [
        store.list(&journal).await.map(|_| ()),
        store.list_behind(&stored).await.map(|_| ()),
        store.verify(&stored).await,
        store.delete(&stored).await,
        store.check().await,
    ];
    for result in failed {
        let error = result.expect_err("it is down");
        assert_eq!(error.remedy(), Remedy::Later, "{error}");
        assert!(error.to_string().contains("503"), "{error}");
    }
    assert!(faulty.asked_in_all() - before <= 10, "nothing is tried for ever");
    // Case: it is slow, and works.
    faulty.set(Manner::Works);
    faulty.set_delay(Duration::from_millis(20));
    let listed = store.list(&journal).await.expect("it works again");
    assert_eq!(listed, std::slice::from_ref(&stored));
    store.verify(&stored).await.expect("it works again");
    // Case: who gives up waiting leaves nothing behind that would be taken for a fragment.
    faulty.set_delay(Duration::from_secs(60));
    let content = random(10);
    let late = put(&store, &journal, Offset::from(10), &content, Codec::None, "");
    tokio::time::timeout(Duration::from_millis(50), late).await.expect_err("it takes long");
    assert_eq!(trial.store.list(&journal).await.expect("it is listed"), [stored]);
}

async fn loses_no_reply(trial: &Trial) {
    let (store, faulty) = trial.faulty();
    let journal = journal("silent/a-journal");
    let content = random(100);
    let fragment = local(&journal, Offset::ZERO, &content, Codec::None, "").await;
    let source = Arc::new(Content(content.clone()));
    // Case: a put that happened, as nobody heard.
    faulty.set(Manner::LosesReplies(1));
    store.put(&fragment, source.clone()).await.expect_err("no reply");
    let stored = store.put(&fragment, source).await.expect("it is there already");
    assert_eq!(faulty.asked(Operation::Put), 1, "it is not put twice");
    let listed = trial.store.list(&journal).await.expect("it is listed");
    assert_eq!(listed, std::slice::from_ref(&stored));
    assert_eq!(whole(trial, &stored, Offset::ZERO).await.expect("it is there"), content);
    // Case: so with a deletion.
    faulty.set(Manner::LosesReplies(1));
    store.delete(&stored).await.expect_err("no reply");
    store.delete(&stored).await.expect("it is gone already");
    assert_eq!(trial.store.list(&journal).await.expect("it is listed"), []);
}

impl Trial {
    fn faulty(&self) -> (index::store::Store, FaultyStore) {
        let mut faulty = None;
        let store = self.store.clone().through(|inner| {
            let store = FaultyStore::new(inner);
            faulty = Some(store.clone());
            Arc::new(store)
        });
        (store, faulty.expect("it was wrapped"))
    }
}
