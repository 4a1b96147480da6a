//! When the bytes of a mirror were last used, and which were only passed by.
//!
//! A scan of more than the cache holds would drive everything else out, and find nothing of itself
//! the next time. So what was read once, in sequence, is freed before what was read again (as in
//! 2Q, Johnson and Shasha, VLDB 1994).

use super::limits::CHUNK_LEN;
use index::spans::SpanSet;
use protocol::{Offset, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A piece of a mirror that may be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub span: Span,
    /// When it was last used.
    pub used: u64,
    /// It was read once at most.
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

#[derive(Debug, Default, Clone, Copy)]
struct Chunk {
    used: u64,
    /// Bytes that were read in sequence, and all where somebody came for them alone.
    read: u64,
}

impl Chunk {
    fn is_cold(&self) -> bool {
        self.read <= CHUNK_LEN
    }
}

fn numbers(span: Span) -> std::ops::Range<u64> {
    span.begin().as_u64() / CHUNK_LEN..span.end().as_u64().div_ceil(CHUNK_LEN)
}

fn span_of(number: u64) -> Span {
    let begin = Offset::try_from(number * CHUNK_LEN).expect("a chunk of a journal");
    Span::at(begin, CHUNK_LEN)
}

impl Usage {
    /// Bytes came, and were not read yet.
    pub fn came(&mut self, span: Span, tick: u64) {
        for number in numbers(span) {
            self.chunks.entry(number).or_default().used = tick;
        }
    }

    /// Bytes were read; `goes_on` where the read is one of a sequence.
    pub fn read(&mut self, span: Span, goes_on: bool, tick: u64) {
        for number in numbers(span) {
            let chunk = self.chunks.entry(number).or_default();
            let len = if goes_on {
                span.intersect(span_of(number)).map_or(0, Span::len)
            } else {
                2 * CHUNK_LEN
            };
            *chunk = Chunk { used: tick, read: chunk.read.saturating_add(len) };
        }
    }

    /// All of them were used, in a way that nobody saw.
    pub fn touch(&mut self, tick: u64) {
        self.all_used = tick;
    }

    /// When any of it was last used.
    pub fn last(&self) -> u64 {
        let used = self.chunks.values().map(|chunk| chunk.used);
        used.max().unwrap_or(0).max(self.all_used)
    }

    /// What there is of `local`; what is known of other chunks is forgotten.
    pub fn pieces(&mut self, local: &SpanSet) -> Vec<Piece> {
        let there: BTreeSet<u64> = local.iter().flat_map(numbers).collect();
        self.chunks.retain(|number, _| there.contains(number));
        let piece = |number: &u64| {
            let chunk = self.chunks.get(number).copied().unwrap_or_default();
            Piece {
                span: span_of(*number),
                used: chunk.used.max(self.all_used),
                is_cold: chunk.is_cold() && chunk.used >= self.all_used,
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

    fn cold(usage: &mut Usage, local: &SpanSet) -> Vec<bool> {
        usage.pieces(local).iter().map(|piece| piece.is_cold).collect()
    }

    #[test]
    fn what_is_read_once_is_cold() {
        let mut usage = Usage::default();
        let local: SpanSet = [span(0, 3 * CHUNK_LEN)].into_iter().collect();
        usage.came(span(0, 3 * CHUNK_LEN), 1);
        let scan = |usage: &mut Usage| {
            for at in 0..20 {
                usage.read(span(at * CHUNK_LEN / 8, CHUNK_LEN / 8), true, 2 + at);
            }
        };
        scan(&mut usage);
        assert_eq!(cold(&mut usage, &local), [true; 3]);
        // Case: a part of a scan again.
        usage.read(span(0, 10), true, 30);
        assert_eq!(cold(&mut usage, &local), [false, true, true]);
        // Case: somebody comes for a few bytes.
        usage.read(span(2 * CHUNK_LEN, 10), false, 31);
        assert_eq!(cold(&mut usage, &local), [false, true, false]);
        let used: Vec<u64> = usage.pieces(&local).iter().map(|piece| piece.used).collect();
        assert_eq!((used, usage.last()), (vec![30, 17, 31], 31));
        // Case: what was used by others is not known to be cold; what goes is forgotten.
        usage.touch(32);
        assert_eq!(cold(&mut usage, &local), [false; 3]);
        usage.pieces(&SpanSet::default());
        usage.came(span(0, 5), 33);
        assert_eq!(cold(&mut usage, &[span(0, 5)].into_iter().collect()), [true]);
    }
}
