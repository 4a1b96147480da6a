//! Appends that go by themselves over one stream: each is begun when it comes and answered when it
//! is over, whatever becomes of the others.
//!
//! While too much is unanswered the stream is not read.

use super::append::append_whole;
use super::dialog::{self, Dialog, converse};
use crate::server::caller::Caller;
use crate::server::limits::{EACH_UNANSWERED_MAX, SESSION_LEN_MAX, SESSION_REPLIES};
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendResponse, NumberedAnswer, NumberedAppend,
};
use std::collections::BTreeMap;
use std::future::pending;
use tonic::{Status, Streaming};

/// The answers of a stream of appends.
pub type Answers = dialog::Answers<AppendEachResponse>;

/// Begins a stream of appends.
pub fn begin(caller: Caller, messages: Streaming<AppendEachRequest>) -> Answers {
    dialog::begin(SESSION_REPLIES, |replies| async move {
        converse(&caller, &mut Each::new(caller.clone()), messages, &replies).await
    })
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

    fn unanswered(&self) -> usize {
        self.under_way.len() + self.answers.len()
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

impl Dialog for Each {
    type Request = AppendEachRequest;
    type Answer = AppendEachResponse;

    fn is_owing(&self) -> bool {
        self.unanswered() > 0
    }

    fn may_read(&self) -> bool {
        self.held < SESSION_LEN_MAX && self.unanswered() < EACH_UNANSWERED_MAX
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

    async fn step(&mut self) {
        match self.running.next().await {
            Some(over) => self.over(over),
            None => pending().await,
        }
    }

    fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    fn answer(&mut self) -> AppendEachResponse {
        AppendEachResponse { answers: std::mem::take(&mut self.answers) }
    }
}
