//! What mirrors have wrong where the log has right bytes: recovery writes those again, and says so.
//!
//! A byte that no write reached is zero, after a kill or a power cut as in a hole. So another byte
//! than the log's, which is not zero, was changed by something else than Courant.

use crate::Error;
use crate::mirror::Mirror;
use crate::spans::SpanSet;
use protocol::{Journal, Offset, Span};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a mirror that are read at a time.
const PIECE: usize = 256 << 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Healed(BTreeMap<Journal, SpanSet>);

impl Healed {
    /// Writes into a mirror, and keeps what was wrong there.
    pub fn write(
        &mut self,
        name: &Journal,
        mirror: &Mirror,
        begin: Offset,
        content: &[u8],
    ) -> Result<(), Error> {
        self.compare(name, mirror, begin, content);
        mirror.write(begin, content)?;
        // Long ones are on their way while the log is read on.
        if content.len() >= PIECE {
            mirror.write_soon(begin, content.len());
        }
        Ok(())
    }

    fn compare(&mut self, name: &Journal, mirror: &Mirror, begin: Offset, content: &[u8]) {
        let mut done = 0;
        while done < content.len() {
            let at = begin.plus(done as u64);
            // What is not there, or can't be read, has nothing wrong.
            let there = mirror.read_new(at, PIECE.min(content.len() - done)).unwrap_or_default();
            if there.is_empty() {
                return;
            }
            let wrong = wrong(&there, &content[done..done + there.len()]);
            if let Some(Range { start, end }) = wrong {
                let span = Span::at(at.plus(start as u64), (end - start) as u64);
                self.0.entry(name.clone()).or_default().insert(span);
            }
            done += there.len();
        }
    }

    /// What was wrong and is right again, by journal.
    pub fn found(self) -> Vec<(Journal, Span)> {
        let named = |(name, spans): (Journal, SpanSet)| {
            spans.iter().map(|span| (name.clone(), span)).collect::<Vec<_>>()
        };
        self.0.into_iter().flat_map(named).collect()
    }
}

/// From the first to the last byte that differs and was written once.
fn wrong(there: &[u8], right: &[u8]) -> Option<Range<usize>> {
    // Nearly always: a comparison of memory costs little.
    if there == right {
        return None;
    }
    let is_wrong = |at: &usize| there[*at] != right[*at] && there[*at] != 0;
    let first = (0..there.len()).find(is_wrong)?;
    let last = (first..there.len()).rfind(is_wrong)?;
    Some(first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_was_never_written_is_not_wrong() {
        // Case: what is there, and from where to where it is wrong
        let cases = [
            ("right", None),
            ("\0\0\0\0\0", None),
            ("ri\0\0\0", None),
            ("rIgHt", Some((1, 4))),
            ("rI\0\0\0", Some((1, 2))),
        ];
        for (there, expected) in cases {
            let found = wrong(there.as_bytes(), b"right").map(|range| (range.start, range.end));
            assert_eq!(found, expected, "{there:?}");
        }
    }
}
