//! A read: local and stored bytes of a journal as one stream, from an offset on (gazette-spec 1.7).
//!
//! Each round asks where the offset's bytes are, tells it in one metadata message, and then sends
//! content up to the end of what was found. At the head it waits on the head's watch, outside every
//! lock. Unlike Gazette's, a read into bytes that nobody has does not wait for them: it goes on
//! behind the gap where the rules say so, and ends in an error that says what is gone elsewhere.

mod remote;
mod share;

pub(crate) use remote::Remote;
pub(crate) use share::Readers;

use crate::served::{Gap, Place};
use crate::{Broker, Error, Memory, Resolution, Served, limits};
use bytes::Bytes;
use futures::StreamExt;
use index::blocking::off_thread;
use index::store::{Content, PLACE_LEN, Parts, Places, StoreError, Wish};
use index::{Error as Local, Replica};
use protocol::request::{ReadFrom, ReadRequest};
use protocol::response::{ReadMetadata, ReadResponse};
use protocol::{Codec, Fragment, Header, Offset, Span, Status};
use share::Share;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// One message of a read.
pub type Step = ReadResponse;

/// How long the URL of a fragment works (gazette-spec 1.7).
const URL_TTL: Duration = Duration::from_secs(60);

/// The messages of one read, in order.
#[derive(Debug)]
pub struct Reader {
    broker: Broker,
    served: Arc<Served>,
    /// Goes into the first message.
    header: Option<Header>,
    request: ReadRequest,
    /// `None` until the head was looked up for a read that begins there.
    offset: Option<Offset>,
    serving: Serving,
    /// What is known of it when it comes to the next stored fragment.
    wish: Wish,
    /// Of a stored fragment, behind what was sent of it.
    rest: Bytes,
    share: Share,
}

#[derive(Debug)]
enum Serving {
    /// To ask where the next bytes are.
    Nothing,
    /// Local bytes up to here.
    Local(Offset),
    /// A fragment of that codec, up to here.
    Stored(Box<Content>, Codec, Offset),
    Ended,
}

impl Broker {
    /// Begins a read. Where the resolution has no journal to read, or the journal may not be read,
    /// the status is the error's.
    pub fn reader(&self, resolution: &Resolution, request: ReadRequest) -> Result<Reader, Error> {
        let served = resolution.served()?.clone();
        served.must_be_readable()?;
        Ok(Reader {
            broker: self.clone(),
            served,
            header: Some(self.header_of(resolution)),
            offset: match request.from {
                ReadFrom::Head => None,
                ReadFrom::At(offset) => Some(offset),
            },
            request,
            serving: Serving::Nothing,
            wish: Wish::Any,
            rest: Bytes::new(),
            share: self.shared.readers.begin(),
        })
    }
}

impl Reader {
    /// The next message; `None` at the end of the stream. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Step, Error>> {
        let step = self.step().await;
        if step.is_err() {
            self.serving = Serving::Ended;
        }
        step.transpose()
    }

    async fn step(&mut self) -> Result<Option<Step>, Error> {
        loop {
            match &mut self.serving {
                Serving::Ended => return Ok(None),
                Serving::Nothing => return self.look_up().await,
                Serving::Local(end) => {
                    let end = *end;
                    if let Some(step) = self.local(end).await? {
                        return Ok(Some(step));
                    }
                }
                Serving::Stored(..) if !self.rest.is_empty() => {
                    self.share.part().await;
                    let chunk = std::mem::take(&mut self.rest);
                    if let Some(step) = self.stored(chunk) {
                        return Ok(Some(step));
                    }
                }
                Serving::Stored(content, ..) => match content.next().await {
                    Some(chunk) => {
                        let chunk = chunk.map_err(|error| missing(&self.served, error))?;
                        if let Some(step) = self.stored(chunk) {
                            return Ok(Some(step));
                        }
                    }
                    None => self.serving = Serving::Nothing,
                },
            }
        }
    }

    /// Finds the next bytes and tells about them.
    async fn look_up(&mut self) -> Result<Option<Step>, Error> {
        self.broker.known(&self.served).await?;
        let mut offset = self.offset.unwrap_or_else(|| self.served.index_end());
        loop {
            self.offset = Some(offset);
            match self.served.place(offset) {
                Place::Local(span) => {
                    let fragment = self.served.shown(span);
                    if let Some(end) = self.skips(&fragment) {
                        offset = end;
                        continue;
                    }
                    let end = span.end().min(fragment.end());
                    return self.found(offset, fragment, Some(end)).await.map(Some);
                }
                Place::Stored(fragment) => {
                    if let Some(end) = self.skips(&fragment) {
                        offset = end;
                        continue;
                    }
                    return self.found(offset, fragment, None).await.map(Some);
                }
                Place::Gap(gap, span) => offset = self.behind(gap, span).await?,
                Place::Ahead if !self.request.block => {
                    self.serving = Serving::Ended;
                    return Ok(Some(self.metadata(Status::OffsetNotYetAvailable, offset, None)));
                }
                Place::Ahead => {
                    if !self.grown(offset).await {
                        self.serving = Serving::Ended;
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The end of a stored fragment that is older than the request wants.
    fn skips(&self, fragment: &Fragment) -> Option<Offset> {
        let is_old = fragment.is_persisted() && fragment.mod_time < self.request.begin_mod_time;
        is_old.then_some(fragment.end())
    }

    /// Waits for the head to pass `offset`. False when there will be no more: the journal is gone,
    /// or the broker closes.
    async fn grown(&mut self, offset: Offset) -> bool {
        let mut head = self.served.replica().watch();
        tokio::select! {
            biased;
            () = self.broker.closed() => false,
            grown = head.wait_for(|head| head.is_gone || head.offset > offset) => {
                grown.is_ok_and(|head| !head.is_gone)
            }
        }
    }

    /// Where a read goes on that meets a gap.
    async fn behind(&mut self, gap: Gap, span: Span) -> Result<Offset, Error> {
        if gap == Gap::Missing && !self.served.stored().is_listed() {
            self.broker.wait_listed(&self.served).await?;
            return Ok(span.begin());
        }
        let next = self.served.readable_from(span.end());
        let next = next.unwrap_or_else(|| self.served.replica().head());
        let gone = gone(&self.served, gap, Span::between(span.begin(), next));
        match gone {
            // A read below the first available byte goes on there, and so does one at bytes that
            // no one will ever have.
            Error::Trimmed { .. } | Error::Lost { .. } => Ok(next),
            Error::Hole { .. } if self.is_old(next) => Ok(next),
            gone => Err(gone),
        }
    }

    /// Whether the fragment at `offset` has been stored for so long that what is missing before it
    /// will not come any more.
    fn is_old(&self, offset: Offset) -> bool {
        let Place::Stored(fragment) = self.served.place(offset) else { return false };
        let stored = UNIX_EPOCH + Duration::from_secs(fragment.mod_time.unsigned_abs());
        stored + limits::JUMP_AGE < self.broker.shared.config.clock.now()
    }

    /// Tells what was found, and makes ready to send it. `local_end` is where it ends locally.
    async fn found(
        &mut self,
        offset: Offset,
        fragment: Fragment,
        local_end: Option<Offset>,
    ) -> Result<Step, Error> {
        let is_over = self.request.end.is_some_and(|end| offset >= end);
        let is_remote = local_end.is_none();
        // Gazette's clients slice below zero by a URL at or beyond their end (gazette-spec 9.2).
        let has_url = fragment.is_persisted() && !is_over;
        let url = if has_url { self.url_of(&fragment, is_remote).await? } else { String::new() };
        let wants_content =
            !is_over && !self.request.metadata_only && (!is_remote || self.request.may_proxy);
        self.serving = match local_end {
            _ if !wants_content => Serving::Ended,
            Some(end) => Serving::Local(self.bounded(end)),
            None => {
                let end = self.bounded(fragment.end());
                let parts = self.broker.shared.places.take(self.wish);
                let content = open(&self.broker, &self.served, &fragment, offset, parts).await?;
                Serving::Stored(Box::new(content), fragment.codec, end)
            }
        };
        let metadata = self.metadata(Status::Ok, offset, Some(fragment));
        Ok(match metadata {
            Step::Metadata(metadata) => {
                Step::Metadata(Box::new(ReadMetadata { fragment_url: url, ..*metadata }))
            }
            content @ Step::Content { .. } => content,
        })
    }

    fn bounded(&self, end: Offset) -> Offset {
        self.request.end.map_or(end, |bound| bound.min(end))
    }

    /// Where clients can fetch the fragment themselves: only those fail without that have no other
    /// way to it.
    async fn url_of(&mut self, fragment: &Fragment, is_remote: bool) -> Result<String, Error> {
        match self.broker.shared.stores.sign(fragment, URL_TTL).await {
            Ok(url) => Ok(url),
            Err(_) if self.request.may_proxy || !is_remote => Ok(String::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn metadata(&mut self, status: Status, offset: Offset, fragment: Option<Fragment>) -> Step {
        let end = fragment.as_ref().map_or(Offset::ZERO, Fragment::end);
        let metadata = ReadMetadata {
            status,
            header: self.header.take(),
            offset,
            write_head: self.served.index_end().max(end),
            fragment,
            fragment_url: String::new(),
        };
        Step::Metadata(Box::new(metadata))
    }

    /// The next local bytes below `end`; `None` when the place is to be looked up again.
    async fn local(&mut self, end: Offset) -> Result<Option<Step>, Error> {
        let offset = self.offset.expect("it was looked up");
        let len = usize::try_from(end.since(offset)).unwrap_or(usize::MAX);
        let len = len.min(self.share.chunk_len());
        if len == 0 {
            self.serving = Serving::Nothing;
            return Ok(None);
        }
        self.share.part().await;
        match read_local(self.served.replica(), offset, len).await {
            Ok(content) => Ok(Some(self.content(content))),
            // Evicted meanwhile: a store has it.
            Err(Local::NotLocal { .. }) => {
                self.serving = Serving::Nothing;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A chunk of a stored fragment, cut at the read's end.
    fn stored(&mut self, mut chunk: Bytes) -> Option<Step> {
        let Serving::Stored(_, codec, end) = self.serving else { return None };
        let offset = self.offset.expect("it was looked up");
        let left = usize::try_from(end.since(offset)).unwrap_or(usize::MAX);
        chunk.truncate(left);
        let len = chunk.len().min(self.share.chunk_len());
        self.rest = chunk.split_off(len);
        self.served.traffic().add_fetched(codec, chunk.len());
        if chunk.len() == left {
            self.serving = Serving::Nothing;
            self.wish = Wish::All;
        }
        (!chunk.is_empty()).then(|| self.content(chunk))
    }

    fn content(&mut self, content: Bytes) -> Step {
        let offset = self.offset.expect("it was looked up");
        let next = offset.plus(content.len() as u64);
        self.served.traffic().add_read(content.len());
        self.offset = Some(next);
        if self.request.end.is_some_and(|end| next >= end) {
            self.serving = Serving::Ended;
        }
        Step::Content { offset, content }
    }
}

/// Reads local bytes: at least one. Where it may block are those reads that are long enough to
/// wait for the disk, and find that they would.
pub(crate) async fn read_local(
    replica: &Arc<Replica>,
    offset: Offset,
    len: usize,
) -> Result<Bytes, Local> {
    if len <= limits::INLINE_READ || replica.is_cached(offset, len) {
        return replica.read_new(offset, len).map(Bytes::from);
    }
    let replica = replica.clone();
    off_thread(move || replica.read_new(offset, len)).await.map(Bytes::from)
}

/// Places for as many readers in parts as there is memory for.
pub(crate) fn places(memory: Memory) -> Places {
    Places::new(usize::try_from(memory.parts() / PLACE_LEN).unwrap_or(usize::MAX))
}

/// Opens a stored fragment of a journal, to be fetched in `parts` where they are given.
async fn open(
    broker: &Broker,
    served: &Served,
    fragment: &Fragment,
    from: Offset,
    parts: Option<Parts>,
) -> Result<Content, Error> {
    let store = broker.shared.stores.get(&fragment.backing_store)?;
    let opened = store.open_in_parts(fragment, from, parts).await;
    let opened = opened.map_err(|error| missing(served, error))?;
    served.traffic().add_opened(fragment, from);
    Ok(opened)
}

/// A fragment that is gone from its store makes the index be refreshed.
fn missing(served: &Served, error: StoreError) -> Error {
    if matches!(error, StoreError::Missing { .. }) {
        served.stored().refresh_soon();
    }
    error.into()
}

/// The error of a read within `span`, which is a gap up to the next readable byte or the head.
pub(crate) fn gone(served: &Served, gap: Gap, span: Span) -> Error {
    let journal = served.journal().clone();
    let given_up = served.given_up();
    match gap {
        // Also what nobody has and nothing before it: that is trimmed by definition.
        Gap::Trimmed | Gap::Missing if given_up > span.begin() => {
            // What follows may be lost, and is no hole.
            let span = Span::between(span.begin(), given_up.min(span.end()));
            Error::Trimmed { journal, span }
        }
        Gap::Trimmed | Gap::Missing => Error::Hole { journal, span },
        Gap::Lost => Error::Lost { journal, span },
        Gap::Damaged => Error::Damaged { journal, span },
    }
}
