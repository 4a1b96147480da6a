//! The appends that a stream has under way: those to be sent, and those that wait for an answer.
//! It knows nothing of networks.
//!
//! Invariant: what is queued waits too, and `held` is the bytes of all that waits.

use crate::Error;
use crate::limits::{EACH_MAX, EACHES_LEN, MESSAGE_OF_GROUPS_LEN};
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendRequest, AppendResponse, NumberedAppend,
};
use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What becomes of an append.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Box<AppendResponse>),
    /// No answer came, for the reason that the stream has ended.
    Failed(Error),
    /// There is no such stream: it is to go by a call.
    NoStream,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// The number of the last append. None is used twice, so that no stream answers for another.
    last: u64,
    /// In the order of their numbers.
    queued: VecDeque<NumberedAppend>,
    waiting: BTreeMap<u64, Waiting>,
    held: usize,
    /// Numbers that were sent and that nobody waits for any more.
    gives_up: Vec<u64>,
    /// The stream that may send. An earlier one may not any more.
    stream: u64,
    /// What runs it, while it is there.
    task: Option<AbortHandle>,
    rest: Rest,
    /// Who waits for something to send.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Waiting {
    len: usize,
    sender: oneshot::Sender<Outcome>,
}

/// Whether a stream may be asked for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    #[default]
    None,
    Until(Instant),
    /// Not over the connection of this number: behind the next one may be a newer broker.
    With(u64),
}

impl Desk {
    /// Whether appends may go over a stream of the connection of this number.
    pub fn may_stream(&self, connection: u64, now: fn() -> Instant) -> bool {
        match self.rest {
            Rest::None => true,
            Rest::Until(until) => until <= now(),
            Rest::With(number) => number != connection,
        }
    }

    /// Whether one of so many bytes may be under way with those that are.
    pub fn has_room_for(&self, len: usize) -> bool {
        self.waiting.len() < EACH_MAX && self.held + len <= EACHES_LEN
    }

    /// Takes an append: its number, and where its outcome comes.
    pub fn push(&mut self, append: AppendRequest) -> (u64, oneshot::Receiver<Outcome>) {
        self.last += 1;
        let (number, len) = (self.last, append.content.len());
        let (sender, outcome) = oneshot::channel();
        self.queued.push_back(NumberedAppend { number, append: Some(append) });
        self.waiting.insert(number, Waiting { len, sender });
        self.held += len;
        self.wake();
        (number, outcome)
    }

    /// The stream that has to be begun, if none is there.
    pub fn begin(&self) -> Option<u64> {
        self.task.is_none().then_some(self.stream)
    }

    pub fn runs_by(&mut self, task: AbortHandle) {
        self.task = Some(task);
    }

    /// Asks for no stream for so long.
    pub fn rest(&mut self, rest: Rest) {
        self.rest = rest;
    }

    /// Waits for something to send on a stream; `None` where that one has ended.
    pub fn poll_message(
        &mut self,
        stream: u64,
        cx: &mut Context<'_>,
    ) -> Poll<Option<AppendEachRequest>> {
        if stream != self.stream {
            return Poll::Ready(None);
        }
        if self.queued.is_empty() && self.gives_up.is_empty() {
            self.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Some(self.next_message()))
    }

    fn next_message(&mut self) -> AppendEachRequest {
        let gives_up = std::mem::take(&mut self.gives_up);
        let mut message = AppendEachRequest { appends: Vec::new(), gives_up };
        let mut len = 0;
        while len < MESSAGE_OF_GROUPS_LEN
            && let Some(next) = self.queued.pop_front()
        {
            len += next.append.as_ref().map_or(0, |append| append.content.len());
            message.appends.push(next);
        }
        message
    }

    /// Takes answers. Those to what was given up are nobody's.
    pub fn answered(&mut self, message: AppendEachResponse) {
        for answer in message.answers {
            if let Some(waiting) = self.take(answer.number) {
                let answer = Box::new(answer.answer.unwrap_or_default());
                // Whoever waited may be gone at this moment.
                let _ = waiting.sender.send(Outcome::Answered(answer));
            }
        }
    }

    /// Nobody waits for an append any more, if it is under way.
    pub fn give_up(&mut self, number: u64) {
        if self.take(number).is_none() {
            return;
        }
        match self.queued.binary_search_by_key(&number, |queued| queued.number) {
            Ok(at) => drop(self.queued.remove(at)),
            Err(_was_sent) => {
                self.gives_up.push(number);
                self.wake();
            }
        }
    }

    fn take(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        self.held -= waiting.len;
        Some(waiting)
    }

    /// The stream is over, and with it all that is under way.
    pub fn end(&mut self, outcome: &Outcome) {
        self.task = None;
        self.stream += 1;
        self.queued.clear();
        self.gives_up.clear();
        self.held = 0;
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            let outcome = match outcome {
                Outcome::Failed(error) => Outcome::Failed(error.clone()),
                Outcome::NoStream | Outcome::Answered(_) => Outcome::NoStream,
            };
            let _ = waiting.sender.send(outcome);
        }
        self.wake();
    }

    /// Ends the stream, which nobody needs any more.
    pub fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        self.end(&Outcome::NoStream);
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
