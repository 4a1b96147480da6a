//! The groups of one handle of a session: recorded one after the other, and answered in that order.
//!
//! A group is recorded when the one before it was, and not only when that one is durable: so one
//! sync serves all that wait. Once a group is refused all behind it are: else their order would
//! break.

use crate::append::{Share, Underway};
use crate::courant::append::{limit_of, wire_durability};
use crate::courant::fault::fault_of;
use crate::server::caller::Caller;
use crate::{Committed, Error, Terms};
use bytes::Bytes;
use client::Writer;
use client::limits::GROUPS_UNANSWERED;
use futures::future::BoxFuture;
use protocol::Journal;
use protocol::wire::courant::{AppendGroup, GroupResult};
use std::collections::VecDeque;

/// A group as it came.
pub(super) struct Group {
    sequence: u64,
    appends: u32,
    content: Bytes,
}

/// What comes about of a lane.
pub(super) enum Step {
    /// Its journal is served, or will not be.
    Resolved(Result<(), Error>),
    /// The group of that sequence happens, or does not.
    Recorded(u64, Result<Underway, Error>),
    /// It is as durable as was asked.
    Committed(u64, Result<Committed, Error>),
}

/// See the module.
pub(super) struct Lane {
    handle: u32,
    writer_id: [u8; 16],
    terms: Terms,
    journal: Journal,
    /// Something must be over before the next group begins: a lookup, or the group before it.
    is_busy: bool,
    /// Groups that wait to begin, with the room that they take.
    waiting: VecDeque<(Group, Share)>,
    unanswered: VecDeque<Unanswered>,
    /// The sequence of the last group.
    last: Option<u64>,
    /// Why no group is taken any more.
    refusal: Option<GroupResult>,
}

struct Unanswered {
    sequence: u64,
    len: u64,
    result: Option<GroupResult>,
}

impl Group {
    /// A group, if it is one.
    pub fn new(group: AppendGroup) -> Result<Group, String> {
        let AppendGroup { handle, sequence, appends, content } = group;
        if content.is_empty() || appends == 0 {
            return Err(format!("handle {handle}: group {sequence} is of no appends or no bytes"));
        }
        Ok(Group { sequence, appends, content })
    }

    pub fn len(&self) -> u64 {
        self.content.len() as u64
    }
}

impl Lane {
    /// A lane whose journal is about to be looked up.
    pub fn new(handle: u32, journal: Journal, writer_id: [u8; 16], terms: Terms) -> Self {
        Lane {
            handle,
            writer_id,
            terms,
            journal,
            is_busy: true,
            waiting: VecDeque::new(),
            unanswered: VecDeque::new(),
            last: None,
            refusal: None,
        }
    }

    /// Whether nothing of it is under way.
    pub fn is_idle(&self) -> bool {
        !self.is_busy && self.unanswered.is_empty()
    }

    /// Takes a group, which has its room while it waits. Fails where the client breaks a rule.
    pub fn push(
        &mut self,
        group: Group,
        room: Result<Share, Error>,
        caller: &Caller,
    ) -> Result<(), String> {
        let (handle, sequence) = (self.handle, group.sequence);
        if let Some(last) = self.last.filter(|last| last.checked_add(1) != Some(sequence)) {
            return Err(format!("handle {handle}: group {sequence} follows {last}"));
        }
        if self.unanswered.len() >= GROUPS_UNANSWERED {
            return Err(format!(
                "handle {handle}: more than {GROUPS_UNANSWERED} groups are unanswered"
            ));
        }
        self.last = Some(sequence);
        self.unanswered.push_back(Unanswered { sequence, len: group.len(), result: None });
        match (&self.refusal, room) {
            (Some(refusal), _) => {
                let refusal = GroupResult { sequence, ..refusal.clone() };
                self.tell(sequence, refusal);
            }
            (None, Ok(room)) => self.waiting.push_back((group, room)),
            (None, Err(full)) => self.refuse(Some(sequence), &full, caller),
        }
        Ok(())
    }

    /// The next group is begun, if it may.
    pub fn begin(&mut self, caller: &Caller) -> Option<BoxFuture<'static, (u32, Step)>> {
        if self.is_busy || self.refusal.is_some() {
            return None;
        }
        let (Group { sequence, appends, content }, room) = self.waiting.pop_front()?;
        let writer = Some(Writer { id: turn_of(self.writer_id, sequence), sequence });
        let terms = Terms { writer, joined: appends, ..self.terms.clone() };
        // Looked up again: a lane keeps no deleted journal's files, and the caller may see another
        // one's labels no more.
        let resolution = caller.resolve_now(&self.journal);
        let (handle, broker) = (self.handle, caller.broker.clone());
        self.is_busy = true;
        Some(Box::pin(async move {
            let begun = broker.begin_bytes(resolution, terms, content, Some(room)).await;
            (handle, Step::Recorded(sequence, begun))
        }))
    }

    /// Goes on after a step.
    pub fn step(&mut self, step: Step, caller: &Caller) -> Option<BoxFuture<'static, (u32, Step)>> {
        match step {
            Step::Resolved(resolved) => {
                self.resolved(resolved, caller);
                None
            }
            Step::Recorded(sequence, begun) => {
                self.is_busy = false;
                match begun {
                    Ok(underway) => {
                        let handle = self.handle;
                        Some(Box::pin(async move {
                            (handle, Step::Committed(sequence, underway.committed().await))
                        }))
                    }
                    Err(error) => {
                        self.refuse(Some(sequence), &error, caller);
                        None
                    }
                }
            }
            Step::Committed(sequence, Ok(committed)) => {
                let result = accepted(self.handle, sequence, &committed);
                self.tell(sequence, result);
                None
            }
            Step::Committed(sequence, Err(error)) => {
                self.refuse(Some(sequence), &error, caller);
                None
            }
        }
    }

    /// The journal was looked up, and may begin to take groups.
    fn resolved(&mut self, resolved: Result<(), Error>, caller: &Caller) {
        self.is_busy = false;
        if let Err(error) = resolved {
            self.refuse(None, &error, caller);
        }
    }

    /// Refuses a group, those that wait, and those that come.
    fn refuse(&mut self, sequence: Option<u64>, error: &Error, caller: &Caller) {
        let refusal = refused(self.handle, &self.journal, error, caller);
        let waiting = std::mem::take(&mut self.waiting);
        let waiting = waiting.iter().map(|(group, _)| group.sequence);
        for sequence in sequence.into_iter().chain(waiting) {
            self.tell(sequence, GroupResult { sequence, ..refusal.clone() });
        }
        self.refusal.get_or_insert(refusal);
    }

    fn tell(&mut self, sequence: u64, result: GroupResult) {
        let first = self.unanswered.front().map_or(sequence, |first| first.sequence);
        let at = usize::try_from(sequence - first).expect("groups are few");
        self.unanswered[at].result = Some(result);
    }

    /// The next result, if it is there, and the bytes of its group.
    pub fn answered(&mut self) -> Option<(u64, GroupResult)> {
        let Unanswered { len, result, .. } = self.unanswered.front_mut()?;
        let answer = (*len, result.take()?);
        self.unanswered.pop_front();
        Some(answer)
    }
}

/// Under which id a group of a session is remembered. A journal knows the last append of each
/// writer, and of a session the last groups are to be known: so they take turns at being the last
/// of several ids. None of those is the writer's own, which appends outside the session too.
fn turn_of(mut writer_id: [u8; 16], sequence: u64) -> [u8; 16] {
    let turn = (sequence % GROUPS_UNANSWERED as u64) as u8 + 1;
    writer_id[15] ^= turn;
    writer_id
}

fn accepted(handle: u32, sequence: u64, committed: &Committed) -> GroupResult {
    let (begin, end) = (committed.span.begin().get(), committed.span.end().get());
    GroupResult {
        handle,
        sequence,
        begin,
        end,
        head: end,
        repeated: committed.is_repeated,
        durability: wire_durability(committed.durability).into(),
        life: committed.life.get(),
        ..GroupResult::default()
    }
}

fn refused(handle: u32, journal: &Journal, error: &Error, caller: &Caller) -> GroupResult {
    let served = caller.served(journal);
    GroupResult {
        handle,
        fault: fault_of(error).into(),
        detail: error.to_string(),
        head: served.as_ref().map_or(0, |served| served.replica().head().get()),
        life: served.map_or(0, |served| served.life().get()),
        limit: limit_of(error),
        ..GroupResult::default()
    }
}
