//! What the commit log says of one journal: the fold of its records.
//!
//! The same fold runs when a record is written and when it is read again, so that recovery cannot
//! come to another state. It does no i/o, and knows nothing of what is on its way to a mirror.

use crate::limits;
use crate::record::{self, Body, Position};
use crate::spans::SpanSet;
use protocol::{Codec, Journal, LabelSet, Life, Offset, Span, Sum};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    pub life: Life,
    pub name: Journal,
    /// The end of the last recorded append; the next begins here.
    pub head: Offset,
    /// No byte at or above it is shown before it is synced.
    pub ceiling: Offset,
    pub registers: LabelSet,
    pub spool: Spool,
    /// Spans closed and not yet given up, in order.
    pub closed: Vec<Closed>,
    /// What is in the mirror.
    pub local: SpanSet,
    /// What no power cut left behind.
    pub lost: SpanSet,
    /// What is there and wrong.
    pub damaged: SpanSet,
    /// Below, bytes were given up by will.
    pub trimmed: Offset,
    /// The last checksum of the spool that was recorded: where it ended, and what it was.
    pub mark: Option<(Offset, u32)>,
    pub writers: Vec<WriterState>,
    /// The time of the last append, in microseconds since 1970.
    pub modified_us: u64,
    /// The record that was folded last.
    pub as_of: Position,
}

/// The fragment being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spool {
    pub begin: Offset,
    /// CRC32C of `begin..head`.
    pub crc: u32,
    /// When its first append came; 0 while it is empty.
    pub first_append_us: u64,
    pub codec: Codec,
}

/// A span that rolled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub span: Span,
    pub crc: u32,
    pub first_append_us: u64,
    pub codec: Codec,
    /// Where it lies in a store, once it does.
    pub persisted: Option<Stored>,
}

impl Closed {
    /// Whether any of its bytes is in `local`.
    fn is_in(&self, local: &SpanSet) -> bool {
        local.gaps(self.span) != [self.span]
    }
}

/// A closed span in its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub sum: Sum,
    pub store: String,
    pub postfix: String,
    pub mod_time: i64,
    pub codec: Codec,
}

/// The last append of one writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterState {
    pub id: [u8; 16],
    pub sequence: u64,
    pub span: Span,
}

/// An offset out of a record. Records verified, so what was a valid offset still is one.
pub(crate) fn offset(value: i64) -> Offset {
    Offset::new(value).unwrap_or_default()
}

fn span(begin: i64, end: i64) -> Span {
    Span::between(offset(begin), offset(end))
}

fn codec(number: i32) -> Codec {
    Codec::try_from(number).unwrap_or(Codec::None)
}

impl Ledger {
    pub fn new(life: Life, name: Journal, as_of: Position) -> Self {
        Ledger {
            life,
            name,
            head: Offset::ZERO,
            ceiling: Offset::ZERO,
            registers: LabelSet::default(),
            spool: Spool { begin: Offset::ZERO, crc: 0, first_append_us: 0, codec: Codec::None },
            closed: Vec::new(),
            local: SpanSet::default(),
            lost: SpanSet::default(),
            damaged: SpanSet::default(),
            trimmed: Offset::ZERO,
            mark: None,
            writers: Vec::new(),
            modified_us: 0,
            as_of,
        }
    }

    /// Folds one record of this journal in. `Created` and `Deleted` belong to the directory.
    pub fn apply(&mut self, body: &Body, position: Position) {
        match body {
            Body::Append(append) => self.append(append),
            Body::Rolled(rolled) => self.roll(rolled),
            Body::Persisted(persisted) => self.persisted(persisted),
            Body::Evicted(mark) => self.evict(span(mark.begin, mark.end)),
            Body::Trimmed(mark) => {
                self.trimmed = self.trimmed.max(offset(mark.end));
                self.evict(Span::between(Offset::ZERO, self.trimmed));
            }
            Body::Lost(mark) => {
                self.lost.insert(span(mark.begin, mark.end));
                self.jump(offset(mark.end));
            }
            Body::Damaged(mark) => {
                let span = span(mark.begin, mark.end);
                self.damaged.insert(span);
                self.local.remove(span);
                if span.end() > self.head {
                    self.jump(span.end());
                }
            }
            Body::Adopted(mark) => self.jump(offset(mark.end)),
            Body::Synced(synced) => self.mark = Some((offset(synced.end), synced.crc)),
            Body::Ceiling(mark) => self.ceiling = offset(mark.end),
            // What every peer acknowledged is replication's to use.
            Body::Gathered(_) => {}
            Body::Segment(_) | Body::Created(_) | Body::Deleted(_) | Body::Stop(_) => {}
        }
        self.as_of = position;
    }

    fn append(&mut self, append: &record::Append) {
        let appended = Span::at(offset(append.begin), append.len);
        if !appended.is_empty() {
            if self.spool_is_empty() {
                self.spool.first_append_us = append.time_us;
            }
            self.spool.codec = codec(append.codec);
            self.spool.crc = match append.staged {
                None => crc32c::crc32c_append(self.spool.crc, &append.content),
                Some(_) => combine(self.spool.crc, append.crc, append.len),
            };
            self.local.insert(appended);
            self.modified_us = append.time_us;
        }
        self.head = appended.end();
        if let Some(registers) = &append.registers {
            self.registers = crate::registers::decode(&registers.encoded);
        }
        if let Some(writer) = &append.writer
            && let Ok(id) = <[u8; 16]>::try_from(writer.id.as_slice())
        {
            self.remember(WriterState { id, sequence: writer.sequence, span: appended });
        }
    }

    fn remember(&mut self, state: WriterState) {
        // Who wrote last is the last one, and likely the next one.
        if let Some(at) = self.writers.iter().rposition(|writer| writer.id == state.id) {
            self.writers.remove(at);
        } else if self.writers.len() >= limits::WRITERS_PER_JOURNAL {
            self.writers.remove(0);
        }
        self.writers.push(state);
    }

    /// The last append of a writer, while it is remembered.
    pub fn writer(&self, id: &[u8; 16]) -> Option<&WriterState> {
        self.writers.iter().rev().find(|writer| writer.id == *id)
    }

    fn roll(&mut self, rolled: &record::Rolled) {
        let closed = Closed {
            span: span(rolled.begin, rolled.end),
            crc: rolled.crc,
            first_append_us: rolled.first_append_us,
            codec: codec(rolled.codec),
            persisted: None,
        };
        self.begin_spool(closed.span.end());
        if !closed.span.is_empty() {
            self.closed.push(closed);
        }
    }

    fn persisted(&mut self, persisted: &record::Persisted) {
        let span = span(persisted.begin, persisted.end);
        let sum = <[u8; 20]>::try_from(persisted.sum.as_slice()).unwrap_or_default();
        let stored = Stored {
            sum: Sum::new(sum),
            store: persisted.store.clone(),
            postfix: persisted.postfix.clone(),
            mod_time: persisted.mod_time,
            codec: codec(persisted.codec),
        };
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.span == span) {
            closed.persisted = Some(stored);
        }
    }

    fn evict(&mut self, span: Span) {
        self.local.remove(span);
        let (local, trimmed) = (&self.local, self.trimmed);
        self.closed.retain(|closed| {
            closed.span.end() > trimmed && (closed.persisted.is_none() || closed.is_in(local))
        });
    }

    /// Of a ledger that is taken back to what it was: what `later` has given up stays given up, for
    /// its bytes may be freed already.
    pub fn keep_given_up(&mut self, later: &Ledger) {
        let gone: Vec<Span> = self.local.iter().flat_map(|span| later.local.gaps(span)).collect();
        for span in gone {
            self.local.remove(span);
            later.damaged.overlaps(span).into_iter().for_each(|part| self.damaged.insert(part));
        }
        self.trimmed = self.trimmed.max(later.trimmed.min(self.head));
        let is_known = |closed: &Closed| later.closed.iter().any(|one| one.span == closed.span);
        self.closed.retain(|closed| closed.is_in(&self.local) || is_known(closed));
    }

    /// The head moves to `to` without content: over a gap, or to the end of what a store has.
    fn jump(&mut self, to: Offset) {
        self.head = self.head.max(to);
        self.begin_spool(self.head);
    }

    fn begin_spool(&mut self, begin: Offset) {
        self.spool = Spool { begin, crc: 0, first_append_us: 0, ..self.spool };
        self.mark = None;
    }

    pub fn spool_is_empty(&self) -> bool {
        self.spool.begin == self.head
    }

    /// Whether all of `[0, head)` is in the mirror and right.
    pub fn is_dense(&self) -> bool {
        self.local.covers(Span::between(Offset::ZERO, self.head))
    }

    /// Below, every byte is in a store, or gone by will.
    pub fn persisted_end(&self) -> Offset {
        let unpersisted = self.closed.iter().find(|closed| closed.persisted.is_none());
        unpersisted.map_or(self.spool.begin, |closed| closed.span.begin())
    }

    /// The record that closes the spool at the head.
    pub fn rolled(&self) -> record::Rolled {
        record::Rolled {
            life: self.life.get(),
            begin: self.spool.begin.get(),
            end: self.head.get(),
            crc: self.spool.crc,
            first_append_us: self.spool.first_append_us,
            codec: self.spool.codec.number(),
        }
    }
}

/// The CRC32C of two pieces one after the other, by their own.
pub(crate) fn combine(first: u32, second: u32, second_len: u64) -> u32 {
    crc32c::crc32c_combine(first, second, second_len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_stays_so_when_an_append_is_taken_back() {
        let name = Journal::new("a/log").expect("valid");
        let mut before = Ledger::new(Life::new(1), name, Position::default());
        let apply = |ledger: &mut Ledger, body: Body| ledger.apply(&body, Position::new(1, 8));
        let append = |begin, len| {
            let content = bytes::Bytes::from(vec![b'x'; len as usize]);
            Body::Append(record::Append { life: 1, begin, len, content, ..Default::default() })
        };
        for (begin, end) in [(0, 10), (10, 20), (20, 30)] {
            apply(&mut before, append(begin, 10));
            let rolled = record::Rolled { life: 1, begin, end, ..Default::default() };
            apply(&mut before, Body::Rolled(rolled));
        }
        let mut later = before.clone();
        apply(&mut later, append(30, 10));
        let persisted = record::Persisted { life: 1, begin: 10, end: 20, ..Default::default() };
        apply(&mut later, Body::Persisted(persisted));
        apply(&mut later, Body::Evicted(record::Mark { life: 1, begin: 10, end: 20 }));
        apply(&mut later, Body::Damaged(record::Mark { life: 1, begin: 22, end: 25 }));
        apply(&mut later, Body::Trimmed(record::Mark { life: 1, begin: 0, end: 5 }));

        before.keep_given_up(&later);
        assert_eq!((before.head, before.trimmed), (offset(30), offset(5)));
        let local: Vec<Span> = before.local.iter().collect();
        assert_eq!(local, [span(5, 10), span(20, 22), span(25, 30)]);
        assert_eq!(before.damaged.iter().collect::<Vec<_>>(), [span(22, 25)]);
        // What was evicted is nobody's to persist.
        let closed: Vec<Span> = before.closed.iter().map(|closed| closed.span).collect();
        assert_eq!(closed, [span(0, 10), span(20, 30)]);
    }
}
