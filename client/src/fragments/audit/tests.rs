//! Findings, told from spans alone.

use super::*;
use protocol::{Codec, Sum};

fn journal() -> Journal {
    "a/log".parse().expect("valid")
}

fn span(begin: u32, end: u32) -> Span {
    Span::between(Offset::from(begin), Offset::from(end))
}

fn fragment(begin: u32, end: u32, seed: u8) -> Fragment {
    Fragment::local(journal(), span(begin, end), Sum::new([seed; 20]), Codec::None)
}

#[test]
fn gaps_lie_between_fragments_and_are_explained_where_that_is_known() {
    type Case<'c> = (&'c [(u32, u32)], &'c [(u32, u32)], &'c [(u32, u32, Kind)]);
    let cases: [Case<'_>; 8] = [
        (&[], &[], &[]),
        (&[(0, 5), (5, 9)], &[], &[]),
        // Case: what lies below the first fragment was trimmed.
        (&[(40, 50)], &[], &[]),
        (&[(0, 5), (7, 9)], &[], &[(5, 7, Kind::Gap)]),
        // Case: one that covers others, in any order.
        (&[(7, 9), (0, 20), (3, 5)], &[], &[]),
        (&[(0, 5), (9, 12)], &[(5, 9)], &[(5, 9, Kind::Lost)]),
        // Case: lost in part, and lost elsewhere.
        (
            &[(0, 5), (19, 22)],
            &[(7, 9), (30, 40), (12, 25)],
            &[(5, 7, Kind::Gap), (7, 9, Kind::Lost), (9, 12, Kind::Gap), (12, 19, Kind::Lost)],
        ),
        // Case: what was lost is there after all.
        (&[(0, 9)], &[(2, 5)], &[]),
    ];
    for (spans, lost, expected) in cases {
        let fragments: Vec<Fragment> =
            spans.iter().map(|(begin, end)| fragment(*begin, *end, 1)).collect();
        let lost: Vec<Span> = lost.iter().map(|(begin, end)| span(*begin, *end)).collect();
        let found = gaps(&journal(), &fragments, &lost);
        let found: Vec<_> = found.into_iter().map(|finding| (finding.span, finding.kind)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(begin, end, kind)| (Some(span(*begin, *end)), *kind)).collect();
        assert_eq!(found, expected, "{spans:?}");
    }
}

#[test]
fn overlaps_are_those_of_other_content() {
    type Case<'c> = (&'c [(u32, u32, u8)], &'c [(u32, u32)]);
    let cases: [Case<'_>; 6] = [
        (&[(0, 5, 1), (5, 9, 2)], &[]),
        (&[(0, 5, 1), (3, 9, 2)], &[(3, 5)]),
        // Case: the same content twice, and other content of the same span.
        (&[(0, 5, 1), (0, 5, 1)], &[]),
        (&[(0, 5, 1), (0, 5, 2)], &[(0, 5)]),
        // Case: several within one.
        (&[(0, 9, 1), (1, 3, 2), (4, 6, 3)], &[(1, 3), (4, 6)]),
        // Case: an empty fragment has nothing to disagree on.
        (&[(0, 9, 1), (4, 4, 2)], &[]),
    ];
    for (fragments, expected) in cases {
        let listed: Vec<ListedFragment> = fragments
            .iter()
            .map(|(begin, end, seed)| {
                let fragment = fragment(*begin, *end, *seed);
                ListedFragment { fragment, signed_url: String::new() }
            })
            .collect();
        let found: Vec<Span> = overlaps(&listed).into_iter().map(|found| found.span).collect();
        let expected: Vec<Span> = expected.iter().map(|(begin, end)| span(*begin, *end)).collect();
        assert_eq!(found, expected, "{fragments:?}");
    }
}
