//! Small appends that go by themselves, over one stream of messages to the broker: a message on a
//! stream that is open costs less than a call, and what comes together goes in one message.
//!
//! Each is one attempt, as a call of Append is. When the stream breaks, all that are under way fail
//! with what befell it, and whoever waits asks again by the same writer and sequence. So appends
//! without a writer do not go here.

mod desk;

use super::door::Door;
use super::pieces::courant_whole;
use crate::limits::{EACH_BEGIN_MAX, EACH_LEN, EACH_REST};
use crate::{Append, Error};
use desk::{Desk, Outcome, Rest};
use futures::Stream;
use protocol::wire::courant::{AppendEachRequest, AppendResponse};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

/// See the module. The stream begins with the first append, and again with the next one after it
/// broke.
pub(crate) struct Each {
    shared: Arc<Shared>,
}

struct Shared {
    door: Arc<Door>,
    desk: Mutex<Desk>,
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no holder of the desk panics")
    }
}

impl Each {
    pub fn new(door: Arc<Door>) -> Self {
        Each { shared: Arc::new(Shared { door, desk: Mutex::default() }) }
    }

    /// Appends once, and answers what the broker does. `None` where it has to go by a call: it is
    /// not one that [may go here](takes), too much is under way, or the broker has no such stream.
    pub async fn append(&self, append: &Append) -> Option<Result<AppendResponse, Error>> {
        let asked = self.ask(append)?;
        asked.answer().await
    }

    fn ask(&self, append: &Append) -> Option<Asked> {
        if !takes(append) || !self.shared.door.appends_each() {
            return None;
        }
        let mut desk = self.shared.desk();
        let number = self.shared.door.line().number();
        if !desk.may_stream(number, Instant::now) || !desk.has_room_for(append.content.len()) {
            return None;
        }
        let (number, outcome) = desk.push(courant_whole(append, append.content.clone()));
        if let Some(stream) = desk.begin() {
            let task = tokio::spawn(run(self.shared.clone(), stream));
            desk.runs_by(task.abort_handle());
        }
        Some(Asked { shared: self.shared.clone(), number, outcome })
    }
}

impl Drop for Each {
    fn drop(&mut self) {
        self.shared.desk().close();
    }
}

/// Whether an append may go here: it is short, all of it is in memory, and it bears being asked for
/// again.
fn takes(append: &Append) -> bool {
    append.staged.is_none() && append.writer.is_some() && append.content.len() <= EACH_LEN
}

/// An append under way. The broker gives it up when this is dropped, as it does with a call.
struct Asked {
    shared: Arc<Shared>,
    number: u64,
    outcome: oneshot::Receiver<Outcome>,
}

impl Asked {
    async fn answer(mut self) -> Option<Result<AppendResponse, Error>> {
        match (&mut self.outcome).await {
            Ok(Outcome::Answered(answer)) => Some(Ok(*answer)),
            Ok(Outcome::Failed(error)) => Some(Err(error)),
            Ok(Outcome::NoStream) => None,
            // Whoever asked is there, and holds what answers.
            Err(_) => Some(Err(self.shared.door.ended())),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.shared.desk().give_up(self.number);
    }
}

/// One stream, from its begin to its end.
async fn run(shared: Arc<Shared>, stream: u64) {
    let outcome = serve(&shared, stream).await;
    shared.desk().end(&outcome);
}

/// Takes answers until the stream ends; what that means for those under way.
async fn serve(shared: &Arc<Shared>, stream: u64) -> Outcome {
    let door = &shared.door;
    let mut client = door.courant();
    let outgoing = Outgoing { shared: shared.clone(), stream };
    let mut answers = match timeout(EACH_BEGIN_MAX, client.append_each(outgoing)).await {
        Ok(Ok(answers)) => answers.into_inner(),
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            tracing::debug!(
                url = door.url(),
                "appends are calls: the broker has no stream of them"
            );
            shared.desk().rest(Rest::With(door.line().number()));
            return Outcome::NoStream;
        }
        Ok(Err(status)) => return Outcome::Failed(door.fault(status)),
        Err(_elapsed) => {
            shared.desk().rest(Rest::Until(Instant::now() + EACH_REST));
            return Outcome::NoStream;
        }
    };
    loop {
        match answers.message().await {
            Ok(Some(message)) => shared.desk().answered(message),
            Ok(None) => return Outcome::Failed(door.ended()),
            Err(status) => return Outcome::Failed(ended(door, status)),
        }
    }
}

fn ended(door: &Door, status: Status) -> Error {
    let error = match status.code() {
        // A token that has expired is told so when the next stream begins.
        Code::Unauthenticated => Error::Later(status.message().to_owned()),
        _ => door.fault(status),
    };
    tracing::debug!(%error, "a stream of appends has ended");
    error
}

/// The messages of a stream, made when the connection takes them. It ends when the stream does.
struct Outgoing {
    shared: Arc<Shared>,
    stream: u64,
}

impl Stream for Outgoing {
    type Item = AppendEachRequest;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AppendEachRequest>> {
        self.shared.desk().poll_message(self.stream, cx)
    }
}
