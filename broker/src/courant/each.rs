//! Appends that go by themselves over one stream: each is begun when it comes and answered when it
//! is over, whatever becomes of the others.
//!
//! The stream is one task, and not the body of its response, for the reason that a session is
//! (`session.rs`). While too much is unanswered it does not read.

use super::append::append_whole;
use crate::Error;
use crate::gazette::call_error;
use crate::server::caller::Caller;
use crate::server::limits::{EACH_UNANSWERED_MAX, SESSION_LEN_MAX, SESSION_REPLIES};
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendResponse, NumberedAnswer, NumberedAppend,
};
use std::collections::BTreeMap;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

type Reply = Result<AppendEachResponse, Status>;

/// The answers of a stream of appends. It goes on while they are taken.
pub type Answers = ReceiverStream<Reply>;

/// Begins a stream of appends.
pub fn begin(caller: Caller, messages: Streaming<AppendEachRequest>) -> Answers {
    let (replies, answers) = mpsc::channel(SESSION_REPLIES);
    tokio::spawn(async move {
        if let Err(status) = Each::new(caller).serve(messages, &replies).await {
            // A client that went away does not hear of it.
            let _ = replies.send(Err(status)).await;
        }
    });
    ReceiverStream::new(answers)
}

/// See the module.
struct Each {
    caller: Caller,
    running: FuturesUnordered<BoxFuture<'static, Over>>,
    /// What gives those up that are under way, by their numbers.
    under_way: BTreeMap<u64, AbortHandle>,
    /// Answers that are to be sent.
    answers: Vec<NumberedAnswer>,
    /// Bytes of those under way.
    held: u64,
}

/// An append that is over.
struct Over {
    number: u64,
    len: u64,
    /// `None` where it was given up.
    answer: Option<AppendResponse>,
}

impl Each {
    fn new(caller: Caller) -> Self {
        Each {
            caller,
            running: FuturesUnordered::new(),
            under_way: BTreeMap::new(),
            answers: Vec::new(),
            held: 0,
        }
    }

    async fn serve(
        mut self,
        mut messages: Streaming<AppendEachRequest>,
        replies: &mpsc::Sender<Reply>,
    ) -> Result<(), Status> {
        let (stop, grant) = (self.caller.stop.clone(), self.caller.grant.clone());
        let mut stopped = pin!(stop.told());
        let mut expired = pin!(grant.ended());
        let mut gone = pin!(replies.closed());
        // How it ends, once nothing more is read.
        let mut end = None;
        loop {
            if self.unanswered() == 0
                && let Some(end) = end
            {
                return end;
            }
            let may_read = end.is_none()
                && self.held < SESSION_LEN_MAX
                && self.unanswered() < EACH_UNANSWERED_MAX;
            tokio::select! {
                biased;
                () = &mut gone => return Ok(()),
                () = &mut expired => {
                    return Err(call_error(crate::auth::Unauthorized::Expired.into()));
                }
                () = &mut stopped, if end.is_none() => {
                    end = Some(Err(call_error(Error::Closing)));
                }
                Some(over) = self.running.next() => self.over(over),
                Ok(place) = replies.reserve(), if !self.answers.is_empty() => {
                    let answers = std::mem::take(&mut self.answers);
                    place.send(Ok(AppendEachResponse { answers }));
                }
                message = messages.message(), if may_read => match message? {
                    Some(message) => self.take(message)?,
                    None => end = Some(Ok(())),
                },
            }
        }
    }

    fn unanswered(&self) -> usize {
        self.under_way.len() + self.answers.len()
    }

    fn take(&mut self, message: AppendEachRequest) -> Result<(), Status> {
        message.appends.into_iter().try_for_each(|append| self.begin(append))?;
        for number in message.gives_up {
            if let Some(handle) = self.under_way.get(&number) {
                handle.abort();
            }
        }
        Ok(())
    }

    fn begin(&mut self, append: NumberedAppend) -> Result<(), Status> {
        let number = append.number;
        if self.under_way.contains_key(&number) {
            return Err(Status::invalid_argument(format!("append {number} is under way")));
        }
        let append = append.append.unwrap_or_default();
        let len = append.content.len() as u64;
        let (going, handle) = abortable(append_whole(self.caller.clone(), append));
        let going = going.map(move |answer| Over { number, len, answer: answer.ok() });
        self.running.push(Box::pin(going));
        self.under_way.insert(number, handle);
        self.held += len;
        Ok(())
    }

    fn over(&mut self, over: Over) {
        let Over { number, len, answer } = over;
        self.under_way.remove(&number);
        self.held -= len;
        self.answers.extend(answer.map(|answer| NumberedAnswer { number, answer: Some(answer) }));
    }
}
