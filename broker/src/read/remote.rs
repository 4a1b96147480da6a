//! Streams of stored fragments that stay open between two reads.
//!
//! A compressed fragment can only be read from its begin. A reader that comes a piece at a time, as
//! one through a mount does, would have it decompressed up to its offset for each piece; so the
//! stream that served a piece is parked, and goes on with the next one.

use super::open;
use crate::{Broker, Error, Served, limits};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use index::store::{Content, Parts, Wish};
use protocol::{Fragment, Offset, Span};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    /// The one used last is last.
    parked: Mutex<VecDeque<Arc<Parked>>>,
}

/// A stream that serves one read at a time, in the order of asking.
#[derive(Debug)]
struct Parked {
    fragment: Fragment,
    stream: tokio::sync::Mutex<Stream>,
    /// Bytes it has, or will soon have: what a read may begin at.
    reach: Mutex<Span>,
    /// It holds a place of those who fetch in parts.
    is_parted: bool,
}

#[derive(Debug)]
struct Stream {
    content: Content,
    /// The last chunks, of which the first begins at `begin`.
    window: VecDeque<Bytes>,
    begin: Offset,
    end: Offset,
    is_failed: bool,
}

impl Remote {
    /// Up to `max` bytes at `offset`, which the stored `fragment` has: at least one.
    pub async fn read(
        &self,
        broker: &Broker,
        served: &Served,
        fragment: &Fragment,
        offset: Offset,
        max: usize,
    ) -> Result<Bytes, Error> {
        if let Some(parked) = self.find(fragment, offset)
            && let Some(read) = parked.read(served, offset, max).await?
        {
            return Ok(read);
        }
        let parts = self.parts(broker, fragment, offset);
        let is_parted = parts.is_some();
        let content = open(broker, served, fragment, offset, parts).await?;
        let parked = Arc::new(Parked::new(fragment.clone(), content, offset, is_parted));
        self.park(parked.clone());
        let read = parked.read(served, offset, max).await?;
        Ok(read.expect("a new stream begins at the offset"))
    }

    /// A parked stream that the read may go on with.
    fn find(&self, fragment: &Fragment, offset: Offset) -> Option<Arc<Parked>> {
        let mut parked = self.parked.lock().expect("no holder of the streams panics");
        let at = parked.iter().rposition(|parked| parked.reaches(fragment, offset))?;
        let found = parked.remove(at)?;
        parked.push_back(found.clone());
        Some(found)
    }

    /// Parts for a new stream, if there may be any: those that wait longest for a next read make
    /// room.
    fn parts(&self, broker: &Broker, fragment: &Fragment, offset: Offset) -> Option<Parts> {
        let mut parked = self.parked.lock().expect("no holder of the streams panics");
        let ended = parked.iter().position(|parked| parked.ended_before(fragment, offset));
        // What was read to its end serves nobody that goes on.
        let wish = match ended.and_then(|at| parked.remove(at)) {
            Some(_) => Wish::All,
            None => Wish::Any,
        };
        let places = &broker.shared.places;
        places.take(wish).or_else(|| {
            let is_idle = |parked: &Arc<Parked>| parked.is_parted && Arc::strong_count(parked) == 1;
            let idle = parked.iter().position(is_idle)?;
            drop(parked.remove(idle));
            places.take(wish)
        })
    }

    fn park(&self, stream: Arc<Parked>) {
        let mut parked = self.parked.lock().expect("no holder of the streams panics");
        if parked.len() >= limits::PARKED_STREAMS {
            parked.pop_front();
        }
        parked.push_back(stream);
    }
}

impl Parked {
    fn new(fragment: Fragment, content: Content, offset: Offset, is_parted: bool) -> Self {
        let window = VecDeque::new();
        let stream = Stream { content, window, begin: offset, end: offset, is_failed: false };
        let reach = Mutex::new(Span::at(offset, 0));
        Parked { fragment, stream: tokio::sync::Mutex::new(stream), reach, is_parted }
    }

    /// Whether it was read to its end, at which `fragment` goes on.
    fn ended_before(&self, fragment: &Fragment, offset: Offset) -> bool {
        let reach = *self.reach.lock().expect("no holder of a reach panics");
        let is_before = self.fragment.journal == fragment.journal && self.fragment.end() == offset;
        is_before && reach.end() == offset
    }

    fn reaches(&self, fragment: &Fragment, offset: Offset) -> bool {
        let reach = *self.reach.lock().expect("no holder of a reach panics");
        let farthest = reach.end().checked_add(limits::SKIP_MAX).unwrap_or(Offset::MAX);
        self.fragment.same_content(fragment) && reach.begin() <= offset && offset <= farthest
    }

    /// `None` when the stream is past the offset, or broke.
    async fn read(
        &self,
        served: &Served,
        offset: Offset,
        max: usize,
    ) -> Result<Option<Bytes>, Error> {
        let mut stream = self.stream.lock().await;
        if stream.is_failed || offset < stream.begin {
            return Ok(None);
        }
        let wanted = offset.plus(max as u64).min(self.fragment.end());
        let read = stream.read_to(wanted, offset).await;
        *self.reach.lock().expect("no holder of a reach panics") =
            Span::between(stream.begin, stream.end);
        match read {
            Ok(()) => Ok(Some(stream.copy(offset, max))),
            Err(error) => Err(super::missing(served, error)),
        }
    }
}

impl Stream {
    /// Reads on until `wanted` is in the window, keeping what lies at `from` and after.
    async fn read_to(
        &mut self,
        wanted: Offset,
        from: Offset,
    ) -> Result<(), index::store::StoreError> {
        while self.end < wanted {
            // Set while it is under way: a read that is dropped leaves a chunk behind.
            self.is_failed = true;
            match self.content.next().await {
                Some(Ok(chunk)) => {
                    self.end = self.end.plus(chunk.len() as u64);
                    self.window.push_back(chunk);
                }
                Some(Err(error)) => return Err(error),
                None => break,
            }
            self.is_failed = false;
            self.shorten(from);
        }
        Ok(())
    }

    /// Drops chunks that lie far behind.
    fn shorten(&mut self, from: Offset) {
        while let Some(first) = self.window.front() {
            let next = self.begin.plus(first.len() as u64);
            let is_far = next <= from && self.end.since(next) >= limits::WINDOW;
            if !is_far {
                return;
            }
            self.begin = next;
            self.window.pop_front();
        }
    }

    /// Up to `max` bytes of the window at `offset`, which is in it.
    fn copy(&self, offset: Offset, max: usize) -> Bytes {
        let mut skip = usize::try_from(offset.since(self.begin)).expect("a window is short");
        let mut parts: Vec<Bytes> = Vec::new();
        let mut left = max;
        for chunk in &self.window {
            if skip >= chunk.len() {
                skip -= chunk.len();
                continue;
            }
            let part = chunk.slice(skip..chunk.len().min(skip + left));
            (skip, left) = (0, left - part.len());
            parts.push(part);
            if left == 0 {
                break;
            }
        }
        if parts.len() == 1 {
            return parts.pop().expect("there is one");
        }
        let mut joined = BytesMut::with_capacity(max - left);
        parts.iter().for_each(|part| joined.extend_from_slice(part));
        joined.freeze()
    }
}
