//! The local half of one journal: it records appends, moves them into the mirror, and publishes
//! the head.
//!
//! The order is always: content ready, space reserved, recorded, synced if somebody asked for disk,
//! moved into the mirror, head published, acknowledged. From its record on an append goes forward
//! only; what is recorded and not yet moved waits in the queue, in order.
//!
//! Invariant: `published <= ledger.head`, and `published <= max(synced, ceiling)`: no byte is shown
//! whose offset a power cut could give to another.

mod append;
mod jump;
mod read;
#[cfg(test)]
mod tests;

pub use append::{Commit, Content, Entry, Turn};
pub use read::{Located, Pin};

use crate::Error;
use crate::datadir::Shared;
use crate::ledger::Ledger;
use crate::log::Purpose;
use crate::mirror::Mirror;
use crate::record::{self, Body, Position, Record};
use append::Queued;
use protocol::{Codec, Journal, LabelSet, Life, Offset, Span};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{oneshot, watch};

/// What is published of a journal's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub offset: Offset,
    /// The journal's life has ended.
    pub is_gone: bool,
}

/// When and how the spool rolls; from the journal's spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub fragment_len: u64,
    /// Zero: never by time.
    pub flush_interval: Duration,
    pub codec: Codec,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { fragment_len: 64 << 20, flush_interval: Duration::ZERO, codec: Codec::Zstandard }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Replica {
    life: Life,
    name: Journal,
    shared: Arc<Shared>,
    mirror: Mirror,
    /// The journal's one writer turn; its queue is the order of appends.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
    head: watch::Sender<Head>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub ledger: Ledger,
    policy: Policy,
    queue: VecDeque<Queued>,
    /// Who waits until all below an offset is durable.
    syncing: Vec<(Offset, oneshot::Sender<()>)>,
    /// Somebody writes to the mirror what is no longer in the queue, from this record on.
    moving: Option<Position>,
    published: Offset,
    synced: Offset,
    /// The durable ceiling.
    ceiling: Offset,
    /// How often it was lowered.
    lowered: u64,
    step: u64,
    raised_us: u64,
    /// The replica waits for the next sync round.
    is_dirty: bool,
    /// Loans of the mirror.
    pins: u32,
    /// Bytes that are counted as lent.
    pinned_len: u64,
    is_gone: bool,
}

impl State {
    pub fn new(ledger: Ledger) -> Self {
        State {
            policy: Policy::default(),
            queue: VecDeque::new(),
            syncing: Vec::new(),
            moving: None,
            published: ledger.head,
            synced: ledger.head,
            ceiling: ledger.ceiling,
            lowered: 0,
            step: crate::limits::CEILING_STEP_MIN,
            raised_us: 0,
            is_dirty: false,
            pins: 0,
            pinned_len: 0,
            is_gone: false,
            ledger,
        }
    }
}

impl State {
    /// Tells those who waited for no more than what is durable.
    fn tell_synced(&mut self) {
        let synced = self.synced;
        for (_, done) in self.syncing.extract_if(.., |(below, _)| *below <= synced) {
            // Who went away does not hear of it.
            let _ = done.send(());
        }
    }

    pub fn is_dirty_mut(&mut self) -> &mut bool {
        &mut self.is_dirty
    }
}

/// What a sync round saw of a replica before it synced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    head: Offset,
    ceiling: Offset,
    lowered: u64,
}

impl Replica {
    pub(crate) fn new(shared: Arc<Shared>, ledger: Ledger, mirror: Mirror) -> Arc<Self> {
        let head = Head { offset: ledger.head, is_gone: false };
        Arc::new(Replica {
            life: ledger.life,
            name: ledger.name.clone(),
            shared,
            mirror,
            turn: Arc::default(),
            state: Mutex::new(State::new(ledger)),
            head: watch::Sender::new(head),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of a replica's state panics")
    }

    pub(crate) fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    pub fn life(&self) -> Life {
        self.life
    }

    pub fn name(&self) -> &Journal {
        &self.name
    }

    /// The write head: all below is readable, unless it is trimmed, lost or damaged.
    pub fn head(&self) -> Offset {
        self.head.borrow().offset
    }

    /// Tells each change of the head.
    pub fn watch(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Below, bytes are durable.
    pub fn synced(&self) -> Offset {
        self.state().synced
    }

    /// Waits until all that is recorded below `below`, which is at most the head, is durable. A
    /// sync that is under way and covers it counts; else one is asked for. No append waits for
    /// this.
    pub async fn durable(&self, below: Offset) -> Result<(), Error> {
        let synced = {
            let mut state = self.state();
            if state.is_gone {
                return Err(Error::Deleted(self.life));
            }
            if state.synced >= below {
                return Ok(());
            }
            let (done, synced) = oneshot::channel();
            // Those who went away meanwhile wait for nothing.
            state.syncing.retain(|(_, waits)| !waits.is_closed());
            state.syncing.push((below, done));
            synced
        };
        self.shared.wake_sync();
        synced.await.map_err(|_| Error::Closing)
    }

    /// Below, bytes are in a store, or were given up.
    pub fn persisted(&self) -> Offset {
        self.state().ledger.persisted_end()
    }

    pub fn registers(&self) -> LabelSet {
        self.state().ledger.registers.clone()
    }

    pub fn trimmed(&self) -> Offset {
        self.state().ledger.trimmed
    }

    /// The time of the last append; the epoch where there was none.
    pub fn modified(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.state().ledger.modified_us)
    }

    /// Whether the journal has any local record of its bytes.
    pub fn is_blank(&self) -> bool {
        let state = self.state();
        state.ledger.head == Offset::ZERO && state.ledger.lost.is_empty()
    }

    pub fn set_policy(&self, policy: Policy) {
        self.state().policy = policy;
    }

    /// A copy of what the log says, for `inspect`, status and the persister.
    pub fn ledger(&self) -> Ledger {
        self.state().ledger.clone()
    }

    /// The spans below the head that were lost, and those that are damaged, ascending.
    pub fn missing(&self) -> (Vec<Span>, Vec<Span>) {
        let state = self.state();
        (state.ledger.lost.iter().collect(), state.ledger.damaged.iter().collect())
    }

    /// Spans between the first readable offset and the head that can't be read.
    pub fn gaps(&self) -> u64 {
        let state = self.state();
        (state.ledger.lost.iter().count() + state.ledger.damaged.iter().count()) as u64
    }

    /// Writes a mark of this journal and folds it in, under the state that the caller holds.
    pub(crate) fn mark(&self, state: &mut State, body: Body) -> Result<Position, Error> {
        let record = Record { body: Some(body) };
        let position = self.shared.log.append(&record, Purpose::Mark)?;
        state.ledger.apply(record.body.as_ref().expect("was just put in"), position);
        Ok(position)
    }

    /// A mark of `span`, for `Body`'s variants that hold one.
    pub(crate) fn mark_of(&self, span: Span) -> record::Mark {
        let (begin, end) = (span.begin().get(), span.end().get());
        record::Mark { life: self.life.get(), begin, end }
    }

    /// Closes the spool, if it holds anything, so that it can be persisted.
    pub fn roll(&self) -> Result<(), Error> {
        let mut state = self.state();
        self.roll_in(&mut state)
    }

    fn roll_in(&self, state: &mut State) -> Result<(), Error> {
        if state.ledger.spool_is_empty() || state.is_gone {
            return Ok(());
        }
        let rolled = Body::Rolled(state.ledger.rolled());
        self.mark(state, rolled)?;
        self.shared.count_rolled();
        Ok(())
    }

    /// A journal without local records takes over the end of what its store has.
    pub fn adopt(&self, end: Offset) -> Result<(), Error> {
        let mut state = self.state();
        if end <= state.ledger.head {
            return Ok(());
        }
        assert!(state.ledger.local.is_empty(), "only a journal without local bytes adopts");
        let adopted = Body::Adopted(self.mark_of(Span::between(Offset::ZERO, end)));
        self.mark(&mut state, adopted)?;
        self.mirror.begin_file(end)?;
        self.publish(&mut state, end);
        self.shared.mark_dirty(&mut state.is_dirty, || self.shared.replica(self.life));
        Ok(())
    }

    /// Gives up what lies below `below`, by will: the record comes first, the bytes go when it is
    /// synced.
    pub fn trim(&self, below: Offset) -> Result<(), Error> {
        let mut state = self.state();
        let below = below.min(state.published);
        if below <= state.ledger.trimmed {
            return Ok(());
        }
        let trimmed = Body::Trimmed(self.mark_of(Span::between(Offset::ZERO, below)));
        self.mark(&mut state, trimmed)?;
        Ok(())
    }

    fn publish(&self, state: &mut State, end: Offset) {
        // Invariant: heads never go back.
        assert!(end >= state.published, "{}: head from {} to {end}", self.name, state.published);
        state.published = end;
        self.head.send_modify(|head| head.offset = end);
    }

    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_gone = true;
        state.queue.clear();
        state.syncing.clear();
        self.head.send_modify(|head| head.is_gone = true);
    }

    /// What the coming sync will make durable.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut state = self.state();
        state.is_dirty = false;
        let (head, ceiling) = (state.ledger.head, state.ledger.ceiling);
        Snapshot { head, ceiling, lowered: state.lowered }
    }

    /// The log was synced since `snapshot`: what waited for it moves on. `false` when the bytes are
    /// too many for the thread that syncs.
    pub(crate) fn on_synced(&self, snapshot: Snapshot) -> Result<bool, Error> {
        {
            let mut state = self.state();
            state.synced = state.synced.max(snapshot.head);
            state.tell_synced();
            // A ceiling that was lowered meanwhile stays low, whether it was raised again or not:
            // a power cut may keep the record that lowered it, and not the other.
            if state.lowered == snapshot.lowered {
                state.ceiling = snapshot.ceiling;
            }
        }
        self.drain(crate::limits::MOVED_BY_SYNC_MAX)
    }

    /// The once-a-second work: the spool's checksum is marked, the ceiling follows the head, and a
    /// spool whose time has come rolls.
    pub(crate) fn tick(&self, now_us: u64) -> Result<(), Error> {
        let mut state = self.state();
        if state.is_gone {
            return Ok(());
        }
        let ledger = &state.ledger;
        let flush_us = u64::try_from(state.policy.flush_interval.as_micros()).unwrap_or(u64::MAX);
        let is_due = flush_us > 0
            && !ledger.spool_is_empty()
            && ledger.spool.first_append_us / flush_us != now_us / flush_us;
        if is_due {
            self.roll_in(&mut state)?;
        } else if !ledger.spool_is_empty() && ledger.mark.map(|mark| mark.0) != Some(ledger.head) {
            let (begin, end) = (ledger.spool.begin.get(), ledger.head.get());
            let life = self.life.get();
            let synced = record::Synced { life, begin, end, crc: ledger.spool.crc };
            self.mark(&mut state, Body::Synced(synced))?;
        }
        self.lower_ceiling(&mut state, now_us)
    }

    /// All that was shown is synced and the journal is idle: after a power cut it resumes here.
    fn lower_ceiling(&self, state: &mut State, now_us: u64) -> Result<(), Error> {
        let head = state.ledger.head;
        let is_idle = now_us.saturating_sub(state.ledger.modified_us) > 5_000_000;
        if is_idle && state.ledger.ceiling > head && state.synced == head && state.queue.is_empty()
        {
            self.ceiling_to_head(state)?;
            state.step = crate::limits::CEILING_STEP_MIN;
        }
        Ok(())
    }

    fn ceiling_to_head(&self, state: &mut State) -> Result<(), Error> {
        let head = state.ledger.head;
        self.set_ceiling(state, head)?;
        state.ceiling = head;
        state.lowered += 1;
        Ok(())
    }

    fn set_ceiling(&self, state: &mut State, ceiling: Offset) -> Result<(), Error> {
        let ceiling = Body::Ceiling(self.mark_of(Span::between(Offset::ZERO, ceiling)));
        self.mark(state, ceiling)?;
        Ok(())
    }

    /// A clean stop: nothing is under way, so the head itself is the ceiling.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        let mut state = self.state();
        if state.is_gone || state.ledger.ceiling <= state.ledger.head {
            return Ok(());
        }
        self.ceiling_to_head(&mut state)
    }

    /// The state to keep in a checkpoint, and the oldest record that is not in the mirror yet.
    pub(crate) fn checkpoint(&self) -> (Ledger, Option<Position>) {
        let state = self.state();
        let oldest = state.queue.front().map(|queued| queued.position);
        (state.ledger.clone(), state.moving.or(oldest))
    }
}
