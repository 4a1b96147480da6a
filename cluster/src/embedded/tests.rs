//! The embedded key space on trial: what lasts, what is shown, and what failures leave behind.

use super::*;
use crate::Expect;
use protocol::JournalSpec;
use std::io;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_newer_format_is_refused_by_name() {
    let memory = Arc::new(Memory::default());
    drop(Embedded::open(memory.clone(), 1).unwrap());
    let adapter = crate::backing::Adapter::new(memory.clone());
    let database = redb::Database::builder().create_with_backend(adapter).unwrap();
    let transaction = database.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    transaction.open_table(meta).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let refused = Embedded::open(memory, 1).unwrap_err().to_string();
    for word in ["key space", "format 2", "up to 1", "newer"] {
        assert!(refused.contains(word), "nothing of {word} in: {refused}");
    }
}

/// Memory that fails one kind of operation after so many of it, until told otherwise.
#[derive(Debug, Default)]
struct Failing {
    memory: Memory,
    /// The failing operation and how many of it still succeed.
    fault: StdMutex<Option<(&'static str, u64)>>,
    writes: AtomicU64,
}

impl Failing {
    fn fail(&self, operation: &'static str, after: u64) {
        *self.fault.lock().unwrap() = Some((operation, after));
    }

    fn heal(&self) {
        *self.fault.lock().unwrap() = None;
    }

    fn check(&self, operation: &'static str) -> io::Result<()> {
        match &mut *self.fault.lock().unwrap() {
            Some((failing, 0)) if *failing == operation => Err(io::ErrorKind::StorageFull.into()),
            Some((failing, left)) if *failing == operation => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Backing for Failing {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.check("read")?;
        self.memory.read(at, buf)
    }

    fn write(&self, at: u64, buf: &[u8]) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.check("write") {
            // Half of what was asked, as a disk that fills up leaves it.
            self.memory.write(at, &buf[..buf.len() / 2])?;
            return Err(error);
        }
        self.memory.write(at, buf)
    }

    fn sync(&self) -> io::Result<()> {
        self.check("sync")
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check("set_len")?;
        self.memory.set_len(len)
    }
}

fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

fn spec(name: &str) -> JournalSpec {
    Templates::default().spec_for(&journal(name)).expect("a name nobody refuses")
}

fn create(name: &str) -> Vec<Change> {
    vec![Change::Upsert { spec: spec(name), expect: Expect::Absent }]
}

async fn applied(space: &Embedded, changes: Vec<Change>) -> i64 {
    match space.apply(changes).await.expect("no fault") {
        Outcome::Applied { revision } => revision,
        conflict => panic!("{conflict:?}"),
    }
}

fn everything(space: &Embedded) -> Listing {
    space.list(&Selector::default())
}

/// What a crash leaves: the bytes, opened by another process.
fn reopened(bytes: Vec<u8>) -> Embedded {
    Embedded::open(Arc::new(Memory::new(bytes)), 99).expect("opens")
}

#[tokio::test]
async fn all_lasts_over_a_restart() {
    let backing = Arc::new(Memory::default());
    let space = Embedded::open(backing.clone(), 1).unwrap();
    assert_eq!(space.revision(), 1);
    assert_eq!(applied(&space, create("logs/a")).await, 2);
    assert_eq!(applied(&space, create("logs/b")).await, 3);
    let delete = Change::Delete { journal: journal("logs/a"), expect: Expect::At(2) };
    assert_eq!(applied(&space, vec![delete]).await, 4);
    let template = Template { prefix: "m/".into(), refuse: vec![], ..Template::built_in() };
    assert_eq!(space.put_template(template.clone()).await.unwrap(), 5);
    let (identity, listing) = (space.identity(), everything(&space));
    assert_eq!(listing.entries.len(), 1);

    // Case: as after kill -9, and as after a clean stop
    let crashed = backing.bytes();
    drop(space);
    for bytes in [crashed, backing.bytes()] {
        let space = reopened(bytes);
        assert_eq!(space.identity(), identity);
        assert_eq!(everything(&space), listing);
        assert_eq!(space.templates().get("m/"), Some(&template));
        assert_eq!(applied(&space, create("logs/a")).await, 6);
    }
}

#[test]
fn identities_come_from_chance_and_are_never_zero() {
    let identity = |entropy| Embedded::in_memory(entropy).identity();
    for entropy in [0, 1, u64::MAX] {
        let Identity { cluster_id, member_id, raft_term } = identity(entropy);
        assert!(cluster_id != 0 && member_id != 0 && raft_term != 0);
        assert_eq!(identity(entropy).cluster_id, cluster_id);
    }
    assert_ne!(identity(1).cluster_id, identity(2).cluster_id);
    let etcd = Embedded::in_memory(1).etcd();
    assert_eq!((etcd.cluster_id, etcd.revision), (identity(1).cluster_id, 1));
}

#[tokio::test]
async fn a_failed_compare_changes_nothing() {
    let space = Embedded::in_memory(1);
    applied(&space, create("logs/a")).await;
    let before = everything(&space);
    let mut changes = create("logs/b");
    changes.extend(create("logs/a"));
    let outcome = space.apply(changes).await.unwrap();
    assert_eq!(outcome, Outcome::Conflict { revision: 2, journal: journal("logs/a") });
    assert_eq!(everything(&space), before);
    assert_eq!(space.apply(vec![]).await.unwrap(), Outcome::Applied { revision: 2 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_concurrent_creations_one_wins() {
    let space = Arc::new(Embedded::in_memory(1));
    let tasks: Vec<_> = (0..32)
        .map(|n| {
            let space = space.clone();
            // Eight journals, each created by four tasks.
            tokio::spawn(async move { space.apply(create(&format!("logs/{}", n % 8))).await })
        })
        .collect();
    let mut revisions = Vec::new();
    let mut conflicts = 0;
    for task in tasks {
        match task.await.unwrap().unwrap() {
            Outcome::Applied { revision } => revisions.push(revision),
            Outcome::Conflict { .. } => conflicts += 1,
        }
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (2..10).collect::<Vec<_>>());
    assert_eq!((conflicts, space.revision()), (24, 9));
    assert_eq!(everything(&space).entries.len(), 8);
}

#[tokio::test]
async fn watchers_wake_and_see_what_woke_them() {
    let space = Embedded::in_memory(1);
    let mut watch = space.watch();
    assert_eq!(*watch.borrow_and_update(), 1);
    let reached = space.wait_for(3);
    let (first, second, seen) = tokio::join!(
        biased;
        async {
            watch.changed().await.unwrap();
            (*watch.borrow_and_update(), space.get(&journal("logs/a")).is_some())
        },
        async {
            applied(&space, create("logs/a")).await;
            tokio::task::yield_now().await;
            applied(&space, create("logs/b")).await
        },
        reached,
    );
    assert_eq!(first, (2, true));
    assert_eq!((second, seen.unwrap()), (3, 3));
    assert_eq!(space.wait_for(1).await.unwrap(), 3);

    // Case: nobody is left to make the revision
    let never = space.wait_for(9);
    drop(space);
    assert!(matches!(never.await, Err(Error::Stopping)));
}

#[tokio::test]
async fn failed_writes_show_nothing_and_heal() {
    let backing = Arc::new(Failing::default());
    let space = Embedded::open(backing.clone(), 1).unwrap();
    applied(&space, create("logs/a")).await;
    let before = backing.writes.load(Ordering::Relaxed);
    applied(&space, create("logs/b")).await;
    let writes = backing.writes.load(Ordering::Relaxed) - before;
    assert!(writes > 1, "a transaction writes more than once");

    // Case: the transaction fails at each of its writes in turn
    for after in 0..writes - 1 {
        let shown = everything(&space);
        let name = format!("logs/c{after}");
        backing.fail("write", after);
        let failed = space.apply(create(&name)).await;
        assert!(matches!(failed, Err(Error::Storage(_))), "after {after}: {failed:?}");
        assert_eq!(everything(&space), shown);
        let again = space.apply(create("logs/d")).await;
        assert!(matches!(again, Err(Error::Storage(_))), "after {after}: {again:?}");
        assert_eq!(everything(&space), shown);

        // Whoever starts from what the disk holds finds the old state or the new one.
        let found = everything(&reopened(backing.memory.bytes())).revision;
        assert!((shown.revision..=shown.revision + 1).contains(&found), "after {after}");

        backing.heal();
        let revision = applied(&space, create(&format!("logs/e{after}"))).await;
        assert!(revision > shown.revision);
        assert_eq!(everything(&reopened(backing.memory.bytes())), everything(&space));
    }
}

#[tokio::test]
async fn a_full_disk_refuses_growth_and_nothing_else() {
    let backing = Arc::new(Failing::default());
    let space = Embedded::open(backing.clone(), 1).unwrap();
    backing.fail("set_len", 0);
    let batch = |n: i32| {
        let name = |k| format!("logs/{n}/{k}");
        (0..100).flat_map(|k| create(&name(k))).collect::<Vec<_>>()
    };
    let mut n = 0;
    while space.apply(batch(n)).await.is_ok() {
        n += 1;
        assert!(n < 1000, "the file never grows");
    }
    let shown = everything(&space);
    assert_eq!((shown.revision, shown.entries.len() as i32), (i64::from(n) + 1, n * 100));

    backing.heal();
    let revision = applied(&space, batch(n)).await;
    assert!(revision > shown.revision);
    assert_eq!(everything(&reopened(backing.memory.bytes())), everything(&space));
}

#[tokio::test]
async fn a_failed_sync_ends_all_writing() {
    let backing = Arc::new(Failing::default());
    let space = Embedded::open(backing.clone(), 1).unwrap();
    applied(&space, create("logs/a")).await;
    let shown = everything(&space);
    backing.fail("sync", 0);
    let failed = space.apply(create("logs/b")).await;
    assert!(matches!(failed, Err(Error::Storage(_))), "{failed:?}");
    backing.heal();
    let failed = space.apply(create("logs/b")).await;
    assert!(matches!(failed, Err(Error::Unsynced)), "{failed:?}");
    assert_eq!(everything(&space), shown);
    let template = space.put_template(Template::built_in()).await;
    assert!(matches!(template, Err(Error::Unsynced)), "{template:?}");
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    for operation in ["write", "set_len", "sync"] {
        let mut after = 0;
        // Case: the creation fails at each operation in turn, until there are no more of them
        loop {
            let backing = Arc::new(Failing::default());
            backing.fail(operation, after);
            if Embedded::open(backing.clone(), 1).is_ok() {
                break;
            }
            let space = reopened(backing.memory.bytes());
            assert_eq!(space.revision(), 1, "{operation} after {after}");
            after += 1;
        }
        assert!(after > 0, "a creation uses {operation}");
    }
}

#[test]
fn what_is_no_key_space_is_left_alone() {
    // Case: other bytes; a file whose first bytes were wiped
    let space = Arc::new(Memory::default());
    drop(Embedded::open(space.clone(), 1).unwrap());
    let mut wiped = space.bytes();
    wiped[..16].fill(0);
    for bytes in [b"not a key space at all".repeat(64), wiped] {
        let backing = Arc::new(Memory::new(bytes.clone()));
        let failed = Embedded::open(backing.clone(), 1).map(drop);
        assert!(matches!(failed, Err(Error::Storage(_))), "{failed:?}");
        assert_eq!(backing.bytes(), bytes);
    }
}

#[tokio::test]
async fn templates_are_part_of_the_revision() {
    let space = Embedded::in_memory(1);
    let mut template = Template { prefix: "logs/".into(), ..Template::built_in() };
    template.defaults.replication = 3;
    assert_eq!(space.put_template(template.clone()).await.unwrap(), 2);
    assert_eq!(space.propose(&journal("logs/a")).unwrap().replication, 3);
    applied(&space, vec![Change::Upsert { spec: spec("logs/a"), expect: Expect::Any }]).await;
    let nested = space.propose(&journal("logs/a/b"));
    assert!(matches!(nested, Err(Refused::Nested { .. })), "{nested:?}");

    // Case: defaults that no journal can have
    let mut wrong = template;
    wrong.defaults.replication = 0;
    assert!(matches!(space.put_template(wrong).await, Err(Error::Invalid(_))));
    assert_eq!(space.revision(), 3);

    // Case: removed, and removed again
    for _ in 0..2 {
        assert_eq!(space.remove_template("logs/".into()).await.unwrap(), 4);
    }
    assert_eq!(space.propose(&journal("logs/b")).unwrap().replication, 1);
}

/// A file whose bytes are wrong in any place is opened, or refused: nothing panics, not when it is
/// closed either.
#[tokio::test]
async fn a_flipped_byte_is_found_or_does_no_harm() {
    let whole = Arc::new(Memory::default());
    let keys = Embedded::open(whole.clone(), 7).unwrap();
    for number in 0..200 {
        let name = Journal::new(&format!("a/journal/{number:03}")).unwrap();
        let spec = JournalSpec { name, ..Template::built_in().spec() };
        keys.apply(vec![Change::Upsert { spec, expect: Expect::Absent }]).await.unwrap();
    }
    let expected: Vec<_> = keys.list(&Selector::default()).entries;
    // Of one that was not closed the last transaction may be torn, and is passed over.
    drop(keys);
    let mut image = vec![0; usize::try_from(whole.len().unwrap()).unwrap()];
    whole.read(0, &mut image).unwrap();
    let mut refused = 0;
    for at in (0..image.len()).step_by(1021) {
        let damaged = Arc::new(Memory::default());
        let mut bytes = image.clone();
        bytes[at] ^= 0x10;
        damaged.write(0, &bytes).unwrap();
        match Embedded::open(damaged, 7) {
            // It was in no use.
            Ok(keys) => assert!(keys.list(&Selector::default()).entries == expected, "byte {at}"),
            Err(error) => {
                assert!(error.is_damage(), "byte {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10, "{refused} of {} bytes were found", image.len() / 1021);
}
