//! A session of appends: one client's groups of small appends to many journals, pipelined.
//!
//! A session is one task. It reads a message, begins what its lanes allow, and answers what is
//! done; while too much is unanswered it does not read, and the stream's window fills, so that a
//! client which does not take its answers holds what the limits say and no more. The task polls all
//! that it began at every turn, whatever it waits for: a group that has a journal's writer turn
//! must not keep it for the sake of a client that is slow.

mod lane;

use super::append::{durability, rate_wait};
use super::dialog::{self, Dialog, Replies, converse};
use crate::Ask;
use crate::gazette::call_error;
use crate::server::caller::{Caller, patient};
use crate::server::limits::{
    SESSION_ANSWERS_MAX, SESSION_HANDLES_MAX, SESSION_LEN_MAX, SESSION_REPLIES,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use lane::{Group, Lane, Step};
use protocol::wire::courant::{
    AppendGroup, AppendsRequest, AppendsResponse, GroupResult, OpenHandle,
};
use protocol::{Journal, Life};
use std::collections::BTreeMap;
use std::future::pending;
use tonic::{Status, Streaming};

/// The answers of a session.
pub type Answers = dialog::Answers<AppendsResponse>;

/// Begins a session.
pub fn begin(caller: Caller, messages: Streaming<AppendsRequest>) -> Answers {
    dialog::begin(SESSION_REPLIES, |replies| run(caller, messages, replies))
}

async fn run(
    caller: Caller,
    mut messages: Streaming<AppendsRequest>,
    replies: Replies<AppendsResponse>,
) -> Result<(), Status> {
    let Some(first) = patient(messages.message()).await.map_err(call_error)?? else {
        return Ok(());
    };
    let mut session = Session::new(caller.clone(), writer_id(&first)?);
    session.begin(first)?;
    converse(&caller, &mut session, messages, &replies).await
}

/// See the module.
struct Session {
    caller: Caller,
    writer_id: [u8; 16],
    lanes: BTreeMap<u32, Lane>,
    /// What goes on, each with the handle that it is for.
    running: FuturesUnordered<BoxFuture<'static, (u32, Step)>>,
    /// Results that are to be sent.
    results: Vec<GroupResult>,
    /// Bytes of unanswered groups.
    held: u64,
    unanswered: usize,
}

impl Session {
    fn new(caller: Caller, writer_id: [u8; 16]) -> Self {
        Session {
            caller,
            writer_id,
            lanes: BTreeMap::new(),
            running: FuturesUnordered::new(),
            results: Vec::new(),
            held: 0,
            unanswered: 0,
        }
    }

    fn begin(&mut self, message: AppendsRequest) -> Result<(), Status> {
        for open in message.opens {
            self.open(open)?;
        }
        message.groups.into_iter().try_for_each(|group| self.push(group))
    }

    /// Binds a handle. What is asked of the journal itself is answered to its groups.
    fn open(&mut self, open: OpenHandle) -> Result<(), Status> {
        let handle = open.handle;
        match self.lanes.get(&handle) {
            Some(lane) if !lane.is_idle() => {
                return Err(invalid(format!("handle {handle} is opened with groups unanswered")));
            }
            None if self.lanes.len() >= SESSION_HANDLES_MAX => {
                let text = format!("a session has at most {SESSION_HANDLES_MAX} handles");
                return Err(Status::resource_exhausted(text));
            }
            Some(_) | None => {}
        }
        let durability = durability(open.durability).map_err(|wrong| invalid(wrong.to_string()))?;
        let life = (open.life != 0).then(|| Life::new(open.life));
        let rate_wait = rate_wait(open.rate_wait_ms);
        let terms = crate::Terms { life, durability, rate_wait, ..crate::Terms::default() };
        let journal = Journal::new(&open.journal);
        let journal = journal.map_err(|wrong| invalid(wrong.within("Journal").to_string()))?;
        let resolving = resolve(self.caller.clone(), handle, journal.clone());
        self.running.push(Box::pin(resolving));
        self.lanes.insert(handle, Lane::new(handle, journal, self.writer_id, terms));
        Ok(())
    }

    fn push(&mut self, group: AppendGroup) -> Result<(), Status> {
        let handle = group.handle;
        let Some(lane) = self.lanes.get_mut(&handle) else {
            return Err(invalid(format!("handle {handle} is not open")));
        };
        let group = Group::new(group).map_err(invalid)?;
        let len = group.len();
        let room = self.caller.broker.room_in_memory(len);
        lane.push(group, room, &self.caller).map_err(invalid)?;
        self.held += len;
        self.unanswered += 1;
        self.go_on(handle);
        Ok(())
    }

    /// Something of a lane came about.
    fn go_on_by(&mut self, handle: u32, step: Step) {
        // Invariant: a lane is not replaced while anything of it is under way.
        let lane = self.lanes.get_mut(&handle).expect("lanes stay");
        if let Some(next) = lane.step(step, &self.caller) {
            self.running.push(next);
        }
        self.go_on(handle);
    }

    /// Begins what the lane may begin, and takes what it has to answer.
    fn go_on(&mut self, handle: u32) {
        let lane = self.lanes.get_mut(&handle).expect("lanes stay");
        if let Some(next) = lane.begin(&self.caller) {
            self.running.push(next);
        }
        while let Some((len, result)) = lane.answered() {
            self.held -= len;
            self.unanswered -= 1;
            self.results.push(result);
        }
    }
}

impl Dialog for Session {
    type Request = AppendsRequest;
    type Answer = AppendsResponse;

    fn is_owing(&self) -> bool {
        self.unanswered > 0 || !self.results.is_empty()
    }

    fn may_read(&self) -> bool {
        self.held < SESSION_LEN_MAX && self.results.len() < SESSION_ANSWERS_MAX
    }

    fn take(&mut self, message: AppendsRequest) -> Result<(), Status> {
        if !message.writer_id.is_empty() {
            return Err(invalid("writer_id: only the first message has it"));
        }
        self.begin(message)
    }

    async fn step(&mut self) {
        match self.running.next().await {
            Some((handle, step)) => self.go_on_by(handle, step),
            None => pending().await,
        }
    }

    fn has_answer(&self) -> bool {
        !self.results.is_empty()
    }

    fn answer(&mut self) -> AppendsResponse {
        AppendsResponse { results: std::mem::take(&mut self.results) }
    }
}

/// Looks the journal of a handle up.
async fn resolve(caller: Caller, handle: u32, journal: Journal) -> (u32, Step) {
    let ask = Ask { needs_primary: true, ..Ask::new(journal) };
    // One that is not there yet may be when a group comes.
    (handle, Step::Resolved(caller.broker.resolve(&ask).await.map(drop)))
}

fn writer_id(first: &AppendsRequest) -> Result<[u8; 16], Status> {
    <[u8; 16]>::try_from(&*first.writer_id).map_err(|_| {
        let len = first.writer_id.len();
        invalid(format!("invalid writer_id (of {len} bytes; the first message has one of 16)"))
    })
}

fn invalid(text: impl Into<String>) -> Status {
    Status::invalid_argument(text)
}
