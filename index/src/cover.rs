//! The best set of fragments for reading a journal (gazette-spec 3.4 and 3.5).
//!
//! Invariant: no fragment of the set lies within another. So ordered by begin they are ordered by
//! end as well, and each question is answered by the one or two entries around an offset.

use protocol::{Fragment, Offset, Span};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Fragments of one journal, none of them empty, none within another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoverSet {
    by_begin: BTreeMap<Offset, Fragment>,
}

/// Which fragment a read at an offset goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover<'a> {
    /// It covers the offset, and of those that do it reaches furthest.
    Here(&'a Fragment),
    /// Nothing covers the offset; this is the first fragment that begins after it.
    Next(&'a Fragment),
    /// The offset is at or above the end of all fragments.
    Past,
}

impl CoverSet {
    pub fn new() -> Self {
        CoverSet::default()
    }

    /// Takes `fragment` in unless a larger one is there, and drops what it makes needless. Of equal
    /// spans the newcomer stays. Answers whether it was taken.
    pub fn add(&mut self, fragment: Fragment) -> bool {
        let span = fragment.span;
        if span.is_empty() || self.widest_at(span.begin()).is_some_and(|old| hides(old.span, span))
        {
            return false;
        }
        // By the invariant, ends ascend: the entries within the newcomer stand in one row.
        while let Some((&begin, old)) = self.by_begin.range(span.begin()..).next()
            && span.covers(old.span)
        {
            self.by_begin.remove(&begin);
        }
        // Invariant: an entry of the same begin either hides the newcomer or lay within it.
        let displaced = self.by_begin.insert(span.begin(), fragment);
        assert!(displaced.is_none(), "two fragments of one begin: {displaced:?}");
        true
    }

    /// Puts a full listing of the journal's stores in the place of what was known. Of equal spans
    /// the last one listed stays (gazette-spec 3.4: later stores and later keys override).
    pub fn replace(&mut self, listing: impl IntoIterator<Item = Fragment>) {
        self.by_begin.clear();
        self.extend(listing);
    }

    /// Takes out the fragment of exactly this span, as after its deletion.
    pub fn remove(&mut self, span: Span) -> Option<Fragment> {
        let found = self.by_begin.get(&span.begin()).is_some_and(|old| old.span == span);
        if found { self.by_begin.remove(&span.begin()) } else { None }
    }

    /// What a read at `offset` goes on with.
    pub fn covering(&self, offset: Offset) -> Cover<'_> {
        if let Some(fragment) = self.widest_at(offset)
            && fragment.span.contains(offset)
        {
            return Cover::Here(fragment);
        }
        match self.by_begin.range((Excluded(offset), Unbounded)).next() {
            Some((_, fragment)) => Cover::Next(fragment),
            None => Cover::Past,
        }
    }

    /// Whether every byte of `span` is in some fragment. An empty span is always covered.
    pub fn covers(&self, span: Span) -> bool {
        let mut offset = span.begin();
        while offset < span.end() {
            match self.covering(offset) {
                Cover::Here(fragment) => offset = fragment.span.end(),
                Cover::Next(_) | Cover::Past => return false,
            }
        }
        true
    }

    /// The fragment that begins lowest.
    pub fn first(&self) -> Option<&Fragment> {
        self.by_begin.values().next()
    }

    /// The fragment that ends highest.
    pub fn last(&self) -> Option<&Fragment> {
        self.by_begin.values().next_back()
    }

    /// The end of the last fragment; 0 without fragments.
    pub fn end(&self) -> Offset {
        self.last().map_or(Offset::ZERO, |fragment| fragment.span.end())
    }

    /// Fragments with begins ascending, and ends ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Fragment> {
        self.by_begin.values()
    }

    /// Those of [`iter`](Self::iter) that begin at or above `begin`.
    pub fn iter_from(&self, begin: Offset) -> impl Iterator<Item = &Fragment> {
        self.by_begin.range(begin..).map(|(_, fragment)| fragment)
    }

    pub fn len(&self) -> usize {
        self.by_begin.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_begin.is_empty()
    }

    /// Of the fragments that begin at or below `offset`, the one that reaches furthest: the last.
    fn widest_at(&self, offset: Offset) -> Option<&Fragment> {
        self.by_begin.range(..=offset).next_back().map(|(_, fragment)| fragment)
    }
}

/// Whether a fragment of span `old` makes one of span `new` needless.
fn hides(old: Span, new: Span) -> bool {
    old.covers(new) && old != new
}

impl Extend<Fragment> for CoverSet {
    fn extend<I: IntoIterator<Item = Fragment>>(&mut self, fragments: I) {
        for fragment in fragments {
            self.add(fragment);
        }
    }
}

impl FromIterator<Fragment> for CoverSet {
    fn from_iter<I: IntoIterator<Item = Fragment>>(fragments: I) -> Self {
        let mut set = CoverSet::new();
        set.extend(fragments);
        set
    }
}

#[cfg(test)]
mod tests;
