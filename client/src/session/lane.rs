//! What was pushed to one journal and is not answered: groups that are under way, groups that wait,
//! and the one that is being filled.
//!
//! Invariant: groups are sent in the order of their sequences, which rise by one and are never used
//! for other content; `sent` comes before `queued`, and that before `filling`.

use super::Terms;
use super::receipt::{Done, Landed, Outcome, Receipt, outcome};
use crate::limits::GROUP_LEN;
use crate::retry::{Pauses, is_worth_a_retry};
use crate::{Appended, Error};
use bytes::{Bytes, BytesMut};
use protocol::Journal;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Appends that are made together.
#[derive(Debug)]
pub(super) struct Group {
    pub sequence: u64,
    pub appends: u32,
    pub content: Bytes,
    /// When the first of them was pushed.
    since: Instant,
    /// A broker may have it.
    is_sent: bool,
    sender: oneshot::Sender<Outcome>,
    done: Done,
}

/// The group that appends are added to.
#[derive(Debug)]
struct Filling {
    content: BytesMut,
    appends: u32,
    since: Instant,
    sender: oneshot::Sender<Outcome>,
    done: Done,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Lane {
    pub journal: Journal,
    pub terms: Terms,
    filling: Option<Filling>,
    queued: VecDeque<Group>,
    sent: VecDeque<Group>,
    /// The sequence of the next group.
    next: u64,
    /// Bytes of all groups.
    pub held: usize,
    /// The broker knows the handle, on this connection.
    pub is_open: bool,
    /// It is among those that have something to send.
    pub is_listed: bool,
    /// What the first group heard that was refused. All that are under way are then, and nothing is
    /// sent until they are answered.
    trouble: Option<Error>,
    /// Groups of `sent` that were refused.
    refused: usize,
    /// It sends nothing before that time.
    pub rests_until: Option<Instant>,
    pauses: Pauses,
    /// Why no answer came so far.
    last: Option<Error>,
    /// Why nothing is taken until the one who pushes has seen it.
    pub failed: Option<Error>,
}

/// What an answer leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Nothing else: so many bytes are answered.
    Freed(usize),
    /// The lane sends again after a pause.
    Rest(Duration),
    /// The answer is not to anything that was asked.
    Broken(&'static str),
}

impl Lane {
    /// `seed` is of the pauses.
    pub fn new(journal: Journal, terms: Terms, seed: u64) -> Self {
        Lane {
            journal,
            terms,
            filling: None,
            queued: VecDeque::new(),
            sent: VecDeque::new(),
            next: 1,
            held: 0,
            is_open: false,
            is_listed: false,
            trouble: None,
            refused: 0,
            rests_until: None,
            pauses: Pauses::new(seed),
            last: None,
            failed: None,
        }
    }

    pub fn is_idle(&self) -> bool {
        self.held == 0
    }

    /// Adds an append to the group that is being filled.
    pub fn push(&mut self, content: &[u8], now: impl FnOnce() -> Instant) -> Receipt {
        let is_over = |filling: &Filling| filling.content.len() + content.len() > GROUP_LEN;
        if self.filling.as_ref().is_some_and(is_over) {
            self.close();
        }
        let filling = self.filling.get_or_insert_with(|| {
            let (sender, done) = outcome();
            Filling { content: BytesMut::new(), appends: 0, since: now(), sender, done }
        });
        let at = u32::try_from(filling.content.len()).expect("a group is short");
        let len = u32::try_from(content.len()).expect("an append of a group is short");
        filling.content.extend_from_slice(content);
        filling.appends += 1;
        self.held += content.len();
        Receipt::in_group(filling.done.clone(), at, len)
    }

    /// Makes what is being filled the last group that waits.
    fn close(&mut self) {
        let Some(filling) = self.filling.take() else { return };
        let Filling { content, appends, since, sender, done } = filling;
        let (sequence, content) = (self.next, content.freeze());
        self.next += 1;
        let is_sent = false;
        self.queued.push_back(Group { sequence, appends, content, since, is_sent, sender, done });
    }

    /// Whether a group may go now, with at most `window` under way. One that is not full goes only
    /// where none is: so nothing waits that could go, and what comes meanwhile goes together.
    pub fn may_send(&self, window: usize) -> bool {
        let is_held = self.trouble.is_some() || self.rests_until.is_some();
        let has_next = !self.queued.is_empty() || self.sent.is_empty() && self.filling.is_some();
        !is_held && has_next && self.sent.len() < window
    }

    /// The next group, which is under way from here on.
    pub fn send(&mut self) -> &Group {
        if self.queued.is_empty() {
            self.close();
        }
        let group = self.queued.pop_front().expect("asked only where it may send");
        self.sent.push_back(Group { is_sent: true, ..group });
        self.sent.back().expect("just put in")
    }

    /// Takes the answer to a group. Answers come in the order of groups.
    pub fn answered(&mut self, sequence: u64, answer: Result<Appended, Error>) -> After {
        let Some(group) = self.sent.get(self.refused).filter(|next| next.sequence == sequence)
        else {
            return After::Broken("a group is answered that is not under way");
        };
        match answer {
            Ok(appended) if self.refused == 0 => {
                if appended.span.len() != group.content.len() as u64 {
                    return After::Broken("a group lies in a span of another length");
                }
                self.pauses.reset();
                self.last = None;
                After::Freed(self.land(appended))
            }
            Ok(_) => After::Broken("a group was made behind one that was refused"),
            Err(error) => {
                self.refused += 1;
                self.trouble.get_or_insert(error);
                if self.refused < self.sent.len() {
                    return After::Freed(0);
                }
                self.stopped()
            }
        }
    }

    /// The first group that is under way was made.
    fn land(&mut self, appended: Appended) -> usize {
        let group = self.sent.pop_front().expect("it was answered");
        let Appended { span, life, repeated } = appended;
        let landed = Landed { begin: span.begin(), life, repeated };
        self.held -= group.content.len();
        // Nobody has to wait for it.
        let _ = group.sender.send(Ok(landed));
        group.content.len()
    }

    /// All that were under way are refused.
    fn stopped(&mut self) -> After {
        let error = self.trouble.clone().expect("something was refused");
        self.unsent();
        self.lost();
        if is_worth_a_retry(&error) {
            self.last = Some(error);
            return After::Rest(self.pauses.step());
        }
        After::Freed(self.fail(error))
    }

    /// The connection is gone: what was under way has to be sent again.
    pub fn lost(&mut self) {
        while let Some(group) = self.sent.pop_back() {
            self.queued.push_front(group);
        }
        self.is_open = false;
        self.trouble = None;
        self.refused = 0;
    }

    /// No broker has anything of what was sent.
    pub fn unsent(&mut self) {
        self.sent.iter_mut().chain(&mut self.queued).for_each(|group| group.is_sent = false);
    }

    pub fn is_under_way(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Bytes of a group that is under way; 0 where there is none.
    pub fn len_of(&self, sequence: u64) -> u64 {
        let group = self.sent.iter().find(|group| group.sequence == sequence);
        group.map_or(0, |group| group.content.len() as u64)
    }

    /// Whether an answer is missing to something that was sent.
    pub fn may_be_made(&self) -> bool {
        self.sent.iter().chain(&self.queued).any(|group| group.is_sent)
    }

    /// The time from which on the oldest group waits.
    pub fn since(&self) -> Option<Instant> {
        let oldest = self.sent.front().or(self.queued.front()).map(|group| group.since);
        oldest.or(self.filling.as_ref().map(|filling| filling.since))
    }

    /// Why it did not come about in time.
    pub fn overdue(&self) -> Error {
        match (self.may_be_made(), &self.last) {
            (false, Some(last)) => last.clone(),
            (true, _) | (false, None) => Error::Unknown,
        }
    }

    /// Notes why nothing is answered.
    pub fn note(&mut self, why: &Error) {
        if !self.is_idle() {
            self.last = Some(why.clone());
        }
    }

    /// Tells all appends that they were not made. Answers the bytes of them.
    pub fn fail(&mut self, error: Error) -> usize {
        self.lost();
        self.close();
        for group in self.queued.drain(..) {
            let _ = group.sender.send(Err(error.clone()));
        }
        self.rests_until = None;
        self.last = None;
        self.failed = Some(error);
        std::mem::take(&mut self.held)
    }

    /// The outcome of the last group.
    pub fn last(&self) -> Option<Done> {
        let filling = self.filling.as_ref().map(|filling| &filling.done);
        let group = self.queued.back().or(self.sent.back()).map(|group| &group.done);
        filling.or(group).cloned()
    }
}
