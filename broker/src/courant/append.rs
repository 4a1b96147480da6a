//! Append as `courant.v1` has it: with durability, a writer that may repeat itself, and offset 0.

use super::fault::fault_of;
use crate::gazette::call_error;
use crate::metrics::{Counted, Operation};
use crate::server::caller::{Caller, patient};
use crate::{Ask, Committed, Error, Resolution, Terms};
use bytes::Bytes;
use client::{Durability, Writer};
use futures::{Stream, stream};
use prost::Message;
use protocol::wire::{courant, gazette};
use protocol::{Invalid, Journal, LabelSet, Life, Offset, Selector};
use std::time::Duration;
use tonic::{Status, Streaming};

/// What remains of the stream after its first message.
struct Parts {
    messages: Streaming<courant::AppendRequest>,
    /// Content that the first message carried.
    first: Option<Bytes>,
    is_complete: bool,
}

enum Failure {
    Refused(Error),
    /// The stream failed, or the client broke its rules.
    Stream(Status),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Failure::Stream(status)
    }
}

/// Serves one Append.
pub async fn append(
    caller: &Caller,
    mut messages: Streaming<courant::AppendRequest>,
) -> Result<courant::AppendResponse, Status> {
    let first = patient(messages.message()).await.map_err(call_error)??;
    let Some(mut request) = first else {
        return Err(Status::invalid_argument("an append has at least one message"));
    };
    let first = Some(std::mem::take(&mut request.content));
    let mut parts = Parts { messages, first, is_complete: request.commit };
    let name = std::mem::take(&mut request.journal);
    let terms = terms(request).map_err(|invalid| Status::invalid_argument(invalid.to_string()))?;
    let counted = caller.broker.metrics().begin(Operation::Append);
    match commit(caller, &name, terms, &mut parts).await {
        Ok(committed) => Ok(answer(caller, &name, counted, Ok(committed))),
        Err(Failure::Refused(error)) => Ok(answer(caller, &name, counted, Err(error))),
        Err(Failure::Stream(status)) => Err(status),
    }
}

/// Serves an append that is whole, one of many of a stream.
pub(super) async fn append_whole(
    caller: Caller,
    mut request: courant::AppendRequest,
) -> courant::AppendResponse {
    let counted = caller.broker.metrics().begin(Operation::Append);
    let name = std::mem::take(&mut request.journal);
    let committed = commit_whole(&caller, &name, request).await;
    answer(&caller, &name, counted, committed)
}

async fn commit_whole(
    caller: &Caller,
    name: &str,
    mut request: courant::AppendRequest,
) -> Result<Committed, Error> {
    let content = std::mem::take(&mut request.content);
    if !request.commit {
        return Err(Invalid::new("an append of a stream of them is whole, with commit").into());
    }
    let terms = terms(request)?;
    let resolution = resolve(caller, name).await?;
    // It counts from here on, also while it waits for the journal's rate.
    let room = caller.broker.room_in_memory(content.len() as u64)?;
    let begun = caller.broker.begin_bytes(resolution, terms, content, Some(room)).await?;
    begun.committed().await
}

async fn resolve(caller: &Caller, name: &str) -> Result<Resolution, Error> {
    let ask = Ask { needs_primary: true, ..Ask::new(Journal::new(name)?) };
    caller.resolve(&ask).await
}

fn answer(
    caller: &Caller,
    name: &str,
    counted: Counted,
    committed: Result<Committed, Error>,
) -> courant::AppendResponse {
    match committed {
        Ok(committed) => {
            counted.end(protocol::Status::Ok);
            accepted(&committed)
        }
        Err(error) => refused(caller, name, &error),
    }
}

async fn commit(
    caller: &Caller,
    name: &str,
    terms: Terms,
    parts: &mut Parts,
) -> Result<Committed, Failure> {
    let Caller { broker, connection, .. } = caller;
    let resolution = resolve(caller, name).await?;
    if let Some(whole) = parts.whole().await? {
        return Ok(broker.append_bytes(resolution, terms, whole).await?);
    }
    let mut stager = broker.begin_append(resolution, terms, connection).await?;
    caller.within_grant(stager.push_all(parts.contents())).await?;
    Ok(stager.finish().await?.commit().await?)
}

impl Parts {
    /// The content of an append that its first message completes: the usual one.
    async fn whole(&mut self) -> Result<Option<Bytes>, Status> {
        if !self.is_complete {
            return Ok(None);
        }
        self.expect_end().await?;
        Ok(self.first.take())
    }

    /// The content of all messages. The stream ends without an error only if it is complete.
    fn contents(&mut self) -> impl Stream<Item = Result<Bytes, Failure>> {
        stream::try_unfold(self, |parts| async move {
            Ok(parts.next_content().await?.map(|content| (content, parts)))
        })
    }

    async fn next_content(&mut self) -> Result<Option<Bytes>, Status> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.is_complete {
            self.expect_end().await?;
            return Ok(None);
        }
        match self.messages.message().await? {
            Some(message) => {
                self.is_complete = message.commit;
                Ok(Some(message.content))
            }
            None => Err(Status::aborted("the append ended without commit and is rolled back")),
        }
    }

    async fn expect_end(&mut self) -> Result<(), Status> {
        match patient(self.messages.message()).await.map_err(call_error)?? {
            None => Ok(()),
            Some(_) => Err(Status::invalid_argument("nothing may follow the message of a commit")),
        }
    }
}

fn terms(request: courant::AppendRequest) -> Result<Terms, Invalid> {
    let durability = durability(request.durability)?;
    let offset = request.offset.map(Offset::new).transpose()?;
    let check = registers::<gazette::LabelSelector>(&request.check_registers, "CheckRegisters")?;
    let union = registers::<gazette::LabelSet>(&request.union_registers, "UnionRegisters")?;
    let subtract =
        registers::<gazette::LabelSet>(&request.subtract_registers, "SubtractRegisters")?;
    Ok(Terms {
        offset,
        check_registers: check.map(Selector::try_from).transpose()?,
        union_registers: union.map(LabelSet::try_from).transpose()?,
        subtract_registers: subtract.map(LabelSet::try_from).transpose()?,
        writer: writer(&request)?,
        durability,
        rate_wait: rate_wait(request.rate_wait_ms),
        life: (request.life != 0).then(|| Life::new(request.life)),
        ..Terms::default()
    })
}

/// The longest wait for a journal's rate; 0 is as long as it takes.
pub(super) fn rate_wait(milliseconds: u32) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()))
}

pub(super) fn durability(number: i32) -> Result<Option<Durability>, Invalid> {
    match courant::Durability::try_from(number) {
        Ok(courant::Durability::Unspecified) => Ok(None),
        Ok(courant::Durability::Memory) => Ok(Some(Durability::Memory)),
        Ok(courant::Durability::Disk) => Ok(Some(Durability::Disk)),
        Err(_) => Err(Invalid::new(format!("invalid durability ({number})"))),
    }
}

fn writer(request: &courant::AppendRequest) -> Result<Option<Writer>, Invalid> {
    let sequence = request.sequence;
    match (<[u8; 16]>::try_from(&*request.writer_id), request.writer_id.is_empty()) {
        (Ok(id), _) => Ok(Some(Writer { id, sequence })),
        (Err(_), true) if sequence == 0 => Ok(None),
        (Err(_), true) => Err(Invalid::new("a sequence needs a writer_id")),
        (Err(_), false) => {
            let len = request.writer_id.len();
            Err(Invalid::new(format!("invalid writer_id (of {len} bytes; expected 16)")))
        }
    }
}

/// A message of Gazette's within ours; no bytes are none.
fn registers<M: Message + Default>(bytes: &Bytes, name: &str) -> Result<Option<M>, Invalid> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let decoded = M::decode(bytes.clone());
    decoded.map(Some).map_err(|error| Invalid::new(error.to_string()).within(name))
}

fn accepted(committed: &Committed) -> courant::AppendResponse {
    let (begin, end) = (committed.span.begin().get(), committed.span.end().get());
    courant::AppendResponse {
        begin,
        end,
        // That of a repetition lies further on, and is not looked up: who repeats asks for his own.
        head: end,
        repeated: committed.is_repeated,
        durability: wire_durability(committed.durability).into(),
        life: committed.life.get(),
        ..courant::AppendResponse::default()
    }
}

pub(super) fn wire_durability(durability: Durability) -> courant::Durability {
    match durability {
        Durability::Memory => courant::Durability::Memory,
        Durability::Disk => courant::Durability::Disk,
    }
}

fn refused(caller: &Caller, name: &str, error: &Error) -> courant::AppendResponse {
    let served = Journal::new(name).ok().and_then(|journal| caller.served(&journal));
    let head = match (error, &served) {
        (Error::WrongOffset { head, .. }, _) => *head,
        (_, Some(served)) => served.replica().head(),
        (_, None) => Offset::ZERO,
    };
    courant::AppendResponse {
        fault: fault_of(error).into(),
        detail: error.to_string(),
        head: head.get(),
        life: served.map_or(0, |served| served.life().get()),
        limit: limit_of(error),
        ..courant::AppendResponse::default()
    }
}

/// The limit that an append was over, that of a second, or that of the journal.
pub(super) fn limit_of(error: &Error) -> u64 {
    match error {
        Error::TooLarge { max, .. } | Error::Local(index::Error::TooLarge { max, .. }) => *max,
        Error::OverRate { rate, .. } => *rate,
        Error::OverSize { max, .. } => *max,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_checked() {
        type Edit = fn(&mut courant::AppendRequest);
        let cases: [(Edit, Option<&str>); 8] = [
            (|_| (), None),
            (|r| (r.offset, r.durability) = (Some(0), 2), None),
            (|r| (r.writer_id, r.sequence) = (vec![7; 16].into(), 1), None),
            (
                |r| r.offset = Some(-1),
                Some("invalid Offset (-1; expected 0 <= Offset <= MaxInt64)"),
            ),
            (|r| r.durability = 3, Some("invalid durability (3)")),
            (|r| r.sequence = 1, Some("a sequence needs a writer_id")),
            (
                |r| r.writer_id = vec![7; 15].into(),
                Some("invalid writer_id (of 15 bytes; expected 16)"),
            ),
            (|r| r.union_registers = vec![1].into(), Some("UnionRegisters: ")),
        ];
        for (edit, expected) in cases {
            let mut request = courant::AppendRequest::default();
            edit(&mut request);
            match (terms(request), expected) {
                (Ok(_), None) => {}
                (Err(invalid), Some(text)) => {
                    assert!(invalid.to_string().starts_with(text), "{invalid}");
                }
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        }
    }
}
