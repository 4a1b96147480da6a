//! `Range` as HTTP knows it (RFC 9110, section 14), for tools that resume a download.
//!
//! A journal is taken for a file that ends at its head. Gazette ignores the header; it counts only
//! where a request has no parameters, which have their own way to say where a read begins.

use http::header::{HeaderMap, HeaderValue, IF_RANGE, RANGE};
use protocol::{Life, Offset, Span};

/// Which bytes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// All from an offset on.
    From(u64),
    /// All from the first to the second, both included.
    Between(u64, u64),
    /// As many at the end.
    Last(u64),
}

impl Asked {
    /// What the headers ask for. `None` where they ask for no bytes, for several ranges, or in
    /// words that are no range: who asks so is answered as if he had not.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(RANGE)?.to_str().ok()?;
        let (unit, range) = text.split_once('=')?;
        let (begin, last) = range.trim().split_once('-')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (number(begin)?, number(last)?) {
            (Some(begin), Some(last)) if begin <= last => Some(Asked::Between(begin, last)),
            (Some(begin), None) => Some(Asked::From(begin)),
            (None, Some(len)) => Some(Asked::Last(len)),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }

    /// The bytes of a journal that has those of `first..head`. `None` where they are not there: a
    /// part of them would not be what was asked for. The last bytes are as many as there are.
    pub fn span(self, first: Offset, head: Offset) -> Option<Span> {
        let last_begin = |len: u64| head.get().saturating_sub_unsigned(len).max(first.get());
        let (begin, end) = match self {
            Asked::From(begin) => (offset(begin)?, head),
            Asked::Between(begin, last) => {
                (offset(begin)?, offset(last.checked_add(1)?).map_or(head, |end| end.min(head)))
            }
            Asked::Last(len) => (Offset::new(last_begin(len)).ok()?, head),
        };
        (first <= begin && begin < end).then(|| Span::between(begin, end))
    }
}

/// `Some(None)` for no digits at all, `None` for what is no number. A number that is too large for
/// any offset is as large as one can be.
fn number(digits: &str) -> Option<Option<u64>> {
    match digits.trim() {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // One below the largest, so that the end behind it is a number too.
            Some(Some(digits.parse().unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs() - 1)))
        }
        _ => None,
    }
}

fn offset(number: u64) -> Option<Offset> {
    Offset::new(i64::try_from(number).ok()?).ok()
}

/// The tag of a journal's bytes: those of an offset never change while it lives.
pub fn tag(life: Life) -> HeaderValue {
    let tag = format!("\"{:016x}\"", life.get());
    HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes")
}

/// Whether the range counts: the client knows this journal, or says nothing about it. No times are
/// sent, so that one that comes is not ours.
pub fn is_meant(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    headers.get(IF_RANGE).is_none_or(|known| known == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(range: &str) -> HeaderMap {
        HeaderMap::from_iter([(RANGE, range.parse().expect("a valid header"))])
    }

    #[test]
    fn ranges_are_read() {
        // Case: the header, and what it asks for
        let cases = [
            ("bytes=5-", Some(Asked::From(5))),
            ("bytes=5-9", Some(Asked::Between(5, 9))),
            ("Bytes = 5 - 9", Some(Asked::Between(5, 9))),
            ("bytes=-3", Some(Asked::Last(3))),
            ("bytes=0-0", Some(Asked::Between(0, 0))),
            ("bytes=9-5", None),
            ("bytes=-", None),
            ("bytes=0-1,5-6", None),
            ("bytes=a-b", None),
            ("bytes=+1-", None),
            ("lines=1-", None),
            ("5-9", None),
            ("bytes=99999999999999999999-", Some(Asked::From(i64::MAX.unsigned_abs() - 1))),
        ];
        for (range, expected) in cases {
            assert_eq!(Asked::of(&headers(range)), expected, "{range}");
        }
        assert_eq!(Asked::of(&HeaderMap::new()), None);
    }

    #[test]
    fn spans_are_there_or_not() {
        // Case: what is asked for, the first byte and the head, and what that is
        let cases = [
            (Asked::From(0), 0, 10, Some((0, 10))),
            (Asked::From(9), 0, 10, Some((9, 10))),
            (Asked::From(10), 0, 10, None),
            (Asked::From(11), 0, 10, None),
            (Asked::From(0), 0, 0, None),
            (Asked::From(3), 4, 10, None),
            (Asked::From(4), 4, 10, Some((4, 10))),
            (Asked::Between(2, 4), 0, 10, Some((2, 5))),
            (Asked::Between(2, 99), 0, 10, Some((2, 10))),
            (Asked::Between(2, i64::MAX.unsigned_abs()), 0, 10, Some((2, 10))),
            (Asked::Between(0, 0), 0, 10, Some((0, 1))),
            (Asked::Last(3), 0, 10, Some((7, 10))),
            (Asked::Last(99), 0, 10, Some((0, 10))),
            (Asked::Last(99), 4, 10, Some((4, 10))),
            (Asked::Last(u64::MAX), 0, 10, Some((0, 10))),
            (Asked::Last(0), 0, 10, None),
        ];
        for (asked, first, head, expected) in cases {
            let (first, head): (u32, u32) = (first, head);
            let found = asked.span(first.into(), head.into());
            let found = found.map(|span| (span.begin().get(), span.end().get()));
            assert_eq!(found, expected, "{asked:?} of {first}..{head}");
        }
    }

    #[test]
    fn a_range_counts_for_the_journal_that_was_meant() {
        let tag = tag(Life::new(7));
        assert_eq!(tag, "\"0000000000000007\"");
        // Case: the header, and whether the range counts
        let cases = [
            (None, true),
            (Some("\"0000000000000007\""), true),
            (Some("\"0000000000000008\""), false),
            (Some("W/\"0000000000000007\""), false),
            (Some("Sun, 06 Nov 1994 08:49:37 GMT"), false),
        ];
        for (known, expected) in cases {
            let mut headers = HeaderMap::new();
            if let Some(known) = known {
                headers.insert(IF_RANGE, HeaderValue::from_static(known));
            }
            assert_eq!(is_meant(&headers, &tag), expected, "{known:?}");
        }
    }
}
