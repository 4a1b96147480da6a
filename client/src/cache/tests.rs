//! The cache over journals elsewhere, on a real disk.

mod model;

use super::double::Elsewhere;
use super::{Cached, Refused};
use crate::Error;
use crate::journals::{Append, Journals, Loan, Read};
use bytes::Bytes;
use index::disk::{Disk, ForgetfulDisk, RealDisk};
use protocol::{Journal, Life, Offset};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// A cache that can be closed, or just end, and be opened again.
struct World {
    elsewhere: Arc<Elsewhere>,
    cached: Option<Cached>,
    budget: usize,
    source: &'static str,
    dir: TempDir,
}

impl World {
    fn new(budget: usize) -> World {
        let dir = tempfile::tempdir().expect("a directory");
        let elsewhere = Arc::new(Elsewhere::new());
        let mut world = World { elsewhere, cached: None, budget, source: "here", dir };
        world.start();
        world
    }

    fn open(&self) -> Result<Cached, Refused> {
        let disk = Arc::new(RealDisk::new(self.dir.path()).expect("a directory"));
        Cached::open(self.elsewhere.clone(), disk, self.budget as u64, self.source)
    }

    fn start(&mut self) {
        self.cached = Some(self.open().expect("nobody else has it"));
    }

    async fn restart(&mut self, cleanly: bool) {
        let cached = self.cached.take().expect("it was started");
        if cleanly {
            cached.close().await;
        }
        // The directory is given back when the last task is gone.
        cached.fetches.end().await;
        drop(cached);
        self.start();
    }

    fn cached(&self) -> &Cached {
        self.cached.as_ref().expect("it was started")
    }

    async fn read(&self, life: Life, at: usize, max: usize) -> Result<Bytes, Error> {
        let read = Read { journal: log(), life: Some(life), offset: offset(at), max };
        self.cached().read(read).await
    }

    /// Reads to the end, as cat does.
    async fn read_all(&self, life: Life) -> Vec<u8> {
        self.read_all_of(&log(), life).await
    }

    async fn read_all_of(&self, journal: &Journal, life: Life) -> Vec<u8> {
        let (journal, life, max) = (journal.clone(), Some(life), 128 << 10);
        let mut read = Read { journal, life, offset: Offset::ZERO, max };
        let mut all = Vec::new();
        loop {
            read.offset = offset(all.len());
            match self.cached().read(read.clone()).await.expect("readable") {
                bytes if bytes.is_empty() => return all,
                bytes => all.extend_from_slice(&bytes),
            }
        }
    }

    fn lend(&self) -> Option<Loan> {
        self.cached().lend(&log())
    }

    fn state(&self, name: &str) -> usize {
        let state = self.cached().state();
        let (_, value) = state.iter().find(|(found, _)| *found == name).expect("it is told");
        usize::try_from(*value).expect("small")
    }

    /// Bytes that were read elsewhere since the last call.
    fn fetched(&self) -> usize {
        self.elsewhere.read_len.swap(0, Ordering::Relaxed) as usize
    }
}

fn log() -> Journal {
    "local/log".parse().expect("valid")
}

fn offset(at: usize) -> Offset {
    Offset::try_from(at as u64).expect("small")
}

/// Bytes that are nowhere alike, and of no zero.
fn content(seed: usize, len: usize) -> Vec<u8> {
    let word = |at: usize| (seed + at / 7).wrapping_mul(0x9e37_79b9) >> (at % 7);
    (0..len).map(|at| (word(at) as u8).max(1)).collect()
}

/// All bytes of a lent file, as the kernel would read them.
fn bytes_of(loan: &Loan) -> Vec<u8> {
    let file = std::fs::File::from(loan.file.as_fd().try_clone_to_owned().expect("descriptors"));
    let len = file.metadata().expect("a file").len() as usize;
    let mut bytes = vec![0; len];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).expect("readable");
    bytes
}

#[tokio::test]
async fn what_was_read_once_is_local() {
    let world = World::new(64 * MIB);
    let expected = content(1, 5 * MIB + 17);
    let life = world.elsewhere.put(&log(), expected.clone());
    assert!(world.lend().is_none(), "nothing is local yet");
    assert!(world.read_all(life).await == expected);
    assert_eq!(world.fetched(), expected.len(), "each byte is fetched once");
    world.elsewhere.is_away.store(true, Ordering::Relaxed);
    assert!(world.read(life, 17, MIB).await.expect("it is local") == expected[17..17 + MIB]);
    let loan = world.lend().expect("it is whole");
    assert!(bytes_of(&loan) == expected);
    assert_eq!(world.state("cache-lent-bytes"), expected.len());
    drop(loan);
    assert_eq!(world.state("cache-lent-bytes"), 0);
    // Case: the head is asked for elsewhere, always.
    let end = world.read(life, expected.len(), 10).await;
    assert!(matches!(end, Err(Error::Unreachable(_))), "{end:?}");
}

#[tokio::test]
async fn readers_far_apart_fetch_what_they_read_and_little_more() {
    let world = World::new(256 * MIB);
    let expected = content(2, 40 * MIB);
    let life = world.elsewhere.put(&log(), expected.clone());
    for at in [30 * MIB + 5, 3 * MIB, 20 * MIB - 4096] {
        let bytes = world.read(life, at, 4096).await.expect("readable");
        assert!(bytes == expected[at..at + 4096]);
    }
    tokio::task::yield_now().await;
    let fetched = world.fetched();
    assert!(fetched <= 3 * (MIB + 4096), "{fetched} bytes for three small reads");
    assert!(world.lend().is_none());
}

#[tokio::test]
async fn what_is_lent_follows_appends() {
    let world = World::new(64 * MIB);
    let mut expected = content(3, MIB);
    let life = world.elsewhere.put(&log(), expected.clone());
    world.read_all(life).await;
    let loan = world.lend().expect("whole");
    // Case: an append here is in the mirror when it returns, and is not fetched.
    world.fetched();
    let append = Append::new(log(), Bytes::from_static(b"mine\n"));
    world.cached().append(append).await.expect("appended");
    expected.extend_from_slice(b"mine\n");
    assert!(bytes_of(&loan) == expected);
    assert_eq!(world.fetched(), 0);
    // Case: one from elsewhere is there when its size was told.
    world.elsewhere.push(&log(), b"theirs\n");
    expected.extend_from_slice(b"theirs\n");
    world.cached().stat(&log()).await.expect("it is there");
    assert!(bytes_of(&loan) == expected);
    // Case: one of here after one from elsewhere leaves no hole.
    world.elsewhere.push(&log(), b"theirs\n");
    world.cached().append(Append::new(log(), Bytes::from_static(b"x"))).await.expect("appended");
    expected.extend_from_slice(b"theirs\nx");
    assert!(bytes_of(&loan) == expected);
    // Case: nobody asks, and it comes all the same.
    world.elsewhere.push(&log(), b"unasked\n");
    expected.extend_from_slice(b"unasked\n");
    while bytes_of(&loan).len() < expected.len() {
        tokio::task::yield_now().await;
    }
    assert!(bytes_of(&loan) == expected);
    // Case: one that was given back and grew a little is whole when its size was told.
    drop(loan);
    world.elsewhere.push(&log(), b"later\n");
    expected.extend_from_slice(b"later\n");
    world.cached().stat(&log()).await.expect("it is there");
    assert!(bytes_of(&world.lend().expect("whole")) == expected);
}

#[tokio::test]
async fn another_life_shows_nothing_of_the_last() {
    let world = World::new(64 * MIB);
    let old = world.elsewhere.put(&log(), content(4, MIB));
    world.read_all(old).await;
    let loan = world.lend().expect("whole");
    let expected = content(5, 2 * MIB);
    let new = world.elsewhere.put(&log(), expected.clone());
    let read = world.read(old, 0, 10).await;
    assert!(matches!(read, Err(Error::Deleted(_))), "{read:?}");
    assert!(world.lend().is_none());
    assert!(world.read_all(new).await == expected);
    assert_eq!(world.lend().expect("whole").life, new);
    // Case: a handle of the old one has the old bytes, and its room is no longer counted.
    assert!(bytes_of(&loan) == content(4, MIB));
    drop(loan);
    assert_eq!(world.state("cache-bytes"), expected.len());
    assert_eq!(world.state("cache-lent-bytes"), 0);
    // Case: it is gone.
    world.cached().purge(&log()).await.expect("it is there");
    assert_eq!(world.state("cache-bytes"), 0);
    assert_eq!(std::fs::read_dir(world.dir.path().join("mirror")).expect("there").count(), 0);
}

#[tokio::test]
async fn the_budget_holds_and_what_is_lent_stays() {
    let world = World::new(4 * MIB);
    let expected = content(6, 9 * MIB);
    let life = world.elsewhere.put(&log(), expected.clone());
    for _ in 0..2 {
        assert!(world.read_all(life).await == expected);
        assert!(world.state("cache-bytes") <= 4 * MIB);
    }
    assert!(world.lend().is_none());
    // Case: more than half of it is not lent.
    let life = world.elsewhere.put(&log(), content(7, 3 * MIB));
    world.read_all(life).await;
    assert!(world.lend().is_none());
    let life = world.elsewhere.put(&log(), content(8, MIB));
    world.read_all(life).await;
    let loan = world.lend().expect("half of it may be lent");
    // Case: others come and go; what is lent stays.
    let other: Journal = "local/other".parse().expect("valid");
    let other_life = world.elsewhere.put(&other, expected.clone());
    assert!(world.read_all_of(&other, other_life).await == expected);
    assert!(world.state("cache-bytes") <= 4 * MIB);
    assert!(bytes_of(&loan) == content(8, MIB));
}

#[tokio::test]
async fn a_scan_does_not_drive_out_what_is_read_again() {
    let world = World::new(48 * MIB);
    let life = world.elsewhere.put(&log(), content(12, 16 * MIB));
    for _ in 0..2 {
        world.read_all(life).await;
    }
    let other: Journal = "local/other".parse().expect("valid");
    let expected = content(13, 80 * MIB);
    let other_life = world.elsewhere.put(&other, expected.clone());
    world.fetched();
    assert!(world.read_all_of(&other, other_life).await == expected);
    // Case: what was fetched ahead of the scan was not freed before it came there.
    assert_eq!(world.fetched(), expected.len());
    assert!(world.read_all(life).await == content(12, 16 * MIB));
    assert_eq!(world.fetched(), 0);
}

#[tokio::test]
async fn what_is_lent_and_outgrows_the_budget_is_asked_back() {
    let world = World::new(4 * MIB);
    let life = world.elsewhere.put(&log(), content(14, MIB));
    world.read_all(life).await;
    let loan = world.lend().expect("it is whole");
    let mut asked = world.cached().revocations();
    // Case: whoever writes it here would get the error of its readers.
    world.cached().append(Append::new(log(), content(15, 4 * MIB).into())).await.expect("appended");
    assert!(world.state("cache-bytes") > 4 * MIB && asked.borrow().is_empty());
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    tokio::time::resume();
    world.elsewhere.push(&log(), b"more");
    world.cached().stat(&log()).await.expect("told");
    assert!(asked.borrow_and_update().contains(&life));
    // Case: it is not lent before all of it is back, and may be then.
    assert!(world.lend().is_none());
    drop(loan);
    asked.wait_for(|lives| lives.is_empty()).await.expect("the cache is there");
    assert!(world.state("cache-bytes") <= 4 * MIB);
}

#[tokio::test]
async fn only_a_clean_stop_leaves_anything() {
    let mut world = World::new(64 * MIB);
    let expected = content(9, 2 * MIB);
    let life = world.elsewhere.put(&log(), expected.clone());
    // Case: whether it stops cleanly, whether the source stays, bytes fetched after it
    let cases = [(true, true, 0), (false, true, 2 * MIB), (true, false, 2 * MIB)];
    for (cleanly, stays, fetched) in cases {
        world.read_all(life).await;
        world.fetched();
        world.source = if stays { "here" } else { "there" };
        world.restart(cleanly).await;
        assert!(world.read_all(life).await == expected);
        assert_eq!(world.fetched(), fetched, "{cleanly} {stays}");
    }
    // Case: one that lost its file meanwhile.
    world.cached.take().expect("started").close().await;
    for entry in std::fs::read_dir(world.dir.path().join("mirror")).expect("there") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    world.start();
    assert!(world.read_all(life).await == expected);
    assert_eq!(world.fetched(), expected.len());
}

#[tokio::test]
async fn a_cache_is_one_mounts_alone() {
    let world = World::new(MIB);
    let refused = world.open().err().expect("it is in use").to_string();
    assert!(refused.contains("in use by another mount"), "{refused}");
    assert!(refused.contains(&*world.dir.path().to_string_lossy()), "{refused}");
}

#[tokio::test]
async fn trimmed_bytes_are_the_error_that_elsewhere_gives() {
    let world = World::new(64 * MIB);
    let expected = content(10, 2 * MIB);
    let life = world.elsewhere.put(&log(), expected.clone());
    world.read_all(life).await;
    world.elsewhere.trim(&log(), MIB + 100);
    world.cached().stat(&log()).await.expect("it is there");
    let read = world.read(life, 100, 100).await;
    assert!(matches!(read, Err(Error::Trimmed { .. })), "{read:?}");
    assert!(world.lend().is_none());
    let rest = world.read(life, MIB + 100, 100).await.expect("readable");
    assert!(rest == expected[MIB + 100..MIB + 200]);
}

#[tokio::test(start_paused = true)]
async fn a_local_disk_that_is_full_costs_nothing_but_the_cache() {
    let disk = Arc::new(ForgetfulDisk::new());
    disk.set_capacity(Some(64 << 10));
    let elsewhere = Arc::new(Elsewhere::new());
    let cached = Cached::open(elsewhere.clone(), disk.clone(), 1 << 30, "here").expect("opens");
    let expected = content(11, MIB);
    let life = elsewhere.put(&log(), expected.clone());
    let mut at = 0;
    while at < expected.len() {
        let read = Read { journal: log(), life: Some(life), offset: offset(at), max: 65_536 };
        let bytes = cached.read(read).await.expect("elsewhere has it");
        assert!(!bytes.is_empty() && bytes == expected[at..at + bytes.len()]);
        at += bytes.len();
    }
    assert!(disk.space().expect("told").free < 64 << 10);
}
