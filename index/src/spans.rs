//! A set of bytes of a journal, as spans that neither touch nor overlap.

use protocol::{Offset, Span};

/// Spans in order. Invariant: each is non-empty, and begins beyond the end of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanSet {
    spans: Vec<Span>,
}

impl SpanSet {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Span> + '_ {
        self.spans.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Bytes in the set.
    pub fn len(&self) -> u64 {
        self.spans.iter().map(|span| span.len()).sum()
    }

    pub fn insert(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        // Appends nearly always touch the last span.
        if let Some(last) = self.spans.last_mut()
            && last.begin() <= span.begin()
            && span.begin() <= last.end()
        {
            *last = Span::between(last.begin(), last.end().max(span.end()));
            return;
        }
        let from = self.spans.partition_point(|other| other.end() < span.begin());
        let to = self.spans.partition_point(|other| other.begin() <= span.end());
        let touched = &self.spans[from..to];
        let begin = touched.first().map_or(span.begin(), |first| first.begin().min(span.begin()));
        let end = touched.last().map_or(span.end(), |last| last.end().max(span.end()));
        self.spans.splice(from..to, [Span::between(begin, end)]);
    }

    pub fn remove(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let parts = self.spans.iter().flat_map(|old| {
            let head = Span::between(old.begin(), old.end().min(span.begin()));
            let tail = Span::between(old.begin().max(span.end()), old.end());
            [head, tail]
        });
        self.spans = parts.filter(|part| !part.is_empty()).collect();
    }

    /// The span that holds `offset`.
    pub fn covering(&self, offset: Offset) -> Option<Span> {
        let at = self.spans.partition_point(|span| span.end() <= offset);
        self.spans.get(at).copied().filter(|span| span.contains(offset))
    }

    /// The first span that begins above `offset`.
    pub fn next_after(&self, offset: Offset) -> Option<Span> {
        let at = self.spans.partition_point(|span| span.begin() <= offset);
        self.spans.get(at).copied()
    }

    pub fn covers(&self, span: Span) -> bool {
        span.is_empty() || self.covering(span.begin()).is_some_and(|holder| holder.covers(span))
    }

    /// The parts of `within` that are in the set.
    pub fn overlaps(&self, within: Span) -> Vec<Span> {
        let part = |span: &Span| {
            let (begin, end) = (span.begin().max(within.begin()), span.end().min(within.end()));
            (begin < end).then(|| Span::between(begin, end))
        };
        self.spans.iter().filter_map(part).collect()
    }

    /// The parts of `within` that are not in the set.
    pub fn gaps(&self, within: Span) -> Vec<Span> {
        let mut gaps = SpanSet::default();
        gaps.insert(within);
        for span in &self.spans {
            gaps.remove(*span);
        }
        gaps.spans
    }
}

impl FromIterator<Span> for SpanSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut set = SpanSet::default();
        spans.into_iter().for_each(|span| set.insert(span));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(begin: u32, end: u32) -> Span {
        Span::new(begin.into(), end.into()).expect("ordered")
    }

    proptest! {
        /// The set equals a plain vector of flags, and keeps its invariant.
        #[test]
        fn agrees_with_a_vector(
            steps in prop::collection::vec((any::<bool>(), 0u32..64, 0u32..20), 0..40)
        ) {
            let mut set = SpanSet::default();
            let mut model = [false; 100];
            for (insert, begin, len) in steps {
                let span = span(begin, begin + len);
                if insert { set.insert(span) } else { set.remove(span) }
                model[begin as usize..(begin + len) as usize].fill(insert);
                for pair in set.spans.windows(2) {
                    prop_assert!(pair[0].end() < pair[1].begin());
                }
                prop_assert!(set.spans.iter().all(|span| !span.is_empty()));
            }
            for (at, inside) in model.iter().enumerate() {
                let offset = Offset::from(at as u32);
                prop_assert_eq!(set.covering(offset).is_some(), *inside);
            }
            let gaps: u64 = set.gaps(span(0, 100)).iter().map(|gap| gap.len()).sum();
            prop_assert_eq!(gaps + set.len(), 100);
            let part = span(30, 70);
            let inside: u64 = set.overlaps(part).iter().map(|overlap| overlap.len()).sum();
            let outside: u64 = set.gaps(part).iter().map(|gap| gap.len()).sum();
            prop_assert_eq!(inside + outside, 40);
        }
    }
}
