//! The lanes of a session, by their journals, and which of them have something to send.

use super::Terms;
use super::lane::{After, Lane};
use super::receipt::{Done, Receipt};
use crate::limits::{GROUPS_UNANSWERED, LANE_LEN, LANES_LEN, LANES_MAX, MESSAGE_OF_GROUPS_LEN};
use crate::remote::durability;
use crate::{Append, Appended, Error};
use protocol::wire::courant::{AppendGroup, AppendsRequest, OpenHandle};
use protocol::{Journal, Life};
use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By their handles.
    lanes: Vec<Lane>,
    by_journal: BTreeMap<Journal, usize>,
    /// Lanes that have something to send.
    ready: VecDeque<usize>,
    /// Bytes that are not answered.
    held: usize,
    /// The connection that may send. An earlier one may not any more.
    connection: u64,
    /// Groups of one lane that may be under way.
    window: usize,
    /// Who waits for something to send.
    waker: Option<Waker>,
}

/// What becomes of a push.
pub(super) enum Pushed {
    Taken(Receipt),
    /// It is on other terms than what waits before it, the last of which ends so.
    Behind(Done),
    /// There is no room.
    Full,
    /// There is no place for one more journal.
    TooMany,
}

impl Lanes {
    /// Whether nothing is unanswered.
    pub fn is_idle(&self) -> bool {
        self.held == 0
    }

    pub fn push(&mut self, append: &Append, now: fn() -> Instant) -> Pushed {
        let len = append.content.len();
        let terms = Terms::of(append);
        let Some(handle) = self.handle(&append.journal, &terms) else { return Pushed::TooMany };
        let lane = &mut self.lanes[handle];
        if let Some(failed) = &lane.failed {
            return Pushed::Taken(Receipt::known(Err(failed.clone())));
        }
        if lane.terms != terms {
            if let Some(last) = lane.last() {
                return Pushed::Behind(last);
            }
            (lane.terms, lane.is_open) = (terms, false);
        }
        if lane.held + len > LANE_LEN || self.held + len > LANES_LEN {
            return Pushed::Full;
        }
        let receipt = lane.push(&append.content, now);
        self.held += len;
        self.list(handle);
        Pushed::Taken(receipt)
    }

    fn handle(&mut self, journal: &Journal, terms: &Terms) -> Option<usize> {
        if let Some(handle) = self.by_journal.get(journal) {
            return Some(*handle);
        }
        let handle = self.lanes.len();
        if handle >= LANES_MAX {
            return None;
        }
        self.lanes.push(Lane::new(journal.clone(), terms.clone(), handle as u64));
        self.by_journal.insert(journal.clone(), handle);
        Some(handle)
    }

    /// Lists a lane as ready, if it is.
    fn list(&mut self, handle: usize) {
        let lane = &mut self.lanes[handle];
        if lane.is_listed || !lane.may_send(self.window) {
            return;
        }
        lane.is_listed = true;
        self.ready.push_back(handle);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn list_all(&mut self) {
        (0..self.lanes.len()).for_each(|handle| self.list(handle));
    }

    /// A connection begins, on which so many groups of a lane may be under way.
    pub fn connect(&mut self, window: usize) -> u64 {
        self.window = window;
        self.list_all();
        self.connection
    }

    /// The connection is gone: what was sent and nobody answered is to be sent again.
    pub fn disconnect(&mut self, why: &Error) {
        self.connection += 1;
        self.window = 0;
        for lane in &mut self.lanes {
            lane.note(why);
            lane.lost();
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether no connection was there before this one.
    pub fn is_first(&self) -> bool {
        self.connection == 0
    }

    /// Nothing that was sent was taken: the broker has no sessions.
    pub fn unsent(&mut self) {
        self.lanes.iter_mut().for_each(Lane::unsent);
    }

    /// Waits for a lane that has something to send; `None` where another connection has begun.
    pub fn poll_ready(&mut self, connection: u64, cx: &mut Context<'_>) -> Poll<Option<()>> {
        if connection != self.connection {
            return Poll::Ready(None);
        }
        if self.ready.is_empty() {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Some(()))
    }

    /// The next group of those that are ready, each lane in its turn.
    pub fn next_group(&mut self) -> Option<(&mut Lane, AppendGroup)> {
        loop {
            let handle = self.ready.pop_front()?;
            let lane = &mut self.lanes[handle];
            lane.is_listed = false;
            if !lane.may_send(self.window) {
                continue;
            }
            let group = lane.send();
            let group = AppendGroup {
                handle: u32::try_from(handle).expect("lanes are bounded"),
                sequence: group.sequence,
                appends: group.appends,
                content: group.content.clone(),
            };
            self.list(handle);
            return Some((&mut self.lanes[handle], group));
        }
    }

    /// Groups that are ready, as one message. It has none where none are.
    pub fn next_message(&mut self) -> AppendsRequest {
        let mut message = AppendsRequest::default();
        let mut len = 0;
        while len < MESSAGE_OF_GROUPS_LEN
            && let Some((lane, group)) = self.next_group()
        {
            if !std::mem::replace(&mut lane.is_open, true) {
                message.opens.push(open(group.handle, lane));
            }
            len += group.content.len();
            message.groups.push(group);
        }
        message
    }

    pub fn lane(&self, handle: u32) -> Option<&Lane> {
        self.lanes.get(usize::try_from(handle).expect("32 bits fit"))
    }

    /// Takes the answer to a group; answers the bytes that are free again.
    pub fn answered(
        &mut self,
        handle: u32,
        sequence: u64,
        answer: Result<Appended, Error>,
        now: Instant,
    ) -> Result<usize, Error> {
        let index = usize::try_from(handle).expect("32 bits fit");
        let lane = self.lanes.get_mut(index);
        let lane = lane.ok_or_else(|| Error::Protocol(format!("there is no handle {handle}")))?;
        let freed = match lane.answered(sequence, answer) {
            After::Freed(bytes) => bytes,
            After::Rest(pause) => {
                lane.rests_until = Some(now + pause);
                0
            }
            After::Broken(why) => return Err(Error::Protocol(format!("{}: {why}", lane.journal))),
        };
        self.held -= freed;
        self.list(index);
        Ok(freed)
    }

    /// When the next lane has rested, or the next group is overdue.
    pub fn next_turn(&self, patience: Duration) -> Option<Instant> {
        let rested = self.lanes.iter().filter_map(|lane| lane.rests_until);
        let overdue = self.lanes.iter().filter_map(Lane::since);
        rested.chain(overdue.filter_map(|since| since.checked_add(patience))).min()
    }

    /// Goes on with what has rested, and gives up what is overdue. The bytes that are free again,
    /// and whether something was given up that is under way.
    pub fn turn(&mut self, now: Instant, patience: Duration) -> (usize, bool) {
        let (mut freed, mut is_cut) = (0, false);
        for handle in 0..self.lanes.len() {
            let lane = &mut self.lanes[handle];
            if lane.since().is_some_and(|since| now.duration_since(since) >= patience) {
                is_cut |= lane.is_under_way();
                freed += lane.fail(lane.overdue());
            }
            if lane.rests_until.is_some_and(|until| until <= now) {
                lane.rests_until = None;
                self.list(handle);
            }
        }
        self.held -= freed;
        (freed, is_cut)
    }

    /// Gives up the lanes that `is_meant` names; answers the bytes that are free again.
    pub fn fail(&mut self, error: &Error, is_meant: impl Fn(&Lane) -> bool) -> usize {
        let meant = self.lanes.iter_mut().filter(|lane| !lane.is_idle() && is_meant(lane));
        let freed = meant.map(|lane| lane.fail(error.clone())).sum();
        self.held -= freed;
        freed
    }

    pub fn last_of(&self, journal: &Journal) -> Option<Done> {
        self.lanes[*self.by_journal.get(journal)?].last()
    }

    /// Why a journal takes no appends.
    pub fn failed(&self, journal: &Journal) -> Option<Error> {
        self.lanes[*self.by_journal.get(journal)?].failed.clone()
    }

    pub fn all_last(&self) -> Vec<Done> {
        self.lanes.iter().filter_map(Lane::last).collect()
    }

    /// Lets all journals take appends again; fails with what the first of them refused.
    pub fn forgive(&mut self) -> Result<(), Error> {
        let failed: Vec<_> = self.lanes.iter_mut().filter_map(|lane| lane.failed.take()).collect();
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    pub fn forgive_one(&mut self, journal: &Journal) {
        if let Some(handle) = self.by_journal.get(journal) {
            self.lanes[*handle].failed = None;
        }
    }
}

fn open(handle: u32, lane: &Lane) -> OpenHandle {
    let Terms { durability: wanted, life, rate_wait } = &lane.terms;
    OpenHandle {
        handle,
        journal: lane.journal.to_string(),
        durability: durability(*wanted).into(),
        life: life.map_or(0, Life::get),
        rate_wait_ms: rate_wait.map_or(0, crate::remote::at_least_a_millisecond),
    }
}

/// How many groups of a lane go at once over a session, and one after the other.
pub(super) const OVER_A_SESSION: usize = GROUPS_UNANSWERED;
pub(super) const ONE_BY_ONE: usize = 1;
