//! Byte positions of a journal, and the half-open spans between them.

use crate::Invalid;
use crate::invalid::at_least;

/// A byte position in a journal, `0..=i64::MAX`; the first byte is at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(i64);

impl Offset {
    pub const ZERO: Offset = Offset(0);
    pub const MAX: Offset = Offset(i64::MAX);

    /// Refuses negative positions; the wire's `-1` ("the write head") is no offset.
    pub fn new(value: i64) -> Result<Self, Invalid> {
        at_least("Offset", value, 0).map(Offset)
    }

    pub const fn get(self) -> i64 {
        self.0
    }

    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }

    /// `None` past `i64::MAX`, where no journal can go.
    pub fn checked_add(self, len: u64) -> Option<Offset> {
        i64::try_from(len).ok().and_then(|len| self.0.checked_add(len)).map(Offset)
    }

    /// The position `len` bytes on. Panics past `i64::MAX`: callers bound lengths before.
    #[must_use]
    pub fn plus(self, len: u64) -> Offset {
        self.checked_add(len).expect("a journal ends below 2^63")
    }

    /// Bytes from `begin` to here; 0 when `begin` is not below.
    pub fn since(self, begin: Offset) -> u64 {
        u64::try_from(self.0 - begin.0).unwrap_or(0)
    }
}

impl From<u32> for Offset {
    fn from(value: u32) -> Self {
        Offset(i64::from(value))
    }
}

impl TryFrom<u64> for Offset {
    type Error = Invalid;

    fn try_from(value: u64) -> Result<Self, Invalid> {
        i64::try_from(value)
            .map(Offset)
            .map_err(|_| Invalid::new(format!("invalid Offset ({value}; expected < 2^63)")))
    }
}

impl std::fmt::Display for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// `begin..end` of a journal. Invariant: `begin <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    begin: Offset,
    end: Offset,
}

impl Span {
    pub fn new(begin: Offset, end: Offset) -> Result<Self, Invalid> {
        if begin > end {
            return Err(Invalid::new(format!("invalid span (begin {begin} > end {end})")));
        }
        Ok(Span { begin, end })
    }

    /// The span of `len` bytes from `begin`. Panics past `i64::MAX`, as `Offset::plus`.
    pub fn at(begin: Offset, len: u64) -> Self {
        Span { begin, end: begin.plus(len) }
    }

    /// From one to the other; empty at `begin` when `end` lies below.
    pub fn between(begin: Offset, end: Offset) -> Self {
        Span { begin, end: end.max(begin) }
    }

    pub fn begin(self) -> Offset {
        self.begin
    }

    pub fn end(self) -> Offset {
        self.end
    }

    pub fn len(self) -> u64 {
        self.end.since(self.begin)
    }

    pub fn is_empty(self) -> bool {
        self.begin == self.end
    }

    pub fn contains(self, offset: Offset) -> bool {
        self.begin <= offset && offset < self.end
    }

    /// Whether all of `other` lies within.
    pub fn covers(self, other: Span) -> bool {
        self.begin <= other.begin && other.end <= self.end
    }

    /// The part of both; `None` when they share no byte.
    pub fn intersect(self, other: Span) -> Option<Span> {
        let begin = self.begin.max(other.begin);
        let end = self.end.min(other.end);
        (begin < end).then_some(Span { begin, end })
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.begin, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin: u32, end: u32) -> Span {
        Span::new(begin.into(), end.into()).expect("begin <= end")
    }

    #[test]
    fn offsets_are_never_negative() {
        let text = Offset::new(-1).unwrap_err().to_string();
        assert_eq!(text, "invalid Offset (-1; expected 0 <= Offset <= MaxInt64)");
        assert_eq!(Offset::MAX.checked_add(1), None);
        assert_eq!(Offset::ZERO.checked_add(1 << 63), None);
        assert!(Offset::try_from(1u64 << 63).is_err());
        assert_eq!(Offset::from(3).since(Offset::from(5)), 0);
    }

    #[test]
    fn spans_are_half_open() {
        let five = span(5, 10);
        assert_eq!(five.len(), 5);
        assert!(five.contains(5.into()) && !five.contains(10.into()));
        assert!(five.covers(span(5, 10)) && five.covers(span(7, 7)) && !five.covers(span(4, 6)));
        assert_eq!(five.intersect(span(8, 20)), Some(span(8, 10)));
        assert_eq!(five.intersect(span(10, 20)), None);
        assert_eq!(Span::between(7.into(), 3.into()), span(7, 7));
        assert!(Span::new(7.into(), 3.into()).is_err());
    }
}
