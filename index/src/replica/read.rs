//! Where an offset's bytes are, and reading those that are local.

use super::Replica;
use crate::Error;
use crate::disk::DiskFile;
use crate::ledger::Closed;
use crate::record::{Body, Position};
use protocol::{Offset, Span};
use std::sync::Arc;

/// What the local side knows of an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// In the mirror, from the offset to the end of the span.
    Local(Span),
    /// At or beyond the head.
    Ahead,
    /// Given up by will; readable bytes begin at the end of the span at the earliest.
    Trimmed(Span),
    /// Not left behind by a power cut.
    Lost(Span),
    /// Present and wrong.
    Damaged(Span),
    /// Below the head and not here: a store has it, or nobody.
    Remote(Span),
}

/// A loan of the mirror's file. While it lives nothing of it is punched.
#[derive(Debug)]
pub struct Pin {
    replica: Arc<Replica>,
    file: Arc<dyn DiskFile>,
}

impl Pin {
    pub fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.replica.state();
        state.pins -= 1;
        if state.pins == 0 {
            self.replica.shared.pins.recount(std::mem::take(&mut state.pinned_len), 0);
        }
    }
}

impl Replica {
    /// Where the bytes at `offset` are at this moment.
    pub fn locate(&self, offset: Offset) -> Located {
        let state = self.state();
        let ledger = &state.ledger;
        if offset >= state.published {
            return Located::Ahead;
        }
        if offset < ledger.trimmed {
            return Located::Trimmed(Span::between(offset, ledger.trimmed));
        }
        let from = |span: Span| Span::between(offset, span.end().min(state.published));
        if let Some(span) = ledger.local.covering(offset) {
            return Located::Local(from(span));
        }
        if let Some(span) = ledger.lost.covering(offset) {
            return Located::Lost(from(span));
        }
        if let Some(span) = ledger.damaged.covering(offset) {
            return Located::Damaged(from(span));
        }
        let next = [&ledger.local, &ledger.lost, &ledger.damaged]
            .iter()
            .filter_map(|set| set.next_after(offset))
            .map(|span| span.begin())
            .min();
        Located::Remote(Span::between(offset, next.unwrap_or(state.published).min(state.published)))
    }

    /// Reads local bytes at `offset`: at least one, at most up to the head. `NotLocal` when they
    /// are not in the mirror, or were evicted while they were read.
    pub fn read(&self, offset: Offset, buf: &mut [u8]) -> Result<usize, Error> {
        let len = self.local_from(offset, buf.len())?;
        let n = self.mirror.read(offset, &mut buf[..len])?;
        self.must_still_be_local(offset, n)?;
        Ok(n)
    }

    /// As [`Replica::read`], up to `len` bytes, into memory of their own.
    pub fn read_new(&self, offset: Offset, len: usize) -> Result<Vec<u8>, Error> {
        let bytes = self.mirror.read_new(offset, self.local_from(offset, len)?)?;
        self.must_still_be_local(offset, bytes.len())?;
        Ok(bytes)
    }

    /// Whether such a read would likely not wait for the disk.
    pub fn is_cached(&self, offset: Offset, len: usize) -> bool {
        self.local_from(offset, len).is_ok_and(|len| self.mirror.is_cached(offset, len))
    }

    /// How many of `len` bytes at `offset` are local.
    fn local_from(&self, offset: Offset, len: usize) -> Result<usize, Error> {
        match self.locate(offset) {
            Located::Local(span) => Ok(span.len().min(len as u64) as usize),
            _ => Err(Error::NotLocal { life: self.life, offset }),
        }
    }

    /// The order of an eviction is: index first, then the bytes. What the index still has after the
    /// read was there during it.
    fn must_still_be_local(&self, offset: Offset, read: usize) -> Result<(), Error> {
        let still = Span::at(offset, read as u64);
        if read == 0 || !self.state().ledger.local.covers(still) {
            return Err(Error::NotLocal { life: self.life, offset });
        }
        Ok(())
    }

    /// Lends the mirror, where one file holds all of `[0, head)`. `None` where it does not, and
    /// where half of the local room is lent already.
    pub fn lend(self: &Arc<Self>) -> Result<Option<Pin>, Error> {
        let file = self.mirror.only_file()?;
        let mut state = self.state();
        let is_whole = state.ledger.is_dense() && state.published > Offset::ZERO;
        let Some(file) = file.filter(|_| is_whole && !state.is_gone) else { return Ok(None) };
        if state.pins == 0 {
            let len = state.ledger.local.len();
            if !self.shared.pins.take(len) {
                return Ok(None);
            }
            state.pinned_len = len;
        }
        state.pins += 1;
        drop(state);
        Ok(Some(Pin { replica: self.clone(), file }))
    }

    pub fn is_pinned(&self) -> bool {
        self.pins() > 0
    }

    /// Loans of the mirror.
    pub fn pins(&self) -> u32 {
        self.state().pins
    }

    /// Counts what a lent mirror has grown by.
    pub(crate) fn recount_pinned(&self) {
        let mut state = self.state();
        if state.pins > 0 {
            let len = state.ledger.local.len();
            self.shared.pins.recount(std::mem::replace(&mut state.pinned_len, len), len);
        }
    }

    /// Bytes of the journal in the mirror.
    pub fn local_len(&self) -> u64 {
        self.state().ledger.local.len()
    }

    /// Closed spans that no store has yet, and whose bytes are durable here. Those with damage
    /// never become fragments, and stop none behind them.
    pub fn to_persist(&self) -> Vec<Closed> {
        let state = self.state();
        let durable = state.synced.min(state.published);
        let ready = |closed: &&Closed| {
            closed.persisted.is_none()
                && closed.span.end() <= durable
                && state.ledger.local.covers(closed.span)
        };
        state.ledger.closed.iter().filter(ready).cloned().collect()
    }

    /// Local bytes that no store has.
    pub fn unpersisted_len(&self) -> u64 {
        let state = self.state();
        let local =
            |span| -> u64 { state.ledger.local.overlaps(span).iter().map(|part| part.len()).sum() };
        let closed = state.ledger.closed.iter().filter(|closed| closed.persisted.is_none());
        let closed: u64 = closed.map(|closed| local(closed.span)).sum();
        closed + local(Span::between(state.ledger.spool.begin, state.ledger.head))
    }

    /// When the oldest of those bytes was appended, in microseconds since the epoch: that of the
    /// first append of its span.
    pub fn unpersisted_since_us(&self) -> Option<u64> {
        let state = self.state();
        let closed = state.ledger.closed.iter().filter(|closed| closed.persisted.is_none());
        let spool = &state.ledger.spool;
        let spool = (!state.ledger.spool_is_empty()).then_some(spool.first_append_us);
        closed.map(|closed| closed.first_append_us).chain(spool).min()
    }

    /// A store has the span `begin..end` durably, and its sum was confirmed.
    pub fn persisted_as(&self, stored: crate::record::Persisted) -> Result<Position, Error> {
        let mut state = self.state();
        if state.is_gone {
            return Err(Error::Deleted(self.life));
        }
        let position = self.mark(&mut state, Body::Persisted(stored))?;
        self.shared.mark_dirty(&mut state.is_dirty, || self.shared.replica(self.life));
        Ok(position)
    }

    /// Spans that could be evicted: in a store, still local, not lent, and not held. Oldest first.
    pub fn evictable(&self) -> Vec<Span> {
        let is_kept = self.is_pinned() || self.shared.holds.is_held();
        if is_kept { Vec::new() } else { self.stored_here() }
    }

    /// Spans that are in a store and still local, lent or not. Oldest first.
    pub fn stored_here(&self) -> Vec<Span> {
        let state = self.state();
        if state.is_gone {
            return Vec::new();
        }
        let stored = state.ledger.closed.iter().filter(|closed| closed.persisted.is_some());
        stored.map(|closed| closed.span).filter(|span| state.ledger.local.covers(*span)).collect()
    }

    /// Records that a span is no longer local: reads go to the store from here on. The bytes may be
    /// freed when the log is synced beyond the position; `None` when somebody was lent the mirror
    /// meanwhile, or the directory is held.
    pub fn evict(&self, span: Span) -> Result<Option<Position>, Error> {
        let mut state = self.state();
        if state.pins > 0 || state.is_gone || self.shared.holds.is_held() {
            return Ok(None);
        }
        let evicted = Body::Evicted(self.mark_of(span));
        self.mark(&mut state, evicted).map(Some)
    }

    /// Frees the bytes of a span whose eviction is durable. `false` when a handle of an earlier
    /// life of the mount may still read them, or the directory is held: ask again later.
    pub fn free(&self, span: Span) -> Result<bool, Error> {
        assert!(
            self.state().ledger.local.gaps(span) == [span],
            "only what the index has given up is freed"
        );
        if self.shared.holds.is_held() {
            return Ok(false);
        }
        self.mirror.free(span)
    }

    /// A closed span's bytes do not have the checksum that the log gives them.
    pub fn damaged(&self, span: Span) -> Result<(), Error> {
        let mut state = self.state();
        let damaged = Body::Damaged(self.mark_of(span));
        self.mark(&mut state, damaged)?;
        Ok(())
    }
}
