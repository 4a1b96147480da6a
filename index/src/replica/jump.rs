//! Moving a head up without content: over what a store has that was not written here.

use super::{Replica, Turn};
use crate::Error;
use crate::record::Body;
use crate::replica::{Commit, Content, Entry};
use crate::spans::SpanSet;
use bytes::Bytes;
use protocol::{LabelSet, Offset, Span};

impl Turn {
    /// Moves the head up to `to`, which is above it. Of the gap, what `stored` covers is a store's
    /// to serve; the rest is recorded as lost, since no append will ever fill it.
    ///
    /// `registers` become the journal's, if there are any.
    ///
    /// The head shows when the commit is done, and is durable then: a head that a power cut takes
    /// back was never told. What was recorded before is published before.
    pub fn jump(
        &mut self,
        to: Offset,
        stored: &SpanSet,
        registers: Option<LabelSet>,
    ) -> Result<Commit, Error> {
        // What would refuse the barrier refuses it before the head has moved.
        self.replica().shared.admit(0)?;
        self.replica().skip_to(to, stored)?;
        let nothing = Content::Memory(Bytes::new());
        self.record(Entry { content: nothing, registers, writer: None, is_disk: true })
    }
}

impl Replica {
    fn skip_to(&self, to: Offset, stored: &SpanSet) -> Result<(), Error> {
        let mut state = self.state();
        if state.is_gone {
            return Err(Error::Deleted(self.life));
        }
        let gap = Span::between(state.ledger.head, to);
        // Invariant: a head never goes back.
        assert!(!gap.is_empty(), "{}: a jump from {} to {to}", self.name, state.ledger.head);
        // A fragment never reaches over a gap.
        self.roll_in(&mut state)?;
        // Each mark moves the head to its end, so that a stop between two leaves a whole state.
        for (span, is_stored) in parts(gap, stored) {
            let mark = self.mark_of(span);
            let body = if is_stored { Body::Adopted(mark) } else { Body::Lost(mark) };
            self.mark(&mut state, body)?;
        }
        self.mirror.begin_file(to)
    }
}

/// The gap in pieces, ascending, each either stored or not.
fn parts(gap: Span, stored: &SpanSet) -> Vec<(Span, bool)> {
    let there = stored.overlaps(gap).into_iter().map(|span| (span, true));
    let missing = stored.gaps(gap).into_iter().map(|span| (span, false));
    let mut parts: Vec<_> = there.chain(missing).collect();
    parts.sort_by_key(|(span, _)| span.begin());
    parts
}
