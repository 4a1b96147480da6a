//! Read: metadata and content, until the head, the request's end, or the port's.

use crate::server::caller::Caller;
use crate::{Ask, Error, Reader};
use futures::{Stream, stream};
use protocol::request::ReadRequest;
use protocol::response::{ReadMetadata, ReadResponse};

/// The messages of a Read stream, as words. A read that is not served is one message with the
/// status that says why.
pub fn responses(
    caller: Caller,
    request: ReadRequest,
) -> impl Stream<Item = Result<ReadResponse, Error>> + Send {
    let reading = Reading { caller, state: State::Begin(Box::new(request)) };
    stream::unfold(reading, |mut reading| async move {
        let response = reading.next().await?;
        Some((response, reading))
    })
}

struct Reading {
    caller: Caller,
    state: State,
}

enum State {
    Begin(Box<ReadRequest>),
    Reading(Box<Reader>),
    Ended,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<ReadResponse, Error>> {
        if let State::Begin(request) = &mut self.state {
            let request = request.clone();
            self.state = State::Ended;
            match begin(&self.caller, *request).await {
                Ok(Ok(reader)) => self.state = State::Reading(Box::new(reader)),
                Ok(Err(refusal)) => return Some(Ok(ReadResponse::Metadata(Box::new(refusal)))),
                Err(error) => return Some(Err(error)),
            }
        }
        let State::Reading(reader) = &mut self.state else { return None };
        if self.caller.stop.is_told() {
            return None;
        }
        tokio::select! {
            biased;
            response = reader.next() => response,
            () = self.caller.stop.told() => None,
        }
    }
}

/// The reader, or the one message that says why there is none.
async fn begin(
    caller: &Caller,
    request: ReadRequest,
) -> Result<Result<Reader, ReadMetadata>, Error> {
    let resolution = caller.broker.resolve(&Ask::from(&request)).await?;
    match caller.broker.reader(&resolution, request) {
        Ok(reader) => Ok(Ok(reader)),
        Err(error) => match error.status() {
            Some(status) => Ok(Err(ReadMetadata::refusal(status, resolution.header))),
            None => Err(error),
        },
    }
}
