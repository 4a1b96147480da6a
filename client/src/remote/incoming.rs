//! One Read stream: content in order from an offset on, until the head or a gap.

use super::door::Door;
use super::words::broken;
use super::{fault, outcome};
use crate::Error;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use protocol::request::{ReadFrom, ReadRequest};
use protocol::response::{ReadMetadata, ReadResponse};
use protocol::wire::gazette;
use protocol::{Fragment, Journal, Offset, Span, Status};
use tonic::{Code, Streaming};

/// What comes next in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Bytes at the position, at least one.
    Content(Bytes),
    /// Bytes at the position can't be read; the stream goes on behind them.
    Gap(Span),
    /// The head is reached, or the end that was asked for, or the broker ended the stream.
    End,
}

/// A stream that is read. Invariant: what `rest` and the stream still hold begins at `position`.
#[derive(Debug)]
pub(crate) struct Incoming {
    url: String,
    journal: Journal,
    position: Offset,
    rest: Bytes,
    /// Where what the broker has promised so far ends: the end of an append.
    whole_at: Offset,
    messages: Streaming<gazette::ReadResponse>,
    /// The stored fragment that was told of last, and its URL.
    offered: Option<(Fragment, String)>,
    /// Where a gap ends that was met and not told yet.
    resumes: Option<Offset>,
    /// How the stream ended, where that was met and not told yet.
    ended: Option<Result<(), Error>>,
}

impl Incoming {
    /// Opens a stream and reads its first message, which says whether there is one at all. Its
    /// position is that of the request, or where the broker begins: at the head where that was
    /// asked for, at the first fragment that is young enough where old ones are left out.
    pub async fn open(door: &Door, request: ReadRequest) -> Result<Self, Error> {
        let journal = request.journal.journal().clone();
        let from = request.from;
        let begins_there = from == ReadFrom::Head || request.begin_mod_time != 0;
        let message = gazette::ReadRequest::from(request);
        let messages = door.gazette().read(message).await;
        let messages = messages.map_err(|status| fault::read_error(door.url(), status))?;
        let mut incoming = Incoming {
            url: door.url().to_owned(),
            journal,
            position: Offset::ZERO,
            rest: Bytes::new(),
            whole_at: Offset::ZERO,
            messages: messages.into_inner(),
            offered: None,
            resumes: None,
            ended: None,
        };
        if let ReadFrom::At(offset) = from {
            incoming.position = offset;
        }
        match incoming.message().await? {
            Some(ReadResponse::Metadata(metadata)) => {
                if begins_there {
                    incoming.position = metadata.offset;
                }
                incoming.meet(&metadata)?;
                Ok(incoming)
            }
            Some(ReadResponse::Content { .. }) => Err(incoming.odd("content before its metadata")),
            // A broker that stops ends streams so.
            None => Err(Error::Later(format!("{}: the read was ended", incoming.journal))),
        }
    }

    /// Where the next byte is.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// Whether the position is at the end of an append, as far as the broker has told ends. Appends
    /// are whole in what lies between two such positions.
    pub fn is_whole(&self) -> bool {
        self.rest.is_empty() && self.position >= self.whole_at
    }

    /// The stored fragment at the position, and the URL that the broker gave for it, or none. Where
    /// the stream ends before it, the broker leaves it to its client to fetch.
    pub fn offered(&self) -> Option<(Fragment, String)> {
        let offered = self.offered.as_ref();
        offered.filter(|(fragment, _)| fragment.span.contains(self.position)).cloned()
    }

    /// The next bytes, at most `max` and as many of them as are there without waiting.
    pub async fn next(&mut self, max: usize) -> Result<Next, Error> {
        loop {
            if !self.rest.is_empty() {
                let first = self.take(max);
                return Ok(Next::Content(self.top_up(first, max)));
            }
            if let Some(end) = self.resumes.take() {
                let gap = Span::between(self.position, end);
                self.position = end;
                return Ok(Next::Gap(gap));
            }
            if let Some(ended) = self.ended.take() {
                return ended.map(|()| Next::End);
            }
            let message = self.message().await;
            self.receive(message);
        }
    }

    /// Adds what has come already.
    fn top_up(&mut self, first: Bytes, max: usize) -> Bytes {
        if first.len() >= max {
            return first;
        }
        let mut bytes = BytesMut::from(first);
        while bytes.len() < max && self.resumes.is_none() && self.ended.is_none() {
            let more = self.take(max - bytes.len());
            bytes.extend_from_slice(&more);
            if self.rest.is_empty() {
                let Some(message) = self.message().now_or_never() else { break };
                self.receive(message);
            }
        }
        bytes.freeze()
    }

    fn take(&mut self, max: usize) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(max));
        self.position = self.position.plus(bytes.len() as u64);
        bytes
    }

    async fn message(&mut self) -> Result<Option<ReadResponse>, Error> {
        match self.messages.message().await {
            Ok(message) => message.map(ReadResponse::try_from).transpose().map_err(broken),
            Err(status) if status.code() == Code::DataLoss => {
                let (journal, detail) = (self.journal.clone(), status.message().to_owned());
                Err(Error::Damaged { journal, span: Span::at(self.position, 1), detail })
            }
            Err(status) => Err(fault::read_error(&self.url, status)),
        }
    }

    fn receive(&mut self, message: Result<Option<ReadResponse>, Error>) {
        match message {
            Ok(Some(message)) => {
                if let Err(error) = self.understand(message) {
                    self.ended = Some(Err(error));
                }
            }
            Ok(None) => self.ended = Some(Ok(())),
            Err(error) => self.ended = Some(Err(error)),
        }
    }

    fn understand(&mut self, message: ReadResponse) -> Result<(), Error> {
        match message {
            ReadResponse::Metadata(metadata) => self.meet(&metadata),
            ReadResponse::Content { offset, content } if offset == self.position => {
                self.rest = content;
                Ok(())
            }
            ReadResponse::Content { offset, .. } => {
                Err(self.odd(&format!("content of {offset} at {}", self.position)))
            }
        }
    }

    fn meet(&mut self, metadata: &ReadMetadata) -> Result<(), Error> {
        match metadata.status {
            Status::Ok if metadata.offset < self.position => Err(self.odd("it goes back")),
            Status::Ok => {
                self.whole_at = metadata.fragment.as_ref().map_or(metadata.offset, Fragment::end);
                let stored = metadata.fragment.clone().filter(Fragment::is_persisted);
                self.offered = stored.map(|fragment| (fragment, metadata.fragment_url.clone()));
                self.resumes = (metadata.offset > self.position).then_some(metadata.offset);
                Ok(())
            }
            // The stream ends after it. What lies between is a gap up to the head.
            Status::OffsetNotYetAvailable => {
                self.resumes = (metadata.offset > self.position).then_some(metadata.offset);
                Ok(())
            }
            status => Err(outcome::error(status, &self.journal)),
        }
    }

    fn odd(&self, what: &str) -> Error {
        Error::Protocol(format!("reading {}: {what}", self.journal))
    }
}
