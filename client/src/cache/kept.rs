//! The local bytes of one life of a journal: a mirror that is filled in any order, and what of it
//! is there.
//!
//! Bytes come in under one lock and go under the same one, index first, so that a range is never
//! fetched into while it is freed. What is lent is never freed, and only grows at its end.

use super::limits::NEAR;
use super::totals::Totals;
use super::usage::{Piece, Usage};
use crate::Stat;
use bytes::Bytes;
use index::Error;
use index::disk::Disk;
use index::mirror::Mirror;
use index::spans::SpanSet;
use protocol::{Journal, Life, Offset, Span};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// See the module.
pub(super) struct Kept {
    pub journal: Journal,
    pub life: Life,
    pub(super) mirror: Mirror,
    pub(super) state: Mutex<State>,
    /// Held while bytes come or go, and never across an await.
    changing: Mutex<()>,
    pub(super) totals: Arc<Totals>,
    /// Whoever makes a lent mirror catch up: one at a time.
    pub turn: tokio::sync::Mutex<()>,
    /// Changes when bytes came and when a fetch ended.
    pub changes: watch::Sender<u64>,
    /// Told when the last loan is given back.
    pub returned: Notify,
    /// The census at which the life was last known to be the journal's.
    pub census: AtomicU64,
}

/// What is known of the bytes.
#[derive(Debug, Default)]
pub(super) struct State {
    pub local: SpanSet,
    /// The largest head that anybody was told, or that bytes came up to.
    pub head: Offset,
    /// Below, the journal is trimmed.
    pub first: Offset,
    /// Loans that are out.
    pub loans: usize,
    /// Somebody follows the journal for as long as it is lent.
    pub is_followed: bool,
    /// The file is removed: the life ended, or others needed the room.
    pub is_gone: bool,
    /// What is being fetched, from where a fetch has come to.
    pub fetches: BTreeMap<u64, Span>,
    /// Where the last read ended.
    pub read_to: Offset,
    /// When something was last appended here.
    written: Option<Instant>,
    /// Changes when bytes go.
    evictions: u64,
    usage: Usage,
}

impl State {
    pub fn new(local: SpanSet, first: Offset, head: Offset) -> Self {
        State { local, first, head, ..State::default() }
    }

    /// How far the bytes from 0 on are local without a gap.
    pub fn dense_to(&self) -> Offset {
        self.local.covering(Offset::ZERO).map_or(Offset::ZERO, Span::end)
    }

    /// Whether a read is one of a sequence: the kernel sends those that read ahead side by side.
    pub fn goes_on(&self, read: Span) -> bool {
        let (begin, last) = (read.begin(), self.read_to);
        begin.since(last) <= NEAR && last.since(begin) <= NEAR
    }

    /// Whether a mirror that was whole lacks no more than a little growth.
    pub fn is_nearly_whole(&self, within: u64) -> bool {
        let dense_to = self.dense_to();
        dense_to > Offset::ZERO && self.head.since(dense_to) <= within
    }
}

impl Kept {
    /// An empty mirror for the journal that `stat` is of.
    pub fn new(disk: Arc<dyn Disk>, totals: Arc<Totals>, stat: &Stat) -> Result<Self, Error> {
        let mirror = Mirror::sparse(disk, stat.life)?;
        let state = State::new(SpanSet::default(), stat.first, stat.head);
        Ok(Kept::over(mirror, totals, stat.journal.clone(), stat.life, state))
    }

    /// A mirror that has what `state` says.
    pub fn over(
        mirror: Mirror,
        totals: Arc<Totals>,
        journal: Journal,
        life: Life,
        state: State,
    ) -> Self {
        totals.changed(0, state.local.len(), false);
        Kept {
            journal,
            life,
            mirror,
            state: Mutex::new(state),
            changing: Mutex::default(),
            totals,
            turn: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
            returned: Notify::new(),
            census: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect("no holder panics")
    }

    pub fn tell(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    pub fn is_gone(&self) -> bool {
        self.state().is_gone
    }

    pub fn is_lent(&self) -> bool {
        self.state().loans > 0
    }

    /// Local bytes.
    pub fn len(&self) -> u64 {
        self.state().local.len()
    }

    /// Something was appended here.
    pub fn wrote(&self) {
        self.state().written = Some(Instant::now());
    }

    /// Whether something was appended here a moment ago.
    pub fn was_written_within(&self, moment: Duration) -> bool {
        self.state().written.is_some_and(|written| written.elapsed() < moment)
    }

    pub fn head(&self) -> Offset {
        self.state().head
    }

    /// What somebody was told of the journal, or is about to be.
    pub fn learn(&self, stat: &Stat) {
        let mut state = self.state();
        state.head = state.head.max(stat.head);
        if stat.first <= state.first {
            return;
        }
        state.first = stat.first;
        drop(state);
        // What is lent is read on by the handles that have it.
        self.evict(Span::between(Offset::ZERO, stat.first));
    }

    /// How many local bytes a read at `offset` finds, at most `max`.
    pub fn local_len(&self, offset: Offset, max: usize) -> usize {
        let state = self.state();
        // What is lent may still have trimmed bytes.
        let span = state.local.covering(offset).filter(|_| offset >= state.first);
        let len = span.map_or(0, |span| span.end().since(offset));
        usize::try_from(len).unwrap_or(usize::MAX).min(max)
    }

    /// Local bytes at an offset, up to `max` of them; `None` when there are none. `tick` is the
    /// time of use.
    pub fn read(&self, offset: Offset, max: usize, tick: u64) -> Option<Bytes> {
        let evictions = self.state().evictions;
        let len = self.local_len(offset, max);
        if len == 0 {
            return None;
        }
        let bytes = self.mirror.read_new(offset, len).ok().filter(|bytes| !bytes.is_empty())?;
        let mut state = self.state();
        // An eviction changes the index first and the bytes after, and what went may have come
        // back since: only without any did the bytes stay where they were.
        if state.evictions != evictions || state.is_gone {
            return None;
        }
        let read = Span::at(offset, bytes.len() as u64);
        let goes_on = state.goes_on(read);
        state.usage.read(read, goes_on, tick);
        Some(Bytes::from(bytes))
    }

    /// Whether such a read would likely not wait for the disk.
    pub fn is_cached(&self, offset: Offset, len: usize) -> bool {
        self.mirror.is_cached(offset, len)
    }

    /// Takes bytes that a broker has committed. `false` where they are not taken: the mirror is
    /// gone, or is lent and they do not touch its end.
    pub fn keep(&self, offset: Offset, content: &[u8], tick: u64) -> Result<bool, Error> {
        let span = Span::at(offset, content.len() as u64);
        let _changing = self.change();
        if !self.admit(span) {
            return Ok(false);
        }
        if !self.state().local.covers(span) {
            self.mirror.write(offset, content)?;
        }
        let mut state = self.state();
        let old = state.local.len();
        state.local.insert(span);
        state.usage.came(span, tick);
        self.totals.changed(old, state.local.len(), state.loans > 0);
        drop(state);
        self.tell();
        Ok(true)
    }

    /// Whether bytes may be written here. From here on the head is beyond them, so that nothing is
    /// lent before they are in the index.
    fn admit(&self, span: Span) -> bool {
        let mut state = self.state();
        state.head = state.head.max(span.end());
        let leaves_no_hole = state.loans == 0 || span.begin() <= state.dense_to();
        !state.is_gone && leaves_no_hole
    }

    /// Takes what was appended, where the bytes before it are here.
    pub fn keep_next(&self, span: Span, content: &[u8], tick: u64) -> Result<bool, Error> {
        let follows = {
            let mut state = self.state();
            state.head = state.head.max(span.end());
            let before = span.begin().get() - 1;
            before < 0 || Offset::new(before).is_ok_and(|at| state.local.covering(at).is_some())
        };
        if follows { self.keep(span.begin(), content, tick) } else { Ok(false) }
    }

    /// Gives up the bytes of a span, unless they are lent; how many went. None where a handle of an
    /// earlier life of the mount may still read them.
    pub fn evict(&self, span: Span) -> u64 {
        let _changing = self.change();
        let mut state = self.state();
        if state.loans > 0 || state.is_gone {
            return 0;
        }
        let before = state.local.clone();
        state.local.remove(span);
        state.usage.went(span);
        state.evictions += 1;
        let old = before.len();
        let new = state.local.len();
        drop(state);
        // No other bytes can come meanwhile, so that what was there can be taken back.
        match self.mirror.free(span) {
            Ok(true) => {
                self.totals.changed(old, new, false);
                old - new
            }
            held => {
                if let Err(error) = held {
                    tracing::debug!(%error, "a part of a mirror could not be freed");
                }
                self.state().local = before;
                0
            }
        }
    }

    /// Removes the file. Handles that have it open read on what they have.
    pub fn remove(&self) {
        let _changing = self.change();
        let mut state = self.state();
        if std::mem::replace(&mut state.is_gone, true) {
            return;
        }
        let old = std::mem::take(&mut state.local).len();
        state.evictions += 1;
        if state.loans > 0 {
            self.totals.give_back(old);
        }
        self.totals.changed(old, 0, false);
        drop(state);
        if let Err(error) = self.mirror.remove() {
            tracing::debug!(%error, journal = %self.journal, "a mirror was not removed");
        }
        self.tell();
    }

    /// Returns once the file of what is gone is removed: the next mirror of this life has the same
    /// name.
    pub fn removed(&self) {
        drop(self.change());
    }

    /// Pieces that may go.
    pub fn evictable(&self) -> Vec<Piece> {
        let mut state = self.state();
        if state.loans > 0 || state.is_gone {
            return Vec::new();
        }
        let State { local, usage, .. } = &mut *state;
        usage.pieces(local)
    }

    /// Uses all of it at once: what was lent was read by the kernel, which tells nobody.
    pub fn touch(&self, tick: u64) {
        self.state().usage.touch(tick);
    }

    /// When any of it was last used.
    pub fn last_used(&self) -> u64 {
        let state = self.state();
        match state.loans {
            0 => state.usage.last(),
            _ => u64::MAX,
        }
    }

    pub fn census_known(&self) -> u64 {
        self.census.load(Ordering::Relaxed)
    }
}
