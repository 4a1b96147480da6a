//! The cover set against tables of fragments.

use super::*;
use protocol::{Codec, Journal, Sum};

fn fragment(begin: u32, end: u32) -> Fragment {
    Fragment {
        journal: Journal::new("a/journal").unwrap(),
        span: Span::new(begin.into(), end.into()).unwrap(),
        sum: Sum::ZERO,
        codec: Codec::None,
        backing_store: "file:///".to_owned(),
        mod_time: 1,
        path_postfix: String::new(),
    }
}

fn set(spans: &[(u32, u32)]) -> CoverSet {
    spans.iter().map(|&(begin, end)| fragment(begin, end)).collect()
}

fn spans(set: &CoverSet) -> Vec<(i64, i64)> {
    set.iter().map(|f| (f.span.begin().get(), f.span.end().get())).collect()
}

#[test]
fn adding() {
    type Spans<T> = &'static [(T, T)];
    let cases: &[(Spans<u32>, Spans<i64>)] = &[
        // Case: empty fragments say nothing.
        (&[(5, 5)], &[]),
        // Case: in order, out of order.
        (&[(0, 10), (10, 20)], &[(0, 10), (10, 20)]),
        (&[(10, 20), (0, 10)], &[(0, 10), (10, 20)]),
        // Case: a part of one that is there, at its begin, inside, at its end.
        (&[(0, 30), (0, 10)], &[(0, 30)]),
        (&[(0, 30), (10, 20)], &[(0, 30)]),
        (&[(0, 30), (20, 30)], &[(0, 30)]),
        // Case: a larger one takes the place of those within it, at the end and in the middle.
        (&[(0, 10), (10, 20), (20, 30), (0, 40)], &[(0, 40)]),
        (&[(0, 10), (10, 20), (20, 30), (30, 40), (8, 30)], &[(0, 10), (8, 30), (30, 40)]),
        // Case: longer, of the same begin or the same end.
        (&[(10, 20), (10, 25)], &[(10, 25)]),
        (&[(10, 20), (5, 20)], &[(5, 20)]),
        // Case: partial overlaps both stay.
        (&[(0, 10), (5, 15)], &[(0, 10), (5, 15)]),
        (&[(5, 15), (0, 10)], &[(0, 10), (5, 15)]),
        // Case: a union hides none, a hole stays a hole.
        (&[(0, 10), (20, 30), (5, 25)], &[(0, 10), (5, 25), (20, 30)]),
    ];
    for (added, expected) in cases {
        assert_eq!(spans(&set(added)), *expected, "{added:?}");
    }
}

#[test]
fn of_equal_spans_the_last_stays() {
    let mut set = set(&[(0, 10)]);
    let newer = Fragment { codec: Codec::Gzip, ..fragment(0, 10) };
    assert!(set.add(newer.clone()));
    assert_eq!(set.iter().collect::<Vec<_>>(), [&newer]);
    assert!(!set.add(fragment(0, 9)));
}

#[test]
fn covering() {
    let set = set(&[(10, 20), (15, 25), (18, 40), (50, 60)]);
    let cases = [
        // Case: below the first.
        (0, Cover::Next(&fragment(10, 20))),
        // Case: one covers, two do, three do.
        (10, Cover::Here(&fragment(10, 20))),
        (15, Cover::Here(&fragment(15, 25))),
        (18, Cover::Here(&fragment(18, 40))),
        (39, Cover::Here(&fragment(18, 40))),
        // Case: in the hole, at its end.
        (40, Cover::Next(&fragment(50, 60))),
        (50, Cover::Here(&fragment(50, 60))),
        // Case: at the end and beyond.
        (60, Cover::Past),
        (99, Cover::Past),
    ];
    for (offset, expected) in cases {
        assert_eq!(set.covering(Offset::from(offset)), expected, "{offset}");
    }
    assert_eq!(CoverSet::new().covering(Offset::ZERO), Cover::Past);
}

#[test]
fn covers_runs_of_fragments() {
    let set = set(&[(10, 20), (20, 30), (25, 40), (50, 60)]);
    let span = |begin: u32, end: u32| Span::new(begin.into(), end.into()).unwrap();
    for (begin, end) in [(10, 40), (12, 38), (50, 60), (0, 0), (45, 45)] {
        assert!(set.covers(span(begin, end)), "{begin}..{end}");
    }
    for (begin, end) in [(9, 20), (10, 41), (39, 51), (50, 61), (70, 71)] {
        assert!(!set.covers(span(begin, end)), "{begin}..{end}");
    }
}

#[test]
fn a_listing_takes_the_place_of_all() {
    let mut set = set(&[(0, 100)]);
    set.replace([fragment(20, 30), fragment(10, 20)]);
    assert_eq!(spans(&set), [(10, 20), (20, 30)]);
    assert_eq!(set.first(), Some(&fragment(10, 20)));
    assert_eq!(set.last(), Some(&fragment(20, 30)));
    assert_eq!(set.end(), Offset::from(30));
}

#[test]
fn removing_takes_the_exact_span_only() {
    let mut set = set(&[(0, 10), (10, 20)]);
    assert_eq!(set.remove(fragment(0, 9).span), None);
    assert_eq!(set.remove(fragment(0, 10).span), Some(fragment(0, 10)));
    assert_eq!(spans(&set), [(10, 20)]);
}
