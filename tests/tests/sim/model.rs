//! What must be true of journals, whatever breaks: kept simpler than the thing. Every answer that
//! an actor gets is told here, and what can't be is a complaint, of which the first one counts.
//!
//! A journal is its bytes, its head, and the offset below which nothing may be lost. Each append
//! has a tag in its content that no other has, so that a journal read whole is cut into appends.

mod coming;
mod history;
mod kept;

use crate::trace::Trace;
use bytes::Bytes;
use client::{Durability, Writer};
use protocol::{Journal, LabelSet, Life, Offset, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Arguments;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

use kept::Kept;

pub use history::Found;

/// How old what a power cut takes may be: the second between syncs, and what a sync waits for.
const LOSS_MAX: Duration = Duration::from_millis(1_200);
/// A fault of the disk may keep syncs from succeeding for so long.
const DISTURBED: Duration = Duration::from_secs(8);

/// What an append asks for beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    None,
    /// The journal ends here.
    At(Offset),
    /// Its register has this value, and gets the next one.
    Register(u64),
    /// The register is set, whatever it is.
    Set(u64),
}

impl Condition {
    /// What the register is afterwards, if it is set.
    fn sets(self) -> Option<u64> {
        match self {
            Condition::None | Condition::At(_) => None,
            Condition::Register(value) => Some(value + 1),
            Condition::Set(value) => Some(value),
        }
    }
}

/// One append that somebody tries, however often.
#[derive(Debug, Clone)]
pub struct Tried {
    pub tag: u64,
    pub len: usize,
    pub journal: Journal,
    pub writer: Option<Writer>,
    pub durability: Durability,
    pub condition: Condition,
    /// Of a line that comes in pieces: where they end. It may end there for good.
    pieces: Vec<usize>,
    begun: Instant,
    /// The highest head that anybody was told before it was tried.
    floor: Offset,
}

impl Tried {
    /// Begins with the tag and the length. It is one line.
    pub fn content(&self) -> Bytes {
        let mut content = format!("[{:08x}{:08x}", self.tag, self.len).into_bytes();
        let pattern: Vec<u8> = (0..23).map(|at| b'a' + ((at + self.tag) % 23) as u8).collect();
        while content.len() < self.len - 2 {
            let more = pattern.len().min(self.len - 2 - content.len());
            content.extend_from_slice(&pattern[..more]);
        }
        content.extend_from_slice(b"]\n");
        content.into()
    }
}

/// What came before an audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Calm,
    /// The process died.
    Kill,
    /// The machine lost its power at that moment.
    Power(Instant),
}

/// The shortest content.
pub const LEN_MIN: usize = 19;

#[derive(Debug, Clone)]
struct Attempt {
    tried: Tried,
    /// Where it was answered to be, or found.
    span: Option<Span>,
    is_acknowledged: bool,
    /// It was refused for good: it must not be found.
    is_refused: bool,
}

impl Attempt {
    /// How much of it bytes begin with: all, or the pieces of a line that did not end.
    fn len_at(&self, bytes: &[u8]) -> Option<usize> {
        let content = self.tried.content();
        if bytes.starts_with(&content) {
            return Some(content.len());
        }
        let mut pieces = self.tried.pieces.iter().rev().filter(|_| !self.is_acknowledged);
        pieces.find(|len| bytes.starts_with(&content[..**len])).copied()
    }
}

/// What is known of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Byte,
    /// It was known, and then lost: a cache on another machine may have it still.
    Gone,
    /// Nobody was told it before it was lost.
    Lost,
}

#[derive(Debug, Default)]
struct Book {
    attempts: BTreeMap<u64, Attempt>,
    bytes: Vec<u8>,
    known: Vec<Known>,
    /// The highest head that anybody was told.
    head: Offset,
    /// Below, a power cut takes nothing.
    durable: Offset,
    /// When appends at `memory` were acknowledged, and their ends.
    acknowledged: VecDeque<(Instant, Offset)>,
    lost: Vec<Span>,
    /// Values of the register that refused an append, each with the head that was known before.
    mismatches: Vec<(Offset, u64)>,
    /// Of a journal that comes and goes: its life, once its creation was answered.
    life: Option<Life>,
    /// Somebody asked for its end.
    may_be_gone: bool,
    kept: Kept,
}

#[derive(Debug, Default)]
struct State {
    books: BTreeMap<Journal, Book>,
    /// Lives that are over.
    ended: BTreeSet<Life>,
    next_tag: u64,
    disturbed: Option<Instant>,
    complaint: Option<String>,
}

/// See the module. Clones share one.
#[derive(Debug, Clone)]
pub struct Model {
    state: Arc<Mutex<State>>,
    trace: Trace,
}

impl Model {
    pub fn new(trace: &Trace) -> Self {
        Model { state: Arc::default(), trace: trace.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Something is wrong. The first complaint stays.
    pub fn complain(&self, what: Arguments) {
        self.trace.line(format_args!("COMPLAINT {what}"));
        self.trace.end();
        self.state().complaint.get_or_insert(what.to_string());
    }

    pub fn complaint(&self) -> Option<String> {
        self.state().complaint.clone()
    }

    /// The disk was made to fail, or is full: until a while after, syncs may fail.
    pub fn disturb(&self, at: Instant) {
        let mut state = self.state();
        state.disturbed = state.disturbed.max(Some(at));
    }

    fn with<T>(&self, journal: &Journal, note: impl FnOnce(&mut Book) -> Result<T, String>) -> T
    where
        T: Default,
    {
        let noted = note(self.state().books.entry(journal.clone()).or_default());
        noted.unwrap_or_else(|complaint| {
            self.complain(format_args!("{journal}: {complaint}"));
            T::default()
        })
    }

    /// Notes an append that is about to be tried.
    pub fn begin(
        &self,
        journal: &Journal,
        len: usize,
        writer: Option<Writer>,
        durability: Durability,
        condition: Condition,
    ) -> Tried {
        let mut state = self.state();
        state.next_tag += 1;
        let tag = state.next_tag;
        let book = state.books.entry(journal.clone()).or_default();
        let (journal, floor) = (journal.clone(), book.head);
        let (len, pieces, begun) = (len.max(LEN_MIN), Vec::new(), Instant::now());
        let tried =
            Tried { tag, len, journal, writer, durability, condition, pieces, begun, floor };
        let (attempt, span) = (tried.clone(), None);
        let attempt = Attempt { tried: attempt, span, is_acknowledged: false, is_refused: false };
        book.attempts.insert(tag, attempt);
        tried
    }

    /// Notes a line that is about to be written in pieces, which end there.
    pub fn begin_line(
        &self,
        journal: &Journal,
        len: usize,
        durability: Durability,
        pieces: Vec<usize>,
    ) -> Tried {
        let tried = self.begin(journal, len, None, durability, Condition::None);
        self.with(journal, |book| {
            book.attempts.get_mut(&tried.tag).expect("just begun").tried.pieces = pieces;
            Ok(())
        });
        tried
    }

    /// The append was acknowledged, at its durability.
    pub fn acknowledged(&self, tried: &Tried, span: Span, is_repeated: bool) {
        let Tried { tag, journal, durability, .. } = tried;
        let again = if is_repeated { " again" } else { "" };
        self.trace.line(format_args!("ack {journal} {tag} {span} {durability:?}{again}"));
        self.with(journal, |book| book.acknowledge(tried, span, is_repeated));
    }

    /// A write of a mount was answered: it is an append, which is somewhere.
    pub fn written(&self, tried: &Tried) {
        let Tried { tag, journal, durability, .. } = tried;
        self.trace.line(format_args!("written {journal} {tag} {durability:?}"));
        self.with(journal, |book| {
            let attempt = book.attempts.get_mut(tag).expect("it was tried");
            attempt.is_acknowledged = true;
            Ok(())
        });
    }

    /// What was written was synced: nothing may take it from here on.
    pub fn synced(&self, tried: &Tried) {
        let Tried { tag, journal, .. } = tried;
        self.trace.line(format_args!("synced {journal} {tag}"));
        self.with(journal, |book| {
            let attempt = book.attempts.get_mut(tag).expect("it was tried");
            attempt.tried.durability = Durability::Disk;
            Ok(())
        });
    }

    /// The append was refused by its offset, which can't become right any more.
    pub fn refused(&self, tried: &Tried, head: Offset) {
        let Tried { tag, journal, floor, .. } = tried;
        self.trace.line(format_args!("refused {journal} {tag} at {head}"));
        self.with(journal, |book| {
            let attempt = book.attempts.get_mut(tag).expect("it was tried");
            attempt.is_refused = true;
            if attempt.is_acknowledged {
                return Err(format!("append {tag} was acknowledged, and then refused"));
            }
            book.told_head(*floor, head)
        });
    }

    /// The append was given up before it was complete: it must not be found.
    pub fn given_up(&self, tried: &Tried) {
        let Tried { tag, journal, .. } = tried;
        self.trace.line(format_args!("given up {journal} {tag}"));
        self.with(journal, |book| {
            book.attempts.get_mut(tag).expect("it was tried").is_refused = true;
            Ok(())
        });
    }

    /// The append was refused by the register's value.
    pub fn mismatched(&self, tried: &Tried, registers: &LabelSet) {
        let Tried { tag, journal, floor, .. } = tried;
        let value = value_of(registers);
        self.trace.line(format_args!("mismatch {journal} {tag} {value:?}"));
        self.with(journal, |book| {
            // No registers match everything: over the network they are only not told.
            book.mismatches.extend(value.map(|value| (*floor, value)));
            Ok(())
        });
    }

    /// The highest head that anybody was told: what is asked from here on must not be below it.
    pub fn floor(&self, journal: &Journal) -> Offset {
        self.with(journal, |book| Ok(book.head))
    }

    /// A head was told to who asked when `floor` was known.
    pub fn told_head(&self, journal: &Journal, floor: Offset, head: Offset) {
        self.with(journal, |book| book.told_head(floor, head));
    }

    /// Bytes were read by who asked when `floor` was known; none is the end of the journal.
    pub fn saw(&self, journal: &Journal, floor: Offset, offset: Offset, bytes: &[u8]) {
        self.with(journal, |book| book.saw(floor, offset, bytes));
    }

    /// The same by way of a cache on another machine, which may have what nobody else has any more.
    pub fn saw_cached(&self, journal: &Journal, floor: Offset, offset: Offset, bytes: &[u8]) {
        self.with(journal, |book| {
            let (from, to) = (index(offset), index(offset) + bytes.len());
            let is_lost = |known: &Known| matches!(known, Known::Gone | Known::Lost);
            let known = book.known.get(from..to.min(book.known.len())).unwrap_or_default();
            let lost = known.iter().position(is_lost).unwrap_or(bytes.len());
            if lost > 0 || bytes.is_empty() {
                book.saw(floor, offset, &bytes[..lost])?;
            }
            let is_gone = |at: &usize| book.known.get(from + at) == Some(&Known::Gone);
            let mut again = (lost..bytes.len()).filter(is_gone);
            match again.find(|at| book.bytes[from + at] != bytes[*at]) {
                Some(at) => Err(format!("a cache has another byte at {}", from + at)),
                None => Ok(()),
            }
        });
    }

    /// A read at `offset` was told that bytes are lost.
    pub fn saw_lost(&self, journal: &Journal, offset: Offset) {
        self.with(journal, |book| match book.lost.iter().any(|lost| lost.contains(offset)) {
            true => Ok(()),
            false => Err(format!("{offset} is told to be lost, and never was")),
        });
    }

    /// Nothing below may be lost from here on.
    pub fn durable(&self, journal: &Journal, below: Offset) {
        self.trace.line(format_args!("durable {journal} {below}"));
        self.with(journal, |book| {
            book.durable = book.durable.max(below);
            Ok(())
        });
    }

    /// Compares a journal that was read whole with all that is known of it, and goes on from there.
    pub fn audit(&self, journal: &Journal, found: &Found, after: After) {
        let (head, lost) = (found.head, &found.lost);
        self.trace.line(format_args!("audit {journal} head {head} lost {lost:?}"));
        let disturbed = self.state().disturbed;
        self.with(journal, |book| book.audit(found, after, disturbed));
    }
}

impl Book {
    fn acknowledge(&mut self, tried: &Tried, span: Span, is_repeated: bool) -> Result<(), String> {
        let Tried { tag, len, floor, .. } = tried;
        if span.len() != *len as u64 {
            return Err(format!("append {tag} of {len} bytes is answered as {span}"));
        }
        let attempt = self.attempts.get_mut(tag).expect("it was tried");
        if attempt.is_refused {
            return Err(format!("append {tag} was refused, and is acknowledged as {span}"));
        }
        match attempt.span.replace(span) {
            Some(first) if first != span => {
                return Err(format!("append {tag} is at {first}, and again at {span}"));
            }
            Some(_) if attempt.is_acknowledged && !is_repeated => {
                return Err(format!("append {tag} is applied twice at {span}"));
            }
            Some(_) | None => {}
        }
        attempt.is_acknowledged = true;
        self.kept.note(tried.begun, span.begin());
        if span.begin() < *floor {
            return Err(format!("append {tag} is at {span}, below the head {floor} told before"));
        }
        match tried.condition {
            Condition::At(offset) if offset != span.begin() => {
                return Err(format!("append {tag} on the condition {offset} is at {span}"));
            }
            _ => {}
        }
        self.saw(Offset::ZERO, span.begin(), &tried.content())?;
        match tried.durability {
            Durability::Disk => self.durable = self.durable.max(span.end()),
            Durability::Memory => self.acknowledged.push_back((Instant::now(), span.end())),
        }
        Ok(())
    }

    fn told_head(&mut self, floor: Offset, head: Offset) -> Result<(), String> {
        self.head = self.head.max(head);
        match head < floor {
            true => Err(format!("the head {head} is below {floor}, which was told before")),
            false => Ok(()),
        }
    }

    fn saw(&mut self, floor: Offset, offset: Offset, bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() && offset < floor {
            return Err(format!("a read at {offset} finds the end, below the head {floor}"));
        }
        let (from, to) = (index(offset), index(offset) + bytes.len());
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
            self.known.resize(to, Known::Nothing);
        }
        let is_known = self.known[from..to].iter().all(|known| *known == Known::Byte);
        if !(is_known && self.bytes[from..to] == *bytes) {
            self.compare(from, bytes)?;
            self.bytes[from..to].copy_from_slice(bytes);
            self.known[from..to].fill(Known::Byte);
        }
        self.head = self.head.max(offset.plus(bytes.len() as u64));
        Ok(())
    }

    fn compare(&self, from: usize, bytes: &[u8]) -> Result<(), String> {
        let differs = |at: &usize| match self.known[from + at] {
            Known::Nothing => false,
            Known::Byte => self.bytes[from + at] != bytes[*at],
            Known::Gone | Known::Lost => true,
        };
        let Some(at) = (0..bytes.len()).find(differs) else { return Ok(()) };
        let offset = from + at;
        let there = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 40)]);
        let was = match self.known[offset] {
            Known::Gone | Known::Lost => "lost".to_owned(),
            Known::Nothing | Known::Byte => {
                let end = self.bytes.len().min(offset + 40);
                format!("{:?}", String::from_utf8_lossy(&self.bytes[offset..end]))
            }
        };
        Err(format!("offset {offset} has {there:?}, and was {was}"))
    }
}

fn index(offset: Offset) -> usize {
    usize::try_from(offset.as_u64()).expect("journals of a simulation are short")
}

/// The label that is the register.
pub const REGISTER: &str = "number";

/// The value of the register.
pub fn value_of(registers: &LabelSet) -> Option<u64> {
    registers.value_of(REGISTER).and_then(|value| value.parse().ok())
}
