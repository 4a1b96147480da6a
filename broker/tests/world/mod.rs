//! A broker on disks in memory, and short ways to ask it.

#![allow(dead_code, reason = "each test file takes what it needs")]

use broker::{Ask, Broker, Committed, Config, Error, Served, Step, Terms};
use bytes::Bytes;
use client::{Append, Appended, Durability, Journals, Read};
use cluster::{Change, Expect, Outcome};
use index::clock::ManualClock;
use index::disk::{Crash, ForgetfulDisk};
use protocol::request::{ReadFrom, ReadRequest};
use protocol::response::ReadMetadata;
use protocol::{Codec, Journal, JournalSpec, Offset};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// 2026-11-29, in microseconds.
const NOW_US: u64 = 1_795_910_400_000_000;

/// See the module.
pub struct World {
    pub disk: ForgetfulDisk,
    pub files: ForgetfulDisk,
    pub clock: Arc<ManualClock>,
    pub broker: Broker,
}

impl World {
    pub async fn new() -> World {
        World::with(|_| ()).await
    }

    pub async fn with(configure: impl FnOnce(&mut Config)) -> World {
        World::on(ForgetfulDisk::new(), ForgetfulDisk::new(), configure).await
    }

    pub async fn on(
        disk: ForgetfulDisk,
        files: ForgetfulDisk,
        configure: impl FnOnce(&mut Config),
    ) -> World {
        let clock = Arc::new(ManualClock::at_us(NOW_US));
        let disks = (Arc::new(disk.clone()), Arc::new(files.clone()));
        let mut config = Config::over(disks.0, disks.1, clock.clone(), 7);
        config.space.segment_len = Some(1 << 20);
        configure(&mut config);
        let broker = Broker::open(config).await.expect("the broker opens");
        World { disk, files, clock, broker }
    }

    /// The broker after its machine or its process died.
    pub async fn crashed(&self, crash: Crash) -> World {
        World::on(self.disk.crash(crash), self.files.crash(crash), |_| ()).await
    }

    /// Creates a journal by the built-in template.
    pub async fn create(&self, name: &str) -> Arc<Served> {
        self.broker.create(&journal(name)).await.expect("the journal is created").0
    }

    /// Creates a journal by a spec that was edited.
    pub async fn apply(&self, name: &str, edit: impl FnOnce(&mut JournalSpec)) -> Arc<Served> {
        let name = journal(name);
        let mut spec = self.broker.key_space().propose(&name).expect("nobody refuses the name");
        spec.fragment.codec = Codec::None;
        edit(&mut spec);
        let upsert = Change::Upsert { spec, expect: Expect::Any };
        let outcome = self.broker.apply(vec![upsert]).await.expect("the spec is valid");
        assert!(matches!(outcome, Outcome::Applied { .. }));
        self.broker.served(&name).expect("it is served")
    }

    pub async fn commit(
        &self,
        name: &str,
        terms: Terms,
        content: &str,
    ) -> Result<Committed, Error> {
        let resolution = self.broker.resolve(&Ask::new(journal(name))).await?;
        self.broker
            .append_bytes(resolution, terms, Bytes::copy_from_slice(content.as_bytes()))
            .await
    }

    pub async fn append(&self, name: &str, content: &str) -> Appended {
        let content = Bytes::copy_from_slice(content.as_bytes());
        let append =
            Append { durability: Some(Durability::Disk), ..Append::new(journal(name), content) };
        let appended = while_time_stands(Journals::append(&self.broker, append)).await;
        appended.expect("the append happens")
    }

    /// All bytes from `offset` to the head, by the trait for files.
    pub async fn read(&self, name: &str, offset: u32) -> Result<String, client::Error> {
        let mut bytes = Vec::new();
        loop {
            let at = Offset::from(offset).plus(bytes.len() as u64);
            let read = Read { journal: journal(name), life: None, offset: at, max: 100_000 };
            let piece = Journals::read(&self.broker, read).await?;
            if piece.is_empty() {
                return Ok(String::from_utf8(bytes).expect("tests write text"));
            }
            bytes.extend_from_slice(&piece);
        }
    }

    /// The messages of a read that does not wait: metadata, and all content in one.
    pub async fn messages(
        &self,
        name: &str,
        from: ReadFrom,
        edit: impl FnOnce(&mut ReadRequest),
    ) -> (Vec<ReadMetadata>, String) {
        let mut request = ReadRequest::new(journal(name), from);
        edit(&mut request);
        let resolution = self.broker.resolve(&Ask::from(&request)).await.expect("it resolves");
        let mut reader = self.broker.reader(&resolution, request).expect("it may be read");
        let (mut metadata, mut content) = (Vec::new(), Vec::new());
        while let Some(step) = reader.next().await {
            match step.expect("the read goes on") {
                Step::Metadata(one) => {
                    one.validate().expect("Gazette's clients take it");
                    metadata.push(*one);
                }
                Step::Content { content: more, .. } => content.extend_from_slice(&more),
            }
        }
        (metadata, String::from_utf8(content).expect("tests write text"))
    }
}

pub fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

/// Waits for what threads do in real time, such as a sync. Paused time stands meanwhile: it does
/// not go on while a task may block, and would else run through every limit at once.
async fn while_time_stands<T>(work: impl Future<Output = T>) -> T {
    let (done, is_done) = std::sync::mpsc::sync_channel::<()>(0);
    let standing = tokio::task::spawn_blocking(move || is_done.recv());
    let outcome = work.await;
    drop(done);
    // Its sender is gone, which is all that it waits for.
    let _ended = standing.await;
    outcome
}

/// Polls until `is_so`, which another task brings about, or a thread in real time.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    for _ in 0..10_000 {
        if is_so().await {
            return;
        }
        while_time_stands(tokio::task::yield_now()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be that {what}");
}
