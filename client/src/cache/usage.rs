//! When the bytes of a mirror were last used, and which were only passed by.
//!
//! A scan of more than the cache holds would drive everything else out, and find nothing of itself
//! the next time. So what was read once, whole and in sequence, is freed before anything else (as
//! in 2Q, Johnson and Shasha, VLDB 1994). What was fetched ahead of a reader is not read yet, and
//! what was here before this mount may have been read by anybody.

use super::limits::CHUNK_LEN;
use index::spans::SpanSet;
use protocol::{Offset, Span};
use std::collections::BTreeMap;

/// Somebody came for it alone, or used it in a way that nobody saw.
const OFTEN: u64 = u64::MAX;

/// A piece of a mirror that may be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub span: Span,
    /// When it was last used.
    pub used: u64,
    /// All of it was read, once.
    pub is_cold: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// By the number of the chunk.
    chunks: BTreeMap<u64, Chunk>,
    /// When all of them were used.
    all_used: u64,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    used: u64,
    /// Bytes that were read in sequence, those that were read again counted again; or [`OFTEN`].
    read: u64,
}

fn numbers(span: Span) -> std::ops::Range<u64> {
    span.begin().as_u64() / CHUNK_LEN..span.end().as_u64().div_ceil(CHUNK_LEN)
}

fn span_of(number: u64) -> Span {
    let begin = Offset::try_from(number * CHUNK_LEN).expect("a chunk of a journal");
    Span::at(begin, CHUNK_LEN)
}

/// Bytes of a span in a chunk.
fn share(span: Span, number: u64) -> u64 {
    span.intersect(span_of(number)).map_or(0, Span::len)
}

impl Usage {
    /// Bytes came, and were not read yet.
    pub fn came(&mut self, span: Span, tick: u64) {
        for number in numbers(span) {
            self.chunks.entry(number).or_insert(Chunk { used: tick, read: 0 }).used = tick;
        }
    }

    /// Bytes were read; `goes_on` where the read is one of a sequence.
    pub fn read(&mut self, span: Span, goes_on: bool, tick: u64) {
        for number in numbers(span) {
            let chunk = self.chunks.entry(number).or_insert(Chunk { used: tick, read: OFTEN });
            let read = if goes_on { share(span, number) } else { OFTEN };
            *chunk = Chunk { used: tick, read: chunk.read.saturating_add(read) };
        }
    }

    /// What is given up is not known any more, when it comes again.
    pub fn went(&mut self, span: Span) {
        for number in numbers(span) {
            self.chunks.remove(&number);
        }
    }

    /// All of them were used, in a way that nobody saw.
    pub fn touch(&mut self, tick: u64) {
        self.all_used = tick;
        self.chunks.values_mut().for_each(|chunk| chunk.read = OFTEN);
    }

    /// When any of it was last used.
    pub fn last(&self) -> u64 {
        let used = self.chunks.values().map(|chunk| chunk.used);
        used.max().unwrap_or(0).max(self.all_used)
    }

    /// What there is of `local`; what is known of other chunks is forgotten.
    pub fn pieces(&mut self, local: &SpanSet) -> Vec<Piece> {
        let mut there: BTreeMap<u64, u64> = BTreeMap::new();
        for span in local.iter() {
            numbers(span).for_each(|at| *there.entry(at).or_default() += share(span, at));
        }
        self.chunks.retain(|number, _| there.contains_key(number));
        let piece = |(number, len): (&u64, &u64)| {
            let known = self.chunks.get(number);
            Piece {
                span: span_of(*number),
                used: known.map_or(0, |chunk| chunk.used).max(self.all_used),
                is_cold: known.is_some_and(|chunk| (*len..2 * *len).contains(&chunk.read)),
            }
        };
        there.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: u64, len: u64) -> Span {
        Span::at(Offset::try_from(begin).unwrap(), len)
    }

    fn local(len: u64) -> SpanSet {
        [span(0, len)].into_iter().collect()
    }

    fn cold(usage: &mut Usage, local: &SpanSet) -> Vec<bool> {
        usage.pieces(local).iter().map(|piece| piece.is_cold).collect()
    }

    /// Reads in pieces as a kernel does, one for each tick.
    fn scan(usage: &mut Usage, len: u64, tick: u64) {
        let piece = CHUNK_LEN / 8;
        for at in 0..len.div_ceil(piece) {
            usage.read(span(at * piece, piece.min(len - at * piece)), true, tick + at);
        }
    }

    #[test]
    fn what_was_read_once_is_cold() {
        let mut usage = Usage::default();
        let len = 3 * CHUNK_LEN + 10;
        usage.came(span(0, len), 1);
        // Case: what was fetched ahead is not.
        assert_eq!(cold(&mut usage, &local(len)), [false; 4]);
        scan(&mut usage, 2 * CHUNK_LEN + 10, 2);
        assert_eq!(cold(&mut usage, &local(len)), [true, true, false, false]);
        scan(&mut usage, len, 30);
        assert_eq!(cold(&mut usage, &local(len)), [false, false, true, true]);
        let used: Vec<u64> = usage.pieces(&local(len)).iter().map(|piece| piece.used).collect();
        assert_eq!((used, usage.last()), (vec![37, 45, 53, 54], 54));
        // Case: somebody comes for a few bytes.
        usage.read(span(2 * CHUNK_LEN, 10), false, 55);
        assert_eq!(cold(&mut usage, &local(len)), [false, false, false, true]);
        // Case: it grows, and what is new was not read.
        usage.came(span(len, 10), 56);
        assert_eq!(cold(&mut usage, &local(len + 10)), [false; 4]);
    }

    #[test]
    fn what_others_may_have_used_is_not_cold() {
        let mut usage = Usage::default();
        // Case: it was here before.
        scan(&mut usage, CHUNK_LEN, 1);
        assert_eq!(cold(&mut usage, &local(CHUNK_LEN)), [false]);
        // Case: it came, was read, and was lent.
        usage.pieces(&SpanSet::default());
        usage.came(span(0, CHUNK_LEN), 10);
        scan(&mut usage, CHUNK_LEN, 11);
        assert_eq!(cold(&mut usage, &local(CHUNK_LEN)), [true]);
        usage.touch(20);
        assert_eq!(cold(&mut usage, &local(CHUNK_LEN)), [false]);
        scan(&mut usage, CHUNK_LEN, 21);
        assert_eq!(cold(&mut usage, &local(CHUNK_LEN)), [false]);
        assert_eq!(usage.pieces(&local(2 * CHUNK_LEN))[1].used, 20);
    }
}
