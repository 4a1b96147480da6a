//! Streams of requests that are answered by a stream, each of them by one task.
//!
//! The task is not the body of the response: that is polled when the client takes answers, and what
//! a request began must not stand still for a client that is slow.

use crate::Error;
use crate::auth::Unauthorized;
use crate::gazette::call_error;
use crate::server::caller::Caller;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Where the task puts its answers.
pub type Replies<T> = mpsc::Sender<Result<T, Status>>;

/// What becomes the body of the response. The task goes on while it is there.
pub type Answers<T> = ReceiverStream<Result<T, Status>>;

/// Begins a task with room for so many answers. The error that it ends with is the last one.
pub fn begin<T, F>(room: usize, task: impl FnOnce(Replies<T>) -> F) -> Answers<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (replies, answers) = mpsc::channel(room);
    let task = task(replies.clone());
    tokio::spawn(async move {
        if let Err(status) = task.await {
            // A client that went away does not hear of it.
            let _ = replies.send(Err(status)).await;
        }
    });
    ReceiverStream::new(answers)
}

/// Requests that begin something, and are answered when it is over.
pub trait Dialog {
    type Request;
    type Answer;

    /// Whether something is unanswered, or answered and not sent.
    fn is_owing(&self) -> bool;

    /// Whether there is room for what the next request begins.
    fn may_read(&self) -> bool;

    /// Begins what a request asks for; an error ends the stream.
    fn take(&mut self, request: Self::Request) -> Result<(), Status>;

    /// Polls all that was begun, until something of it came about. It is dropped whenever anything
    /// else happens, and must lose nothing by it.
    fn step(&mut self) -> impl Future<Output = ()> + Send;

    fn has_answer(&self) -> bool;

    /// All that is to be sent, in one answer.
    fn answer(&mut self) -> Self::Answer;
}

/// Goes on until the client is gone or its grant has ended; where its requests or the port end,
/// until everything is answered.
pub async fn converse<D>(
    caller: &Caller,
    dialog: &mut D,
    mut requests: Streaming<D::Request>,
    replies: &Replies<D::Answer>,
) -> Result<(), Status>
where
    D: Dialog + Send,
    D::Request: Send,
    D::Answer: Send,
{
    let mut stopped = pin!(caller.stop.told());
    let mut expired = pin!(caller.grant.ended());
    let mut gone = pin!(replies.closed());
    // How it ends, once nothing more is read.
    let mut end = None;
    loop {
        if !dialog.is_owing()
            && let Some(end) = end
        {
            return end;
        }
        let may_read = end.is_none() && dialog.may_read();
        tokio::select! {
            biased;
            () = &mut gone => return Ok(()),
            () = &mut expired => return Err(call_error(Unauthorized::Expired.into())),
            () = &mut stopped, if end.is_none() => end = Some(Err(call_error(Error::Closing))),
            () = dialog.step() => {}
            Ok(place) = replies.reserve(), if dialog.has_answer() => {
                place.send(Ok(dialog.answer()));
            }
            request = requests.message(), if may_read => match request? {
                Some(request) => dialog.take(request)?,
                None => end = Some(Ok(())),
            },
        }
    }
}
