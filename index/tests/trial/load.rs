//! A mixed load on one data directory, in the order that its dice give: it stops at the first
//! failure that says the disk has stopped, and goes on after any other.

use super::model::{JournalModel, Model, Promise, Tried};
use bytes::Bytes;
use futures::FutureExt;
use index::clock::ManualClock;
use index::disk::{Disk, ForgetfulDisk};
use index::record::{Persisted, Position};
use index::{Commit, Content, DataDir, Entry, Error, Options, Policy, Replica};
use protocol::{Codec, Journal, Life, Offset, Span};
use std::sync::Arc;
use std::time::Duration;

pub struct Load {
    pub disk: ForgetfulDisk,
    pub data: Arc<DataDir>,
    pub model: Model,
    clock: Arc<ManualClock>,
    dice: u64,
    next_life: u64,
    next_tag: u64,
    waiting: Vec<(Life, usize, Commit)>,
    persisted: Vec<(Life, Span, Position)>,
}

pub fn options() -> Options {
    Options { segment_len: Some(8 << 10), inline_max: 512, ..Options::default() }
}

pub fn open(disk: &ForgetfulDisk, clock: &Arc<ManualClock>) -> Result<Arc<DataDir>, Error> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    DataDir::open(disk, clock.clone(), options()).map(|(data, _)| data)
}

impl Load {
    /// Opens the directory; fails if the disk stops or fails before it is open.
    pub fn begin(disk: ForgetfulDisk, model: Model, dice: u64) -> Result<Load, Error> {
        let clock = Arc::new(ManualClock::at_us(1_700_000_000_000_000 + dice));
        let data = open(&disk, &clock)?;
        let next_life = model.journals.keys().map(|life| life.get()).max().unwrap_or(0) + 1;
        let load = Load {
            disk,
            data,
            clock,
            dice,
            next_life,
            next_tag: dice << 20,
            waiting: Vec::new(),
            persisted: Vec::new(),
            model,
        };
        load.data.replicas().iter().for_each(|replica| set_policy(replica));
        Ok(load)
    }

    fn roll_dice(&mut self, below: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below
    }

    /// Runs up to `steps` steps.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            if self.disk.is_stopped() {
                return;
            }
            self.clock.advance(Duration::from_millis(200));
            match self.roll_dice(100) {
                0..=4 => self.create(),
                5..=44 => self.append(false),
                45..=59 => self.append(true),
                60..=74 => self.sync(),
                75..=79 => self.tick(),
                80..=82 => self.roll(),
                83..=88 => self.persist(),
                89..=91 => self.evict(),
                92..=93 => self.trim(),
                94 => self.delete(),
                95..=96 => drop(self.data.prepare_log()),
                _ => drop(self.data.checkpoint()),
            }
        }
    }

    fn pick(&mut self) -> Option<Arc<Replica>> {
        let replicas = self.data.replicas();
        let at = self.roll_dice(replicas.len().max(1) as u64) as usize;
        replicas.get(at).cloned()
    }

    fn create(&mut self) {
        if self.model.journals.len() >= 6 {
            return;
        }
        let life = Life::new(self.next_life);
        self.next_life += 1;
        let name = Journal::new(&format!("trial/{life}")).expect("a valid name");
        self.model.journals.insert(life, JournalModel::default());
        if let Ok(replica) = self.data.create(life, &name) {
            set_policy(&replica);
        }
    }

    fn append(&mut self, is_disk: bool) {
        let Some(replica) = self.pick() else { return };
        let len = match self.roll_dice(10) {
            0 => 0,
            1..=6 => 1 + self.roll_dice(200),
            7..=8 => 513 + self.roll_dice(3_000),
            _ => 5_000 + self.roll_dice(9_000),
        };
        self.next_tag += 1;
        let content = content(self.next_tag, len as usize);
        let Some(mut turn) = replica.turn().now_or_never() else { return };
        let begin = turn.head();
        let journal =
            self.model.journals.get_mut(&replica.life()).expect("every journal is modelled");
        let tried = Tried {
            span: Span::at(begin, len),
            content: content.clone(),
            promise: Promise::Nothing,
        };
        journal.tried.push(tried);
        let at = journal.tried.len() - 1;
        let content = match len % 3 {
            0 if len > 512 => self.stage(&content),
            _ => Some(Content::Memory(Bytes::from(content))),
        };
        let Some(content) = content else { return };
        let entry =
            Entry { content, registers: None, writer: Some(([7; 16], self.next_tag)), is_disk };
        let Ok(commit) = turn.record(entry) else { return };
        drop(turn);
        if commit.is_done() {
            self.acknowledge(replica.life(), at, is_disk);
        } else if is_disk {
            self.waiting.push((replica.life(), at, commit));
            self.sync();
        } else {
            self.waiting.push((replica.life(), at, commit));
        }
        self.look(&replica);
    }

    fn stage(&self, content: &[u8]) -> Option<Content> {
        let mut upload = self.data.stage().ok()?;
        content.chunks(1_000).try_for_each(|piece| upload.push(piece)).ok()?;
        upload.finish().ok().map(Content::Staged)
    }

    fn acknowledge(&mut self, life: Life, at: usize, is_disk: bool) {
        if let Some(journal) = self.model.journals.get_mut(&life) {
            let promise = if is_disk { Promise::Disk } else { Promise::Memory };
            journal.tried[at].promise = journal.tried[at].promise.max(promise);
        }
    }

    /// A reader looks at the head: what it saw may never be another's.
    fn look(&mut self, replica: &Replica) {
        let head = replica.head();
        if let Some(journal) = self.model.journals.get_mut(&replica.life()) {
            journal.shown = journal.shown.max(head);
        }
    }

    fn sync(&mut self) {
        let created: Vec<Life> =
            self.data.replicas().iter().map(|replica| replica.life()).collect();
        let is_ok = self.data.sync_round().is_ok();
        for (life, at, commit) in std::mem::take(&mut self.waiting) {
            // An append that is not done keeps its place; a dropped waiter would hear nothing.
            let mut done = Box::pin(commit.done());
            if let Some(Ok(_)) = (&mut done).now_or_never() {
                self.acknowledge(life, at, is_ok);
            }
        }
        if !is_ok {
            return;
        }
        for life in created {
            let Some(replica) = self.data.replica(life) else { continue };
            let synced = replica.synced();
            let journal = self.model.journals.get_mut(&life).expect("every journal is modelled");
            journal.is_certain = true;
            for tried in &mut journal.tried {
                if tried.promise == Promise::Memory && tried.span.end() <= synced {
                    tried.promise = Promise::Disk;
                }
            }
            self.look(&replica);
        }
    }

    fn tick(&mut self) {
        let seconds = 7 * self.roll_dice(2);
        self.clock.advance(Duration::from_secs(seconds));
        let _ = self.data.tick();
    }

    fn roll(&mut self) {
        if let Some(replica) = self.pick() {
            let _ = replica.roll();
        }
    }

    /// The persister's way: read, verify, put, record.
    fn persist(&mut self) {
        let Some(replica) = self.pick() else { return };
        for closed in replica.to_persist() {
            let mut bytes = vec![0; closed.span.len() as usize];
            let mut done = 0;
            while done < bytes.len() {
                match replica.read(closed.span.begin().plus(done as u64), &mut bytes[done..]) {
                    Ok(n) => done += n,
                    Err(_) => return,
                }
            }
            assert_eq!(crc32c::crc32c(&bytes), closed.crc, "a closed span has its checksum");
            self.model.store.insert((replica.life(), closed.span), bytes);
            let stored = Persisted {
                life: replica.life().get(),
                begin: closed.span.begin().get(),
                end: closed.span.end().get(),
                codec: Codec::None.number(),
                ..Persisted::default()
            };
            if let Ok(position) = replica.persisted_as(stored) {
                self.persisted.push((replica.life(), closed.span, position));
            }
        }
    }

    fn evict(&mut self) {
        let synced = self.data.log().synced();
        for (life, span, position) in self.persisted.clone() {
            let Some(replica) = self.data.replica(life) else { continue };
            if position >= synced || !replica.evictable().contains(&span) {
                continue;
            }
            let Ok(Some(evicted)) = replica.evict(span) else { continue };
            self.sync();
            if self.data.log().synced() > evicted {
                let _ = replica.free(span);
            }
        }
    }

    fn trim(&mut self) {
        let Some(replica) = self.pick() else { return };
        let below = replica.head().get() / 2;
        let below = Offset::new(below).expect("not negative");
        let journal =
            self.model.journals.get_mut(&replica.life()).expect("every journal is modelled");
        journal.trimmed = journal.trimmed.max(below);
        let _ = replica.trim(below);
    }

    fn delete(&mut self) {
        let Some(replica) = self.pick() else { return };
        let life = replica.life();
        self.waiting.retain(|(waiting, ..)| *waiting != life);
        self.model.journals.get_mut(&life).expect("every journal is modelled").is_certain = false;
        drop(replica);
        if self.data.delete(life).is_ok() {
            self.model.journals.remove(&life);
            self.model.store.retain(|(owner, _), _| *owner != life);
        }
    }

    /// Ends cleanly.
    pub fn close(&mut self) {
        self.sync();
        let _ = self.data.close();
    }
}

fn set_policy(replica: &Replica) {
    let flush_interval = Duration::from_secs(60);
    replica.set_policy(Policy { fragment_len: 9_000, flush_interval, codec: Codec::None });
}

/// Content that no other append has, and no zero byte.
fn content(tag: u64, len: usize) -> Vec<u8> {
    let mut state = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut content = Vec::with_capacity(len);
    while content.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.push((state >> 32) as u8 | 1);
    }
    content
}

/// Opens once more and appends to every journal: what a stop left can be worked with.
pub fn go_on(disk: &ForgetfulDisk, model: &Model) -> Result<Load, Error> {
    let mut load = Load::begin(disk.clone(), model.clone(), 99)?;
    for replica in load.data.replicas() {
        let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
        let begin = turn.head();
        load.next_tag += 1_000_000;
        let content = content(load.next_tag, 700);
        let span = Span::at(begin, 700);
        let entry = Entry {
            content: Content::Memory(Bytes::from(content.clone())),
            registers: None,
            writer: None,
            is_disk: true,
        };
        let commit = turn.record(entry).expect("a healthy disk takes an append");
        drop(turn);
        load.data.sync_round().expect("a healthy disk syncs");
        commit.done().now_or_never().expect("synced is done").expect("nothing failed");
        let journal = load.model.journals.entry(replica.life()).or_default();
        journal.tried.push(Tried { span, content, promise: Promise::Disk });
        journal.shown = replica.head();
    }
    Ok(load)
}
