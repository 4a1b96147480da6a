//! Stores that fail, are slow, lose replies, are damaged, or are all that is left of a journal
//! (cases T15, T16 and T21).

mod world;

use broker::{Served, Terms};
use bytes::Bytes;
use client::Journals;
use index::disk::{Crash, ForgetfulDisk};
use index::store::Store;
use index::store::faulty::{FaultyStore, Manner, Operation};
use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use protocol::{Codec, Fragment, Journal, LabelSet, Offset, Span};
use std::sync::Arc;
use std::time::Duration;
use world::{World, journal, until};

const URL: &str = "s3://bucket/prefix/";

/// A broker over a store in memory, behind a bad line.
struct Trial {
    world: World,
    objects: Arc<InMemory>,
    faulty: FaultyStore,
}

impl Trial {
    async fn new() -> Trial {
        Trial::over(Arc::new(InMemory::new())).await
    }

    /// A broker that has nothing but the store.
    async fn over(objects: Arc<InMemory>) -> Trial {
        let faulty = FaultyStore::new(objects.clone());
        let store = Store::over(URL, Arc::new(faulty.clone())).expect("a valid URL");
        let world = World::on(ForgetfulDisk::new(), ForgetfulDisk::new(), |config| {
            config.stores = vec![store];
        });
        Trial { world: world.await, objects, faulty }
    }

    async fn create(&self, name: &str) -> Arc<Served> {
        self.create_as(name, |_| ()).await
    }

    async fn create_as(
        &self,
        name: &str,
        edit: impl FnOnce(&mut protocol::JournalSpec),
    ) -> Arc<Served> {
        let served = self
            .world
            .apply(name, |spec| {
                spec.fragment.stores = vec![URL.into()];
                edit(spec);
            })
            .await;
        until("it is listed", || async { served.is_known() }).await;
        served
    }

    /// The store without the bad line.
    fn store(&self) -> Store {
        Store::over(URL, self.objects.clone()).expect("a valid URL")
    }

    async fn persisted(&self, served: &Served) {
        served.replica().roll().expect("the log takes it");
        let head = served.replica().head();
        until("everything is persisted", || async { served.replica().persisted() == head }).await;
    }

    async fn key_of(&self, journal: &Journal, nth: usize) -> Key {
        let listed = self.store().list(journal).await.expect("memory");
        Key::parse(format!("prefix/{}", index::name::path(&listed[nth]))).expect("a key")
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_without_the_store_costs_only_space() {
    let trial = Trial::new().await;
    let mut journals = Vec::new();
    for nth in 0..40 {
        journals.push(trial.create(&format!("a/journal-{nth}")).await);
    }
    trial.world.append("a/journal-0", "before ").await;
    trial.persisted(&journals[0]).await;
    trial.faulty.set(Manner::Down);
    let before = trial.faulty.asked_in_all();
    for second in 0..60 {
        for served in &journals {
            let name = served.journal().as_str();
            trial.world.append(name, &format!("{second} ")).await;
            served.replica().roll().expect("the log takes it");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // However many journals wait, one of them asks, at pauses that double.
    let asked = trial.faulty.asked_in_all() - before;
    assert!((4..=30).contains(&asked), "it was asked {asked} times in a minute");
    assert_eq!(journals[0].replica().persisted(), 7.into());
    trial.faulty.set(Manner::Works);
    tokio::time::timeout(Duration::from_secs(30), async {
        for served in &journals {
            trial.persisted(served).await;
        }
    })
    .await
    .expect("it is caught up within half a minute, and nothing was restarted");
    let expected: String = (0..60).map(|second| format!("{second} ")).collect();
    assert_eq!(trial.world.read("a/journal-0", 7).await.expect("all is there"), expected);
    for served in &journals {
        for fragment in trial.store().list(served.journal()).await.expect("memory") {
            trial.store().verify(&fragment).await.expect("it is whole");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_puts_nothing_twice() {
    let trial = Trial::new().await;
    let served = trial.create("a/journal").await;
    trial.world.append("a/journal", "content").await;
    trial.faulty.set(Manner::LosesReplies(1));
    trial.persisted(&served).await;
    assert_eq!(trial.faulty.asked(Operation::Put), 1);
    assert_eq!(trial.store().list(served.journal()).await.expect("memory").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_holds_no_append() {
    let trial = Trial::new().await;
    let served = trial.create("a/journal").await;
    trial.faulty.set_delay(Duration::from_secs(10));
    trial.world.append("a/journal", "first ").await;
    served.replica().roll().expect("the log takes it");
    tokio::time::sleep(Duration::from_secs(5)).await;
    trial.world.append("a/journal", "second").await;
    assert_eq!(served.replica().persisted(), 0.into(), "the put goes on meanwhile");
    trial.persisted(&served).await;
}

#[tokio::test(start_paused = true)]
async fn a_full_budget_of_stored_bytes_refuses_nothing_after_a_start() {
    const BUDGET: u64 = 1 << 20;
    let trial = Trial::new().await;
    let served = trial.create("a/journal").await;
    let content = "0123456789abcdef".repeat(65_536);
    trial.world.append("a/journal", &content).await;
    trial.persisted(&served).await;
    // It starts again with a budget that these bytes fill, and its store is slow: for a while
    // nobody knows that the store has them.
    let store = Store::over(URL, Arc::new(trial.faulty.clone())).expect("a valid URL");
    trial.faulty.set_delay(Duration::from_secs(10));
    let (disk, files) = (trial.world.disk.crash(Crash::Kill), trial.world.files.clone());
    let world = World::on(disk, files, |config| {
        config.stores = vec![store];
        config.space.local_budget = Some(BUDGET);
    });
    let world = world.await;
    world.append("a/journal", "more").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let served = world.broker.served(&journal("a/journal")).expect("it is there");
    assert_eq!(served.stat().fragments, 0, "the store is slow");
    assert!(served.replica().local_len() > BUDGET);
    assert!(!world.broker.is_over_budget());
    world.append("a/journal", "more").await;
    // Listed, they go.
    until("the budget is kept", || async { served.replica().local_len() < BUDGET }).await;
}

#[tokio::test(start_paused = true)]
async fn the_store_alone_brings_a_journal_back() {
    let trial = Trial::new().await;
    let served = trial.create("a/journal").await;
    let registers = LabelSet::default().with("author", "one").expect("a label");
    let terms = Terms { union_registers: Some(registers.clone()), ..Terms::default() };
    let content = "0123456789abcdef".repeat(65_536);
    trial.world.commit("a/journal", terms, &content).await.expect("it happens");
    trial.persisted(&served).await;
    // Case: local files and key space are gone (T21).
    let after = Trial::over(trial.objects.clone()).await;
    let served = after.create("a/journal").await;
    assert_eq!(served.stat().head, Offset::from(1 << 20));
    assert_eq!(served.replica().registers(), registers);
    let appended = after.world.append("a/journal", "x").await;
    assert_eq!(appended.span, Span::at(Offset::from(1 << 20), 1), "no offset is used twice");
    assert_eq!(after.world.read("a/journal", (1 << 20) - 4).await.expect("both"), "cdefx");
    // Case: the store can't be asked whether there is anything.
    let after = Trial::over(trial.objects.clone()).await;
    after.faulty.set(Manner::Down);
    let apply = after.world.apply("a/journal", |spec| spec.fragment.stores = vec![URL.into()]);
    let served = apply.await;
    let refused = after.world.commit("a/journal", Terms::default(), "x").await;
    assert!(matches!(&refused, Err(broker::Error::Unlisted { .. })), "{refused:?}");
    assert!(!served.is_known());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_object_is_named_and_the_others_are_served() {
    // Case: a codec, and how the object in the middle is damaged: a bit is wrong, it is cut, gone
    type Damage = fn(&[u8]) -> Option<Vec<u8>>;
    let damages: [Damage; 3] = [
        |right| {
            let mut wrong = right.to_vec();
            wrong[right.len() / 2] ^= 1;
            Some(wrong)
        },
        |right| Some(right[..right.len() - 1].to_vec()),
        |_| None,
    ];
    for codec in [Codec::None, Codec::Gzip, Codec::Zstandard, Codec::Snappy] {
        for damage in damages {
            let trial = Trial::new().await;
            let served = trial.create_as("a/journal", |spec| spec.fragment.codec = codec).await;
            for content in ["0123456789", "abcdefghij", "klmnopqrst"] {
                trial.world.append("a/journal", content).await;
                trial.persisted(&served).await;
            }
            let key = trial.key_of(served.journal(), 1).await;
            let right = trial.objects.get(&key).await.expect("it is there");
            let right = right.bytes().await.expect("memory");
            trial.objects.delete(&key).await.expect("memory");
            if let Some(wrong) = damage(&right) {
                trial.objects.put(&key, Bytes::from(wrong).into()).await.expect("memory");
            }
            // A broker that has nothing local.
            let after = Trial::over(trial.objects.clone()).await;
            after.create("a/journal").await;
            let read = async |offset: u32| {
                let at = Offset::from(offset);
                let name = journal("a/journal");
                let read = client::Read { journal: name, life: None, offset: at, max: 10 };
                Journals::read(&after.world.broker, read).await
            };
            assert_eq!(read(0).await.expect("the first one is right"), "0123456789");
            assert_eq!(read(20).await.expect("so is the last one"), "klmnopqrst");
            let error = read(10).await.expect_err("never wrong bytes");
            let text = error.to_string();
            assert!(matches!(error, client::Error::Damaged { .. }), "{codec}: {text}");
            assert!(text.contains("a/journal"), "{codec}: {text}");
        }
    }
}

/// Puts a fragment behind the broker's back, as another one does.
async fn put(store: &Store, begin: u32, content: &[u8], postfix: &str) -> Fragment {
    put_with(store, begin, content, postfix, &LabelSet::default()).await
}

async fn put_with(
    store: &Store,
    begin: u32,
    content: &[u8],
    postfix: &str,
    registers: &LabelSet,
) -> Fragment {
    struct Placed(Offset, Vec<u8>);
    impl index::store::Source for Placed {
        fn read_at(&self, offset: Offset, buf: &mut [u8]) -> std::io::Result<usize> {
            let at = usize::try_from(offset.since(self.0)).expect("small");
            let len = buf.len().min(self.1.len() - at);
            buf[..len].copy_from_slice(&self.1[at..at + len]);
            Ok(len)
        }
    }
    let span = Span::at(begin.into(), content.len() as u64);
    let source = Arc::new(Placed(span.begin(), content.to_vec()));
    let sum = index::store::digest(span, source.clone()).await.expect("memory").sum;
    let local = Fragment::local(journal("a/journal"), span, sum, Codec::None);
    let fragment = Fragment { path_postfix: postfix.to_owned(), ..local };
    store.put_with(&fragment, registers, source).await.expect("memory")
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_others_fill_is_followed_without_listing_its_history_again() {
    let trial = Trial::new().await;
    let store = trial.store();
    for nth in 0..200 {
        put(&store, nth * 10, b"0123456789", "").await;
    }
    let served = trial
        .create_as("a/journal", |spec| {
            spec.flags = protocol::Flags::ReadOnly;
            spec.fragment.refresh_interval = Duration::from_secs(10);
        })
        .await;
    assert_eq!(served.stat().head, Offset::from(2000));
    for nth in 200..210 {
        put(&store, nth * 10, b"0123456789", "").await;
        let head = Offset::from(nth * 10 + 10);
        until("it is followed", || async { served.stat().head == head }).await;
    }
    assert_eq!(trial.world.read("a/journal", 2095).await.expect("it is there"), "56789");
    assert_eq!(served.second_writer(), None, "it is to be filled by others");
    let listed = trial.faulty.listed_behind();
    assert!(listed.len() >= 9, "{listed:?}");
    let first = format!("prefix/a/journal/{:016x}", (200 - 65) * 10);
    assert!(listed[0].as_ref().starts_with(&first), "{listed:?}");
    assert!(listed.is_sorted(), "marks go on: {listed:?}");
    // Case: one that comes late, before the last ones that are known.
    let late = put(&store, 2200, b"0123456789", "").await;
    until("it is listed", || async { served.stat().fragments == 211 }).await;
    put(&store, 2100, b"0123456789", "").await;
    until("it is listed too", || async { served.stat().fragments == 212 }).await;
    // Case: one that is deleted is forgotten by a listing of everything, which comes now and then.
    store.delete(&late).await.expect("memory");
    until("it is forgotten", || async { served.stat().fragments == 211 }).await;
}

#[tokio::test(start_paused = true)]
async fn a_postfix_that_does_not_ascend_is_listed_in_full() {
    let trial = Trial::new().await;
    let store = trial.store();
    for nth in 0..100 {
        put(&store, nth * 10, b"0123456789", "h23").await;
    }
    let served = trial
        .create_as("a/journal", |spec| {
            let template = r#"h{{ .Spool.FirstAppendTime.Format "15" }}"#;
            spec.fragment.path_postfix_template = template.to_owned();
            spec.flags = protocol::Flags::ReadOnly;
            spec.fragment.refresh_interval = Duration::from_secs(10);
        })
        .await;
    put(&store, 1000, b"0123456789", "h00").await;
    until("it is followed", || async { served.stat().head == Offset::from(1010) }).await;
    assert_eq!(trial.faulty.listed_behind(), []);
    let listed = trial.objects.list(None);
    assert_eq!(futures::StreamExt::count(listed).await, 101);
}

/// A journal that is listed each ten seconds, with three appends of ten bytes in a fragment each.
async fn begin_with_three(trial: &Trial, retention: Duration) -> Arc<Served> {
    let served = trial
        .create_as("a/journal", |spec| {
            spec.fragment.refresh_interval = Duration::from_secs(10);
            spec.fragment.retention = retention;
        })
        .await;
    for content in ["0123456789", "abcdefghij", "klmnopqrst"] {
        trial.world.append("a/journal", content).await;
        trial.persisted(&served).await;
    }
    served
}

#[tokio::test(start_paused = true)]
async fn what_others_delete_is_put_again_while_it_is_local() {
    let trial = Trial::new().await;
    let served = begin_with_three(&trial, Duration::ZERO).await;
    let key = trial.key_of(served.journal(), 1).await;
    let right = trial.objects.get(&key).await.expect("it is there").bytes().await.expect("memory");
    trial.objects.delete(&key).await.expect("memory");
    // A listing of everything finds out, which comes now and then.
    tokio::time::sleep(Duration::from_secs(17 * 12)).await;
    until("it is put again", || async { trial.objects.head(&key).await.is_ok() }).await;
    let again = trial.objects.get(&key).await.expect("it is there").bytes().await.expect("memory");
    assert_eq!(again, right);
    let puts = trial.faulty.asked(Operation::Put);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!((trial.faulty.asked(Operation::Put), puts), (4, 4), "once is enough");
}

#[tokio::test(start_paused = true)]
async fn what_others_prune_goes_here_as_well() {
    let trial = Trial::new().await;
    let served = begin_with_three(&trial, Duration::from_secs(86_400)).await;
    let keys = [trial.key_of(served.journal(), 0).await, trial.key_of(served.journal(), 1).await];
    // The objects are of this day, and the broker's clock comes to stand long after it.
    trial.world.clock.advance(Duration::from_secs(100 * 365 * 86_400));
    for key in &keys {
        trial.objects.delete(key).await.expect("memory");
    }
    until("it is trimmed", || async { served.replica().trimmed() == Offset::from(20) }).await;
    assert_eq!(trial.world.read("a/journal", 20).await.expect("the last one stays"), "klmnopqrst");
    let gone = trial.world.read("a/journal", 0).await;
    assert!(matches!(gone, Err(client::Error::Trimmed { .. })), "{gone:?}");
    assert_eq!(trial.faulty.asked(Operation::Put), 3, "nothing is put again");
}

/// Makes the head jump to where the store ends, as `reset-head` does.
async fn reset_head(trial: &Trial, served: &Served) {
    until("it is found", || async { served.second_writer().is_some() }).await;
    let terms = Terms { offset: Some(served.index_end()), ..Terms::default() };
    trial.world.commit("a/journal", terms, "").await.expect("the head is reset");
}

#[tokio::test(start_paused = true)]
async fn registers_of_a_second_writer_are_taken_over_with_its_end() {
    let set = |value| LabelSet::default().with("author", value).expect("a label");
    let trial = Trial::new().await;
    let served = begin_with_three(&trial, Duration::ZERO).await;
    let ours = Terms { union_registers: Some(set("ours")), ..Terms::default() };
    trial.world.commit("a/journal", ours, "x").await.expect("it happens");
    // Case: what the second writer's last fragment says, and what is taken over
    for (begin, noted, expected) in [(40, set("theirs"), set("theirs")), (50, set("no"), set("no"))]
    {
        put_with(&trial.store(), begin, b"0123456789", "", &noted).await;
        reset_head(&trial, &served).await;
        assert_eq!(served.replica().registers(), expected);
    }
    // Case: one that says nothing, as Gazette's brokers do
    put(&trial.store(), 60, b"0123456789", "").await;
    reset_head(&trial, &served).await;
    assert_eq!(served.replica().registers(), set("no"));
    let after = trial.world.crashed(index::disk::Crash::Power(5)).await;
    let served = after.broker.served(&journal("a/journal")).expect("it exists");
    assert_eq!((served.replica().registers(), served.replica().head()), (set("no"), 70.into()));
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_found_again_where_a_store_has_it_later() {
    let trial = Trial::new().await;
    let served = begin_with_three(&trial, Duration::ZERO).await;
    put(&trial.store(), 60, b"the others", "").await;
    reset_head(&trial, &served).await;
    assert_eq!((served.stat().gaps, served.missing().0), (1, vec![Span::at(30.into(), 30)]));
    // Case: a part of it comes, in the middle
    put(&trial.store(), 40, b"found late", "").await;
    until("a part is found", || async { served.stat().gaps == 2 }).await;
    assert_eq!(trial.world.read("a/journal", 60).await.expect("stored"), "the others");
    let gaps = [Span::at(30.into(), 10), Span::at(50.into(), 10)];
    assert_eq!(served.missing(), (gaps.to_vec(), Vec::new()));
    let read = async |offset: u32| {
        let at = Offset::from(offset);
        let read = client::Read { journal: journal("a/journal"), life: None, offset: at, max: 10 };
        Journals::read(&trial.world.broker, read).await
    };
    assert_eq!(read(40).await.expect("found"), "found late");
    assert!(matches!(read(50).await, Err(client::Error::Lost { .. })));
    // Case: the rest; nobody is a second writer by it, and appends go on
    put(&trial.store(), 30, b"0123456789", "").await;
    put(&trial.store(), 50, b"0123456789", "").await;
    until("all is found", || async { served.stat().gaps == 0 }).await;
    assert_eq!(served.second_writer(), None);
    assert_eq!(trial.world.append("a/journal", "x").await.span, Span::at(70.into(), 1));
    let all = trial.world.read("a/journal", 20).await.expect("no gap is left");
    assert_eq!(all, "klmnopqrst0123456789found late0123456789the othersx");
}

/// A mount of sparse trimmed ranges shows zeros for what is trimmed, and for nothing else.
#[tokio::test(start_paused = true)]
async fn what_was_lost_behind_what_is_trimmed_is_not_told_as_trimmed() {
    let trial = Trial::new().await;
    let served = begin_with_three(&trial, Duration::ZERO).await;
    put(&trial.store(), 60, b"the others", "").await;
    reset_head(&trial, &served).await;
    let name = journal("a/journal");
    trial
        .world
        .apply("a/journal", |spec| {
            spec.labels = spec.labels.clone().with("courant/retain-bytes", "15").expect("a label");
        })
        .await;
    trial.world.broker.prune(&name, false).await.expect("the store is there");
    let stat = served.stat();
    assert_eq!((stat.trimmed, stat.first, stat.head), (30.into(), 60.into(), 70.into()));
    let read = async |offset: u32| {
        let at = Offset::from(offset);
        let read = client::Read { journal: name.clone(), life: None, offset: at, max: 100 };
        Journals::read(&trial.world.broker, read).await
    };
    let trimmed = read(5).await.expect_err("it is gone");
    let span = Span::between(5.into(), 30.into());
    assert!(matches!(&trimmed, client::Error::Trimmed { span: told, .. } if *told == span));
    let lost = read(40).await.expect_err("nobody has it");
    assert!(matches!(&lost, client::Error::Lost { .. }), "{lost:?}");
    assert_eq!(read(60).await.expect("stored"), "the others");
}
