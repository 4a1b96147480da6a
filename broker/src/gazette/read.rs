//! Read: metadata and content, until the head, the request's end, or the port's.

use crate::metrics::{Counted, Operation};
use crate::server::caller::Caller;
use crate::{Ask, Error, Reader};
use futures::{Stream, stream};
use protocol::Status;
use protocol::request::ReadRequest;
use protocol::response::{ReadMetadata, ReadResponse};

/// The messages of a Read stream, as words. A read that is not served is one message with the
/// status that says why.
pub fn responses(
    caller: Caller,
    request: ReadRequest,
) -> impl Stream<Item = Result<ReadResponse, Error>> + Send {
    let counted = Some(caller.broker.metrics().begin(Operation::Read));
    let reading = Reading { caller, state: State::Begin(Box::new(request)), counted };
    stream::unfold(reading, |mut reading| async move {
        let response = reading.next().await;
        reading.count(response.as_ref());
        Some((response?, reading))
    })
}

struct Reading {
    caller: Caller,
    state: State,
    /// `None` once it was told how the read ended.
    counted: Option<Counted>,
}

enum State {
    Begin(Box<ReadRequest>),
    Reading(Box<Reader>),
    Ended,
}

impl Reading {
    /// Tells the metrics what is answered. A read that goes on for ever ends well when it ends.
    fn count(&mut self, response: Option<&Result<ReadResponse, Error>>) {
        let status = match response {
            Some(Ok(ReadResponse::Content { content, .. })) => {
                return self.caller.broker.metrics().read(content.len());
            }
            Some(Ok(ReadResponse::Metadata(metadata))) if metadata.status == Status::Ok => return,
            Some(Ok(ReadResponse::Metadata(metadata))) => metadata.status,
            None => Status::Ok,
            // Dropped, it counts as an error.
            Some(Err(_)) => return self.counted = None,
        };
        if let Some(counted) = self.counted.take() {
            counted.end(status);
        }
    }

    async fn next(&mut self) -> Option<Result<ReadResponse, Error>> {
        if let State::Begin(request) = &mut self.state {
            let request = request.clone();
            self.state = State::Ended;
            let begun = tokio::select! {
                biased;
                // Whoever waits for a revision waits no longer than the port and its token do.
                () = self.caller.ended() => return None,
                begun = begin(&self.caller, *request) => begun,
            };
            match begun {
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
            () = self.caller.ended() => None,
        }
    }
}

/// The reader, or the one message that says why there is none.
async fn begin(
    caller: &Caller,
    request: ReadRequest,
) -> Result<Result<Reader, ReadMetadata>, Error> {
    let resolution = caller.resolve(&Ask::from(&request)).await?;
    match caller.broker.reader(&resolution, request) {
        Ok(reader) => Ok(Ok(reader)),
        Err(error) => match error.status() {
            Some(status) => {
                let header = caller.broker.header_of(&resolution);
                Ok(Err(ReadMetadata::refusal(status, header)))
            }
            None => Err(error),
        },
    }
}
