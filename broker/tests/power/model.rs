//! What may be found after a stop: what was tried, how far each append was promised, and what
//! readers saw.

use crate::load::{JOURNALS, WITH_REGISTER, append, register};
use crate::world::journal;
use broker::{Broker, Terms};
use bytes::Bytes;
use client::{Durability, Error, Journals, Read, Writer};
use protocol::{Journal, Offset, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// How far an append got before the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Never answered: it may be there, whole.
    Nothing,
    /// Acknowledged at `memory`.
    Memory,
    /// Acknowledged at `disk`, or synced since.
    Disk,
}

/// One append that was tried. Its tag is in its content, which no other has.
#[derive(Debug, Clone)]
pub struct Tried {
    tag: u64,
    len: usize,
    writer: Writer,
    durability: Durability,
    span: Option<Span>,
    promise: Promise,
}

impl Tried {
    /// Begins with the tag and the length, so that a run of appends can be told apart.
    pub fn content(&self) -> Vec<u8> {
        let mut content = format!("[{:08x}{:08x}", self.tag, self.len).into_bytes();
        let rest = (content.len()..self.len - 1).map(|at| b'a' + (at as u64 * self.tag % 23) as u8);
        content.extend(rest);
        content.push(b']');
        content
    }

    pub fn terms(&self, has_register: bool) -> Terms {
        Terms {
            writer: Some(self.writer),
            durability: Some(self.durability),
            union_registers: has_register.then(|| register(self.tag)),
            ..Terms::default()
        }
    }
}

#[derive(Debug, Default)]
struct Known {
    tried: BTreeMap<u64, Tried>,
    /// The highest head that anybody was told.
    head: Offset,
    /// What readers saw.
    seen: Vec<(Offset, Bytes)>,
    /// `None` while a creation or deletion is under way.
    exists: Option<bool>,
}

/// See the module. Clones share one.
#[derive(Debug, Clone, Default)]
pub struct Model {
    journals: Arc<Mutex<BTreeMap<Journal, Known>>>,
    next_tag: Arc<Mutex<u64>>,
}

/// Appends by the offset at which they lie.
type Found = BTreeMap<Offset, u64>;

impl Model {
    fn journals(&self) -> MutexGuard<'_, BTreeMap<Journal, Known>> {
        self.journals.lock().expect("no holder panics")
    }

    fn known<T>(&self, journal: &Journal, note: impl FnOnce(&mut Known) -> T) -> T {
        note(self.journals().entry(journal.clone()).or_default())
    }

    pub fn try_one(
        &self,
        journal: &Journal,
        len: usize,
        writer: Writer,
        durability: Durability,
    ) -> Tried {
        let mut next = self.next_tag.lock().expect("no holder panics");
        *next += 1;
        let promise = Promise::Nothing;
        let tried = Tried { tag: *next, len, writer, durability, span: None, promise };
        self.known(journal, |known| known.tried.insert(tried.tag, tried.clone()));
        tried
    }

    pub fn acknowledge(&self, journal: &Journal, tried: &Tried, span: Span) {
        assert_eq!(span.len(), tried.len as u64, "{journal}: {span} for {tried:?}");
        self.known(journal, |known| {
            let of = known.tried.get_mut(&tried.tag).expect("it was tried");
            of.span = Some(span);
            of.promise = match tried.durability {
                Durability::Memory => Promise::Memory,
                Durability::Disk => Promise::Disk,
            };
            known.head = known.head.max(span.end());
        });
    }

    /// All appends that are answered and end below `below` are promised so.
    pub fn promise(&self, journal: &Journal, below: Offset, promise: Promise) {
        self.known(journal, |known| {
            let below = known
                .tried
                .values_mut()
                .filter(|tried| tried.span.is_some_and(|span| span.end() <= below));
            below.for_each(|tried| tried.promise = promise);
        });
    }

    pub fn saw_head(&self, journal: &Journal, head: Offset) {
        self.known(journal, |known| known.head = known.head.max(head));
    }

    pub fn saw(&self, journal: &Journal, offset: Offset, bytes: &Bytes) {
        self.known(journal, |known| {
            known.head = known.head.max(offset.plus(bytes.len() as u64));
            known.seen.push((offset, bytes.clone()));
        });
    }

    pub fn exists(&self, journal: &Journal, exists: Option<bool>) {
        self.known(journal, |known| known.exists = exists);
    }

    /// Checks a recovered broker, and goes on from what is there.
    pub async fn check(&self, broker: &Broker, is_power: bool, why: &str) {
        let names: Vec<Journal> = self.journals().keys().cloned().collect();
        for name in names {
            let stays = JOURNALS.iter().any(|(stays, _)| *stays == name.as_str());
            let exists = broker.served(&name).is_some();
            if let Some(expected) = self.known(&name, |known| known.exists) {
                assert_eq!(exists, expected, "{why}: whether {name} exists");
            }
            if exists {
                self.check_one(broker, &name, is_power, why).await;
            }
            // What a deletion left behind, and a creation over it, is tested elsewhere.
            if !stays {
                self.journals().remove(&name);
            }
        }
    }

    async fn check_one(&self, broker: &Broker, name: &Journal, is_power: bool, why: &str) {
        let why = &format!("{why}: {name}");
        let stat = Journals::stat(broker, name).await;
        let stat = stat.unwrap_or_else(|e| panic!("{why}: {e}"));
        let (runs, lost) = read_all(broker, name, why).await;
        let registers = broker.served(name).expect("it exists").replica().registers();
        self.known(name, |known| {
            assert!(stat.head >= known.head, "{why}: head {} below {}", stat.head, known.head);
            let found = known.cut(&runs, why);
            known.check_promises(&found, &lost, is_power, why);
            known.check_seen(&runs, &lost, why);
            if name.as_str() == WITH_REGISTER {
                let last = found.last_key_value().map(|(_, tag)| register(*tag));
                assert_eq!(registers, last.unwrap_or_default(), "{why}: registers");
            }
            known.go_on(&found, stat.head);
        });
    }

    /// Every writer asks for its last append again: it is there once, whether it was answered or
    /// not.
    pub async fn ask_again(&self, broker: &Broker, why: &str) {
        for (name, _) in JOURNALS {
            let name = journal(name);
            if broker.served(&name).is_none() {
                continue;
            }
            let last: BTreeMap<[u8; 16], Tried> = self.known(&name, |known| {
                known.tried.values().map(|tried| (tried.writer.id, tried.clone())).collect()
            });
            for tried in last.into_values() {
                let why = format!("{why}: {name}: {tried:?} is asked for again");
                let content = Bytes::from(tried.content());
                let terms = tried.terms(name.as_str() == WITH_REGISTER);
                let mut answer = append(broker, &name, terms.clone(), content.clone()).await;
                while let Err(broker::Error::Local(index::Error::OverBudget { .. })) = answer {
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    answer = append(broker, &name, terms.clone(), content.clone()).await;
                }
                let committed = answer.unwrap_or_else(|e| panic!("{why}: {e}"));
                assert_eq!(committed.is_repeated, tried.span.is_some(), "{why}");
                if let Some(span) = tried.span {
                    assert_eq!(committed.span, span, "{why}");
                }
                self.acknowledge(&name, &tried, committed.span);
            }
        }
        self.check(broker, false, &format!("{why}, after asking again")).await;
    }
}

impl Known {
    /// Cuts runs of readable bytes into appends that were tried, each whole and there once.
    fn cut(&self, runs: &[(Offset, Vec<u8>)], why: &str) -> Found {
        let mut found = Found::new();
        let mut once = BTreeSet::new();
        for (begin, run) in runs {
            let mut at = 0;
            while at < run.len() {
                let offset = begin.plus(at as u64);
                let tag = run.get(at + 1..at + 9).and_then(|tag| std::str::from_utf8(tag).ok());
                let tag = tag.and_then(|tag| u64::from_str_radix(tag, 16).ok());
                let tried = tag.and_then(|tag| self.tried.get(&tag));
                let tried = tried.unwrap_or_else(|| {
                    let there = String::from_utf8_lossy(&run[at..run.len().min(at + 40)]);
                    panic!("{why}: no append begins at {offset}: {there:?}")
                });
                let content = tried.content();
                assert!(run[at..].starts_with(&content), "{why}: {tried:?} is torn at {offset}");
                assert!(once.insert(tried.tag), "{why}: {tried:?} is there twice");
                found.insert(offset, tried.tag);
                at += content.len();
            }
        }
        found
    }

    fn check_promises(&self, found: &Found, lost: &[Span], is_power: bool, why: &str) {
        for tried in self.tried.values() {
            let Some(span) = tried.span else { continue };
            if found.get(&span.begin()) == Some(&tried.tag) {
                continue;
            }
            let is_lost =
                lost.iter().any(|lost| lost.begin() <= span.begin() && span.end() <= lost.end());
            assert!(tried.promise < Promise::Disk, "{why}: {tried:?} is gone, lost {lost:?}");
            assert!(is_power, "{why}: {tried:?} is gone without a power cut, lost {lost:?}");
            assert!(is_lost, "{why}: {tried:?} is gone and not named, lost {lost:?}");
            // Only the tail goes: nothing that was recorded later is there.
            let later = self.tried.values().find(|later| {
                later.span.is_some_and(|later| later.begin() >= span.end())
                    && found.values().any(|tag| *tag == later.tag)
            });
            assert!(later.is_none(), "{why}: {tried:?} is gone, and {later:?} is there");
        }
    }

    /// What was read once reads the same, or is lost.
    fn check_seen(&self, runs: &[(Offset, Vec<u8>)], lost: &[Span], why: &str) {
        for (offset, bytes) in &self.seen {
            for (at, byte) in bytes.iter().enumerate() {
                let at = offset.plus(at as u64);
                let run = runs.iter().rfind(|(begin, _)| *begin <= at);
                let now = run.and_then(|(begin, run)| run.get(at.since(*begin) as usize));
                let is_lost = || lost.iter().any(|lost| lost.contains(at));
                assert!(
                    now == Some(byte) || now.is_none() && is_lost(),
                    "{why}: a reader saw {byte} at {at}, where {now:?} is"
                );
            }
        }
    }

    /// What is there stays there, wherever it was answered to be; what is not was never there.
    fn go_on(&mut self, found: &Found, head: Offset) {
        self.head = head;
        let places: BTreeMap<u64, Offset> = found.iter().map(|(at, tag)| (*tag, *at)).collect();
        for tried in self.tried.values_mut() {
            tried.span = places.get(&tried.tag).map(|at| Span::at(*at, tried.len as u64));
            tried.promise = match tried.span {
                Some(_) => Promise::Disk,
                None => Promise::Nothing,
            };
        }
        // Of a writer's appends that are nowhere, only the last one can be asked for again.
        let last: BTreeMap<[u8; 16], u64> =
            self.tried.values().map(|tried| (tried.writer.id, tried.tag)).collect();
        self.tried.retain(|tag, tried| tried.span.is_some() || last[&tried.writer.id] == *tag);
    }
}

/// All readable bytes in runs, and the spans that are lost.
async fn read_all(
    broker: &Broker,
    name: &Journal,
    why: &str,
) -> (Vec<(Offset, Vec<u8>)>, Vec<Span>) {
    let (mut runs, mut lost) = (Vec::<(Offset, Vec<u8>)>::new(), Vec::new());
    let mut offset = Offset::ZERO;
    let mut is_new = true;
    loop {
        let read = Read { journal: name.clone(), life: None, offset, max: 64 << 10 };
        match Journals::read(broker, read).await {
            Ok(bytes) if bytes.is_empty() => return (runs, lost),
            Ok(bytes) => {
                if std::mem::take(&mut is_new) {
                    runs.push((offset, Vec::new()));
                }
                runs.last_mut().expect("just begun").1.extend_from_slice(&bytes);
                offset = offset.plus(bytes.len() as u64);
            }
            Err(Error::Lost { span, .. }) => {
                lost.push(span);
                offset = span.end();
                is_new = true;
            }
            Err(error) => panic!("{why}: at {offset}: {error}"),
        }
    }
}
