//! A Read whose stored fragments are fetched past the broker, where that works.
//!
//! The broker is asked not to proxy: then it sends what it has, and ends its stream at a fragment
//! that only a store has, after saying where (gazette-spec 1.7). What is fetched from there goes on
//! with another Read at the fragment's end. Where no way to the fragment works, or the broker does
//! not answer such a Read, it is asked to proxy after all.

use super::flow::Flow;
use super::{Fragments, Way};
use crate::Error;
use crate::limits::{FLOW_RESUMES, NEXT_FLOW_WITHIN};
use crate::remote::{Door, Incoming, Next};
use index::store::{PART_LEN, StoreError, Wish};
use protocol::request::{ReadFrom, ReadRequest};
use protocol::{Fragment, Offset};
use std::sync::Arc;
use tokio::task::JoinSet;

/// A stream that is read, by whichever way. Dropping a future of it loses no bytes.
pub(crate) struct Passage {
    door: Arc<Door>,
    fragments: Arc<Fragments>,
    request: ReadRequest,
    at: At,
    /// How often the flow of the present fragment broke.
    breaks: u32,
    /// What comes after the present fragment, while it is looked for. At most one task.
    next: JoinSet<Result<At, Error>>,
}

/// Where the bytes at the position come from.
enum At {
    Broker(Box<Incoming>),
    Stored(Box<Stored>),
}

/// A fragment that is fetched.
struct Stored {
    flow: Flow,
    way: Way,
    /// Where the flow began.
    from: Offset,
}

impl Passage {
    /// Opens a stream, as [`Incoming::open`] does.
    pub async fn open(
        door: &Arc<Door>,
        fragments: &Arc<Fragments>,
        request: ReadRequest,
    ) -> Result<Self, Error> {
        let at = begin(door, fragments, request.clone()).await?;
        let (door, fragments) = (door.clone(), fragments.clone());
        Ok(Passage { door, fragments, request, at, breaks: 0, next: JoinSet::new() })
    }

    /// Where the next byte is.
    pub fn position(&self) -> Offset {
        match &self.at {
            At::Broker(incoming) => incoming.position(),
            At::Stored(stored) => stored.flow.position(),
        }
    }

    /// As [`Incoming::is_whole`]: a fragment ends where an append does.
    pub fn is_whole(&self) -> bool {
        match &self.at {
            At::Broker(incoming) => incoming.is_whole(),
            At::Stored(stored) => stored.flow.left() == 0,
        }
    }

    /// The next bytes, at most `max` and as many of them as are there without waiting.
    pub async fn next(&mut self, max: usize) -> Result<Next, Error> {
        loop {
            match &mut self.at {
                At::Broker(incoming) => {
                    let next = incoming.next(max).await?;
                    let Some((fragment, url)) = incoming.offered().filter(|_| next == Next::End)
                    else {
                        return Ok(next);
                    };
                    if self.is_over() {
                        return Ok(next);
                    }
                    let from = self.position();
                    self.at = self.turn_to(fragment, url, from).await?;
                }
                At::Stored(stored) => {
                    let left =
                        self.request.end.map_or(u64::MAX, |end| end.since(stored.flow.position()));
                    let max = usize::try_from(left).unwrap_or(usize::MAX).min(max);
                    match stored.flow.next(max).await {
                        _ if max == 0 => return Ok(Next::End),
                        Ok(Some(bytes)) => {
                            self.look_ahead();
                            return Ok(Next::Content(bytes));
                        }
                        Ok(None) => self.go_on().await?,
                        Err(error) => self.recover(error).await?,
                    }
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.request.end.is_some_and(|end| self.position() >= end)
    }

    fn request_at(&self, offset: Offset) -> ReadRequest {
        ReadRequest { from: ReadFrom::At(offset), begin_mod_time: 0, ..self.request.clone() }
    }

    /// The fragment by a way of this client, else the broker again.
    async fn turn_to(&self, fragment: Fragment, url: String, from: Offset) -> Result<At, Error> {
        match fetched(&self.fragments, fragment, url, from, Wish::Any).await {
            Some(stored) => Ok(At::Stored(Box::new(stored))),
            None => {
                self.fragments.leave_to_broker(self.request.journal.journal());
                begin(&self.door, &self.fragments, self.request_at(from)).await
            }
        }
    }

    /// Near the end of a fragment, begins with what comes after it.
    fn look_ahead(&mut self) {
        let At::Stored(stored) = &self.at else { return };
        let end = stored.flow.fragment().end();
        let is_wanted = self.request.end.is_none_or(|bound| end < bound);
        if !is_wanted || stored.flow.left() > NEXT_FLOW_WITHIN || !self.next.is_empty() {
            return;
        }
        let (door, fragments) = (self.door.clone(), self.fragments.clone());
        let request = ReadRequest { block: false, ..self.request_at(end) };
        self.next.spawn(async move { after(&door, &fragments, request, end).await });
    }

    /// Behind the end of a fragment.
    async fn go_on(&mut self) -> Result<(), Error> {
        let position = self.position();
        if let At::Stored(stored) = &self.at
            && stored.flow.left() == 0
        {
            self.breaks = 0;
            self.fragments.worked(stored.way, stored.flow.fragment());
        }
        // Only what is stored is taken from it: that the head was reached is old news by now.
        let ahead = self.next.join_next().await.and_then(Result::ok).and_then(Result::ok);
        self.at = match ahead {
            Some(At::Stored(stored)) if stored.flow.position() == position => At::Stored(stored),
            _ => begin(&self.door, &self.fragments, self.request_at(position)).await?,
        };
        Ok(())
    }

    /// After a flow broke: a server may cut long answers, and a URL is good for a minute, so that
    /// the broker is asked again; but a way that gave nothing rests.
    async fn recover(&mut self, error: StoreError) -> Result<(), Error> {
        let At::Stored(broken) = &self.at else { return Ok(()) };
        let (fragment, position) = (broken.flow.fragment().clone(), broken.flow.position());
        let gave_anything = position > broken.from;
        if gave_anything && has_wrong_sum(&fragment, &error) {
            // What comes after these bytes could be read by another way, and not be checked.
            let (journal, span) = (fragment.journal.clone(), fragment.span);
            return Err(Error::Damaged { journal, span, detail: error.to_string() });
        }
        if !gave_anything {
            self.fragments.failed(broken.way, &fragment, &error);
        }
        let is_progress = position.since(broken.from) >= PART_LEN;
        self.breaks = if is_progress { 1 } else { self.breaks + 1 };
        if self.breaks > FLOW_RESUMES || !gave_anything && is_of_object(&error) {
            self.fragments.leave_to_broker(&fragment.journal);
        }
        self.at = begin(&self.door, &self.fragments, self.request_at(position)).await?;
        Ok(())
    }
}

/// Whether the object is at fault, and not the way to it.
fn is_of_object(error: &StoreError) -> bool {
    matches!(error, StoreError::Missing { .. } | StoreError::Damaged { .. })
}

/// Whether all of a fragment was read, and was other content: that is told of its begin.
fn has_wrong_sum(fragment: &Fragment, error: &StoreError) -> bool {
    matches!(error, StoreError::Damaged { offset, .. } if *offset == fragment.begin())
}

/// Opens a Read that leaves stored fragments to this client, unless that failed lately.
async fn begin(
    door: &Arc<Door>,
    fragments: &Arc<Fragments>,
    request: ReadRequest,
) -> Result<At, Error> {
    let journal = request.journal.journal().clone();
    if fragments.may_ask(&journal) {
        let direct = ReadRequest { may_proxy: false, ..request.clone() };
        match Incoming::open(door, direct).await {
            Ok(incoming) => return Ok(At::Broker(Box::new(incoming))),
            Err(error) if !may_help(&error) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, %journal, "the broker is asked to proxy");
                let proxied = Incoming::open(door, request).await?;
                fragments.leave_to_broker(&journal);
                return Ok(At::Broker(Box::new(proxied)));
            }
        }
    }
    Incoming::open(door, request).await.map(|incoming| At::Broker(Box::new(incoming)))
}

/// Whether a Read that was not to be proxied may work if it is: the broker can't sign URLs, or
/// another one has the journal.
fn may_help(error: &Error) -> bool {
    !matches!(error, Error::Unreachable(_) | Error::NotFound(_) | Error::Unauthorized(_))
}

/// A fragment that is fetched from `from` on, where there is a way to it.
async fn fetched(
    fragments: &Fragments,
    fragment: Fragment,
    url: String,
    from: Offset,
    wish: Wish,
) -> Option<Stored> {
    match fragments.open(&fragment, &url, from, wish).await {
        Ok((content, way)) => {
            let flow = Flow::start(fragment, content, from);
            Some(Stored { flow, way, from })
        }
        Err(error) => {
            tracing::debug!(%error, "a fragment is read through the broker");
            None
        }
    }
}

/// What a Read at the end of a fragment goes on with, if that is stored too.
async fn after(
    door: &Arc<Door>,
    fragments: &Arc<Fragments>,
    request: ReadRequest,
    from: Offset,
) -> Result<At, Error> {
    let at = begin(door, fragments, ReadRequest { metadata_only: true, ..request }).await?;
    if let At::Broker(incoming) = &at
        && let Some((fragment, url)) = incoming.offered()
        && let Some(stored) = fetched(fragments, fragment, url, from, Wish::All).await
    {
        return Ok(At::Stored(Box::new(stored)));
    }
    Ok(at)
}
