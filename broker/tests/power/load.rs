//! A mixed load on a broker: writers at `disk` and at `memory`, readers, and journals that come and
//! go, while the persister and the evictor have much to do.

use crate::model::{Model, Promise, Tried};
use crate::world::journal;
use broker::{Ask, Broker, Config, Error, Terms};
use bytes::Bytes;
use client::{Durability, Journals, Read, Writer};
use cluster::{Change, Expect};
use index::clock::ManualClock;
use index::disk::ForgetfulDisk;
use protocol::{Codec, Journal, LabelSet, Offset, Remedy};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The journals that stay, and how many writers each has.
pub const JOURNALS: [(&str, u64); 3] = [("p/one", 1), ("p/two", 2), ("p/three", 3)];
/// The journal whose one writer sets a register with each append.
pub const WITH_REGISTER: &str = "p/one";
const APPENDS: u64 = 40;
const READS: usize = 30;

/// A small generator (splitmix64): the seed decides everything.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// An open broker with its clock.
pub struct Load {
    pub broker: Broker,
    clock: Arc<ManualClock>,
}

impl Load {
    pub async fn open(disk: &ForgetfulDisk) -> Result<Load, Error> {
        let clock = Arc::new(ManualClock::at_us(1_795_910_400_000_000));
        let shared = Arc::new(disk.clone());
        let mut config = Config::over(shared.clone(), shared, clock.clone(), 7);
        config.space.segment_len = Some(32 << 10);
        config.space.inline_max = 2_000;
        config.space.local_budget = Some(60_000);
        Ok(Load { broker: Broker::open(config).await?, clock })
    }

    pub async fn end(self) {
        // The disk may have stopped: threads and tasks end all the same.
        let _ = self.broker.close().await;
    }
}

/// Runs the load until the disk stops, or to its end. What it tries and sees goes into the model.
pub async fn run(disk: &ForgetfulDisk, model: &Model, seed: u64) {
    let Ok(load) = Load::open(disk).await else { return };
    let mut tasks = JoinSet::new();
    if prepare(&load.broker, model).await.is_ok() {
        let mut id = 0;
        for (name, writers) in JOURNALS {
            tasks.spawn(read(load.broker.clone(), model.clone(), journal(name), seed));
            for _ in 0..writers {
                id += 1;
                let writer = Appender::new(load.broker.clone(), model, name, seed, id);
                tasks.spawn(writer.run());
            }
        }
        tasks.spawn(come_and_go(load.broker.clone(), model.clone(), seed));
    }
    while !tasks.is_empty() && !disk.is_stopped() {
        load.clock.advance(Duration::from_millis(20));
        sleep(Duration::from_millis(20)).await;
        while tasks.try_join_next().is_some_and(|ended| ended.map_or_else(raise, |()| true)) {}
    }
    // Whoever was answered before the stop may note it; nobody is answered after it.
    sleep(Duration::from_millis(1)).await;
    tasks.shutdown().await;
    load.end().await;
}

fn raise(error: tokio::task::JoinError) -> bool {
    std::panic::resume_unwind(error.into_panic())
}

async fn prepare(broker: &Broker, model: &Model) -> Result<(), Error> {
    for (name, _) in JOURNALS {
        create(broker, &journal(name)).await?;
        model.exists(&journal(name), Some(true));
    }
    Ok(())
}

/// Creates a journal with small fragments, or finds it there.
async fn create(broker: &Broker, name: &Journal) -> Result<(), Error> {
    let mut spec = broker.key_space().propose(name).map_err(cluster::Error::Refused)?;
    spec.fragment.codec = Codec::None;
    spec.fragment.length = 12_000;
    spec.fragment.refresh_interval = Duration::from_secs(5);
    broker.apply(vec![Change::Upsert { spec, expect: Expect::Any }]).await.map(drop)
}

/// One writer of one journal.
struct Appender {
    broker: Broker,
    model: Model,
    journal: Journal,
    id: [u8; 16],
    dice: Dice,
    /// One append in so many is at `disk`: where they are rare there is more to lose.
    disk_share: u64,
}

impl Appender {
    fn new(broker: Broker, model: &Model, name: &str, seed: u64, number: u64) -> Self {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&seed.to_le_bytes());
        id[8..].copy_from_slice(&number.to_le_bytes());
        let dice = Dice::new(seed ^ number << 32);
        let disk_share = [2, 2, 40][(seed % 3) as usize];
        Appender { broker, model: model.clone(), journal: journal(name), id, dice, disk_share }
    }

    async fn run(mut self) {
        for sequence in 1..=APPENDS {
            let durability = match self.dice.roll(self.disk_share) {
                0 => Durability::Disk,
                _ => Durability::Memory,
            };
            let writer = Writer { id: self.id, sequence };
            let len = self.len();
            let tried = self.model.try_one(&self.journal, len, writer, durability);
            while let Err(error) = self.append(&tried).await {
                let is_of_disk = matches!(error, Error::Local(_));
                assert!(is_of_disk || error.remedy() == Remedy::Later, "{tried:?}: {error}");
                // Until the evictor has been there, or until the disk works again.
                sleep(Duration::from_millis(200)).await;
            }
            if self.dice.roll(4 * self.disk_share) == 0 && self.sync().await.is_err() {
                return;
            }
            sleep(Duration::from_millis(self.dice.roll(300))).await;
        }
    }

    fn len(&mut self) -> usize {
        let len = match self.dice.roll(20) {
            0..=13 => 20 + self.dice.roll(300),
            14..=18 => 1_000 + self.dice.roll(4_000),
            _ => 8_000 + self.dice.roll(9_000),
        };
        usize::try_from(len).expect("a small number")
    }

    async fn append(&mut self, tried: &Tried) -> Result<(), Error> {
        let terms = tried.terms(self.journal.as_str() == WITH_REGISTER);
        let content = Bytes::from(tried.content());
        let is_in_pieces = self.dice.roll(4) == 0;
        let appended = match is_in_pieces {
            true => append_in_pieces(&self.broker, &self.journal, terms, content).await,
            false => append(&self.broker, &self.journal, terms, content).await,
        };
        self.model.acknowledge(&self.journal, tried, appended?.span);
        Ok(())
    }

    async fn sync(&self) -> Result<(), client::Error> {
        let head = self.broker.served(&self.journal).expect("it stays").replica().head();
        Journals::sync(&self.broker, &self.journal, head).await?;
        self.model.promise(&self.journal, head, Promise::Disk);
        Ok(())
    }
}

pub async fn append(
    broker: &Broker,
    journal: &Journal,
    terms: Terms,
    content: Bytes,
) -> Result<broker::Committed, Error> {
    let resolution = broker.resolve(&Ask::new(journal.clone())).await?;
    broker.append_bytes(resolution, terms, content).await
}

async fn append_in_pieces(
    broker: &Broker,
    journal: &Journal,
    terms: Terms,
    content: Bytes,
) -> Result<broker::Committed, Error> {
    let resolution = broker.resolve(&Ask::new(journal.clone())).await?;
    let mut stager = broker.begin_append(resolution, terms, &broker.connection()).await?;
    for piece in content.chunks(3_000) {
        stager.push(content.slice_ref(piece)).await?;
        tokio::task::yield_now().await;
    }
    stager.finish().await?.commit().await
}

/// Notes the heads that a reader sees, and bytes at random offsets.
async fn read(broker: Broker, model: Model, journal: Journal, seed: u64) {
    let mut dice = Dice::new(!seed);
    for _ in 0..READS {
        sleep(Duration::from_millis(150)).await;
        let Ok(stat) = Journals::stat(&broker, &journal).await else { return };
        model.saw_head(&journal, stat.head);
        let back = dice.roll(stat.head.as_u64().clamp(1, 20_000));
        let offset = Offset::ZERO.plus(stat.head.as_u64() - back.min(stat.head.as_u64()));
        let read = Read { journal: journal.clone(), life: None, offset, max: 3_000 };
        // Before a failing disk is seen as stopped, it fails reads as well.
        let Ok(bytes) = Journals::read(&broker, read).await else { continue };
        model.saw(&journal, offset, &bytes);
    }
}

/// Creates a journal, appends to it, deletes it, and goes on with the next one.
async fn come_and_go(broker: Broker, model: Model, seed: u64) {
    for number in 0..4 {
        let name = journal(&format!("d/{seed}-{number}"));
        if create(&broker, &name).await.is_err() {
            return;
        }
        model.exists(&name, Some(true));
        let writer = Writer { id: [9; 16], sequence: 1 };
        let tried = model.try_one(&name, 2_500, writer, Durability::Disk);
        let content = Bytes::from(tried.content());
        match append(&broker, &name, tried.terms(false), content).await {
            Ok(committed) => model.acknowledge(&name, &tried, committed.span),
            Err(_) => return,
        }
        sleep(Duration::from_millis(700)).await;
        model.exists(&name, None);
        let delete = Change::Delete { journal: name.clone(), expect: Expect::Any };
        match broker.apply(vec![delete]).await {
            Ok(_) => model.exists(&name, Some(false)),
            Err(Error::Unpersisted { .. }) => model.exists(&name, Some(true)),
            Err(_) => return,
        }
    }
}

/// The register of an append.
pub fn register(sequence: u64) -> LabelSet {
    LabelSet::default().with("number", &sequence.to_string()).expect("a valid label")
}
