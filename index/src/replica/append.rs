//! Recording an append, and moving what is recorded into the mirror.

use super::{Replica, State};
use crate::Error;
use crate::limits;
use crate::log::Purpose;
use crate::record::{self, Body, Position, Record};
use crate::staging::Placed;
use bytes::Bytes;
use protocol::{LabelSet, Offset, Span};
use std::sync::Arc;
use tokio::sync::{OwnedMutexGuard, oneshot};

/// The complete content of one append.
#[derive(Debug)]
pub enum Content {
    Memory(Bytes),
    Staged(Placed),
}

impl Content {
    pub fn len(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Staged(placed) => placed.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One append, decided: only local space and the local disk can still refuse it.
#[derive(Debug)]
pub struct Entry {
    pub content: Content,
    /// The registers after the append, when they change.
    pub registers: Option<LabelSet>,
    /// The writer's id and sequence.
    pub writer: Option<([u8; 16], u64)>,
    /// Acknowledge only what is synced.
    pub is_disk: bool,
}

/// An append that is recorded and waits: for a sync, or for those before it.
#[derive(Debug)]
pub(super) struct Queued {
    pub position: Position,
    span: Span,
    staged: Option<Placed>,
    memory: Bytes,
    is_disk: bool,
    done: oneshot::Sender<()>,
}

/// The journal's writer turn: nobody else records an append while it lives.
#[derive(Debug)]
pub struct Turn {
    replica: Arc<Replica>,
    _turn: OwnedMutexGuard<()>,
}

/// A recorded append on its way to being published.
#[derive(Debug)]
pub struct Commit {
    span: Span,
    waits: Option<oneshot::Receiver<()>>,
}

impl Commit {
    /// Where the append went. It is decided, whether published yet or not.
    pub fn span(&self) -> Span {
        self.span
    }

    pub fn is_done(&self) -> bool {
        self.waits.is_none()
    }

    /// Waits until the append is published, at the durability that was asked.
    pub async fn done(self) -> Result<Span, Error> {
        match self.waits {
            None => Ok(self.span),
            Some(waits) => waits.await.map(|()| self.span).map_err(|_| Error::Closing),
        }
    }
}

impl Replica {
    /// The sequence and the span of the last append of a writer, while it is remembered.
    pub fn last_of(&self, writer: &[u8; 16]) -> Option<(u64, Span)> {
        self.state().ledger.writer(writer).map(|last| (last.sequence, last.span))
    }

    /// Takes the writer turn, in the order of asking. Waits before that while too much of
    /// all journals waits in memory for a sync.
    pub async fn turn(self: &Arc<Self>) -> Turn {
        self.shared.unsynced_room().await;
        let turn = self.turn.clone().lock_owned().await;
        Turn { replica: self.clone(), _turn: turn }
    }
}

impl Turn {
    pub(super) fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Where the next append begins: the end of the last recorded one.
    pub fn head(&self) -> Offset {
        self.replica.state().ledger.head
    }

    pub fn registers(&self) -> LabelSet {
        self.replica.state().ledger.registers.clone()
    }

    /// The sequence and the span of the last append of a writer, while it is remembered.
    pub fn last_of(&self, writer: &[u8; 16]) -> Option<(u64, Span)> {
        self.replica.last_of(writer)
    }

    /// Records the append. After that it happens, whatever becomes of the caller.
    ///
    /// The turn may be given up as soon as this returns; the commit is awaited without it.
    pub fn record(&mut self, entry: Entry) -> Result<Commit, Error> {
        let replica = &self.replica;
        let len = entry.content.len();
        let begin = self.head();
        let room = i64::MAX as u64 - begin.as_u64();
        if len > room {
            return Err(Error::TooLarge { len, max: room });
        }
        replica.shared.admit(len)?;
        let span = Span::at(begin, len);
        replica.mirror.reserve(span)?;
        let (memory, staged) = replica.prepare(entry.content)?;
        let mut append = record::Append {
            life: replica.life.get(),
            begin: begin.get(),
            len,
            time_us: replica.shared.clock.now_us(),
            crc: staged.as_ref().map_or_else(|| crc32c::crc32c(&memory), |placed| placed.crc),
            content: if staged.is_none() { memory.clone() } else { Bytes::new() },
            staged: staged.as_ref().map(|placed| placed.at),
            ..record::Append::default()
        };
        append.writer =
            entry.writer.map(|(id, sequence)| record::Writer { id: id.to_vec(), sequence });
        append.registers = entry
            .registers
            .map(|registers| record::Registers { encoded: crate::registers::encode(&registers) });
        replica.shared.unsynced.note(append.time_us);
        replica.commit(append, span, memory, staged, entry.is_disk)
    }
}

impl Replica {
    /// Large content in memory goes to staging; what is staged stays there.
    fn prepare(&self, content: Content) -> Result<(Bytes, Option<Placed>), Error> {
        match content {
            Content::Memory(bytes) if bytes.len() as u64 > self.shared.options.inline_max => {
                let placed = self.shared.staging.place(&bytes, crc32c::crc32c(&bytes))?;
                Ok((bytes, Some(placed)))
            }
            Content::Memory(bytes) => Ok((bytes, None)),
            Content::Staged(placed) => Ok((Bytes::new(), Some(placed))),
        }
    }

    fn commit(
        self: &Arc<Self>,
        mut append: record::Append,
        span: Span,
        memory: Bytes,
        staged: Option<Placed>,
        is_disk: bool,
    ) -> Result<Commit, Error> {
        let mut state = self.state();
        if state.is_gone {
            return Err(Error::Deleted(self.life));
        }
        let ledger = &state.ledger;
        append.spool_begin = ledger.spool.begin.get();
        append.codec = match ledger.spool_is_empty() {
            true => state.policy.codec.number(),
            false => ledger.spool.codec.number(),
        };
        let record = Record { body: Some(Body::Append(append)) };
        let position = self.shared.log.append(&record, Purpose::Append)?;
        let body = record.body.expect("was just put in");
        state.ledger.apply(&body, position);
        if let Some(placed) = &staged {
            placed.recorded(position);
        }
        let is_full =
            state.ledger.head.since(state.ledger.spool.begin) >= state.policy.fragment_len;
        if is_full && let Err(error) = self.roll_in(&mut state) {
            // The append itself is recorded; a later tick or append rolls the spool.
            tracing::warn!(journal = %self.name, %error, "the spool could not be closed");
        }
        if !is_disk {
            self.raise_ceiling(&mut state, span.end());
        }
        self.shared.mark_dirty(&mut state.is_dirty, || Some(self.clone()));
        self.shared.sync_soon();
        let is_next = state.queue.is_empty() && state.moving.is_none();
        let (done, waits) = oneshot::channel();
        let queued = Queued { position, span, staged, memory, is_disk, done };
        if is_next && state.is_ready(&queued) {
            state.moving = Some(position);
            drop(state);
            return self.move_at_once(queued, waits);
        }
        // Whoever moves those before it moves it too, unless it waits for a sync.
        let waits_for_sync = !state.is_ready(&queued);
        state.queue.push_back(queued);
        drop(state);
        if waits_for_sync {
            self.shared.wake_sync();
        }
        Ok(Commit { span, waits: Some(waits) })
    }

    /// Moves one append on the caller's thread: nothing stands before it.
    fn move_at_once(
        self: &Arc<Self>,
        queued: Queued,
        waits: oneshot::Receiver<()>,
    ) -> Result<Commit, Error> {
        let span = queued.span;
        let moved = self.move_in(std::slice::from_ref(&queued));
        let mut state = self.state();
        state.moving = None;
        let waits = match moved {
            Ok(()) => {
                self.publish(&mut state, span.end());
                None
            }
            Err(error) => {
                // Recorded is recorded: the next sync round tries again.
                tracing::error!(journal = %self.name, %error, "an append waits for its mirror");
                state.queue.push_front(queued);
                self.move_later(&mut state);
                Some(waits)
            }
        };
        // Nobody queued meanwhile: the turn is the caller's.
        drop(state);
        Ok(Commit { span, waits })
    }

    /// Has the next sync round move what is ready.
    fn move_later(self: &Arc<Self>, state: &mut State) {
        self.shared.mark_dirty(&mut state.is_dirty, || Some(self.clone()));
        self.shared.wake_sync();
    }

    /// Moves what large pieces are ready, and what came with them: a share, so that those of other
    /// journals have their turn. `false` when more is ready.
    pub(crate) fn drain_large(&self) -> Result<bool, Error> {
        let first = self.state().queue.front().map_or(0, |first| first.span.len());
        self.drain(first.max(limits::MOVED_BY_SYNC_MAX))
    }

    /// Moves what is ready, in order, and publishes it: up to `most` bytes. Where more is ready it
    /// is left, and the answer is `false`.
    pub(crate) fn drain(&self, most: u64) -> Result<bool, Error> {
        let mut left = most;
        loop {
            let batch: Vec<Queued> = {
                let mut state = self.state();
                if state.moving.is_some() {
                    return Ok(true);
                }
                let mut len = 0;
                let ready = state.queue.iter().take_while(|queued| {
                    len += queued.span.len();
                    state.is_ready(queued) && len <= left
                });
                let ready = ready.count();
                if ready == 0 {
                    return Ok(state.queue.front().is_none_or(|first| !state.is_ready(first)));
                }
                state.moving = state.queue.front().map(|first| first.position);
                state.queue.drain(..ready).collect()
            };
            let moved = self.move_in(&batch);
            let mut state = self.state();
            state.moving = None;
            if let Err(error) = moved {
                batch.into_iter().rev().for_each(|queued| state.queue.push_front(queued));
                return Err(error);
            }
            let end = batch.last().expect("at least one is ready").span.end();
            left -= end.since(batch[0].span.begin());
            self.publish(&mut state, end);
            drop(state);
            for queued in batch {
                // A caller that went away does not hear of it; the append happened all the same.
                let _ = queued.done.send(());
            }
        }
    }

    /// Writes recorded content into the mirror: runs of small ones in one write.
    fn move_in(&self, batch: &[Queued]) -> Result<(), Error> {
        let mut run: Vec<u8> = Vec::new();
        let mut run_begin = batch.first().map_or(Offset::ZERO, |first| first.span.begin());
        for queued in batch {
            let small = queued.memory.len() < 4096 && queued.staged.is_none();
            if small && batch.len() > 1 {
                if run.is_empty() {
                    run_begin = queued.span.begin();
                }
                run.extend_from_slice(&queued.memory);
                continue;
            }
            self.mirror.write(run_begin, &std::mem::take(&mut run))?;
            self.move_one(queued)?;
        }
        self.mirror.write(run_begin, &run)
    }

    fn move_one(&self, queued: &Queued) -> Result<(), Error> {
        match &queued.staged {
            Some(placed) if queued.memory.is_empty() => self.copy(placed, queued.span.begin()),
            _ => self.mirror.write(queued.span.begin(), &queued.memory),
        }
    }

    fn copy(&self, placed: &Placed, begin: Offset) -> Result<(), Error> {
        let mut buf = vec![0; placed.len.min(1 << 20) as usize];
        let mut done = 0;
        while done < placed.len {
            let part = (placed.len - done).min(buf.len() as u64) as usize;
            placed.read(done, &mut buf[..part])?;
            self.mirror.write(begin.plus(done), &buf[..part])?;
            done += part as u64;
        }
        Ok(())
    }

    /// Raises the ceiling well before the head reaches it, by about a second's growth.
    fn raise_ceiling(&self, state: &mut State, end: Offset) {
        let step = state.step;
        if state.ledger.ceiling.since(end) > step / 2 {
            return;
        }
        let now_us = self.shared.clock.now_us();
        let is_fast = now_us.saturating_sub(state.raised_us) < 1_000_000;
        let step = if is_fast { step * 2 } else { step / 2 };
        state.step = step.clamp(limits::CEILING_STEP_MIN, limits::CEILING_STEP_MAX);
        state.raised_us = now_us;
        let Some(ceiling) = end.checked_add(state.step) else { return };
        match self.set_ceiling(state, ceiling) {
            Ok(()) => self.shared.wake_sync(),
            // Without a ceiling the append waits for its own sync.
            Err(error) => tracing::warn!(journal = %self.name, %error, "the ceiling stays"),
        }
    }
}

impl State {
    /// Whether a recorded append may be shown.
    fn is_ready(&self, queued: &Queued) -> bool {
        let end = queued.span.end();
        end <= self.synced || (!queued.is_disk && end <= self.ceiling)
    }
}
