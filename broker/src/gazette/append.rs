//! Append: where and when, then content, then an empty message, then the client's end.

use super::call_error;
use crate::server::caller::{Caller, patient};
use crate::{Ask, Broker, Committed, Error, Terms};
use bytes::Bytes;
use futures::{Stream, stream};
use protocol::request::{AppendPart, AppendRequest};
use protocol::response::AppendResponse;
use protocol::wire::gazette;
use protocol::{Fragment, Invalid, Journal, Status};
use tonic::Streaming;

/// The messages of an Append stream, counted.
struct Parts {
    messages: Streaming<gazette::AppendRequest>,
    chunks: i64,
    /// Those that the journal's rate held back.
    delayed: i64,
}

/// Why an append did not happen.
enum Failure {
    Refused(Error),
    /// The stream failed, or the client broke its rules.
    Stream(tonic::Status),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Failure::Stream(status)
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        broken(&invalid.to_string())
    }
}

/// A stream that broke off or went on after its end, in Gazette's words.
fn broken(how: &str) -> Failure {
    Failure::Stream(tonic::Status::unknown(format!("append stream: {how}")))
}

/// Serves one Append.
pub async fn append(
    caller: &Caller,
    messages: Streaming<gazette::AppendRequest>,
) -> Result<AppendResponse, tonic::Status> {
    let mut parts = Parts { messages, chunks: 0, delayed: 0 };
    let request = parts.request().await?;
    let ask = Ask::from(&request);
    let terms = Terms::from(request);
    let committed = commit(caller, &ask, terms, &mut parts).await;
    let journal = ask.journal;
    match committed {
        Ok(committed) => Ok(accepted(&caller.broker, journal, committed, &parts)),
        Err(Failure::Stream(status)) => Err(status),
        Err(Failure::Refused(error)) => refused(caller, &journal, error),
    }
}

async fn commit(
    caller: &Caller,
    ask: &Ask,
    terms: Terms,
    parts: &mut Parts,
) -> Result<Committed, Failure> {
    let Caller { broker, connection, .. } = caller;
    let resolution = caller.resolve(ask).await?;
    let mut stager = broker.begin_append(resolution, terms, connection).await?;
    caller.within_grant(stager.push_all(parts.contents())).await?;
    parts.delayed = i64::try_from(stager.delayed()).unwrap_or(i64::MAX);
    Ok(stager.finish().await?.commit().await?)
}

impl Parts {
    /// The first message.
    async fn request(&mut self) -> Result<AppendRequest, tonic::Status> {
        match patient(self.messages.message()).await.map_err(call_error)?? {
            Some(message) => Ok(AppendRequest::try_from(message)?),
            None => Err(tonic::Status::unknown("append stream: unexpected EOF")),
        }
    }

    /// The content of the others. The stream ends without an error only if the append is complete.
    fn contents(&mut self) -> impl Stream<Item = Result<Bytes, Failure>> {
        stream::try_unfold(self, |parts| async move {
            Ok(parts.next_content().await?.map(|content| (content, parts)))
        })
    }

    async fn next_content(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some(message) = self.messages.message().await? else {
            return Err(broken("unexpected EOF"));
        };
        self.chunks += 1;
        match AppendPart::try_from(message)? {
            AppendPart::Content(content) => Ok(Some(content)),
            AppendPart::Commit => match self.messages.message().await? {
                None => Ok(None),
                Some(_) => Err(broken("expected EOF after empty Content chunk")),
            },
        }
    }
}

fn accepted(
    broker: &Broker,
    journal: Journal,
    committed: Committed,
    parts: &Parts,
) -> AppendResponse {
    let Committed { span, sum, codec, registers, .. } = committed;
    let sum = sum.expect("Gazette's terms ask for the sum");
    AppendResponse {
        status: Status::Ok,
        header: broker.header_here(),
        commit: Some(Fragment::local(journal, span, sum, codec)),
        registers: Some(registers),
        total_chunks: parts.chunks,
        delayed_chunks: parts.delayed,
        store_health_error: String::new(),
    }
}

/// The answer for what has a status; else the error of the call.
fn refused(
    caller: &Caller,
    journal: &Journal,
    error: Error,
) -> Result<AppendResponse, tonic::Status> {
    if let Error::Unlisted { detail, .. } = error {
        // The journal's end is in its stores, and they do not tell it (gazette-spec 2.7).
        let header = caller.broker.header_of(&caller.resolve_now(journal));
        let refusal = AppendResponse::refusal(Status::FragmentStoreUnhealthy, header);
        return Ok(AppendResponse { store_health_error: detail, ..refusal });
    }
    let Some(status) = error.status() else {
        let status = call_error(error);
        let text = format!("append stream: {}", status.message());
        return Err(tonic::Status::new(status.code(), text));
    };
    let header = caller.broker.header_of(&caller.resolve_now(journal));
    let registers = match error {
        Error::RegisterMismatch { registers, .. } => Some(registers),
        _ => None,
    };
    Ok(AppendResponse { registers, ..AppendResponse::refusal(status, header) })
}
