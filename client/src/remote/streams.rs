//! Reads at any offset, over streams that stay open behind sequential readers.
//!
//! A mount reads a file in pieces. Asking for each would cost a request and forbid reading ahead,
//! so a stream that answered a read waits, with what the broker sends ahead, for the read that
//! goes on where it stopped. Only content is ever taken from such a stream: that the head was
//! reached is old news by then, and is asked anew.

use super::door::Door;
use super::incoming::{Incoming, Next};
use super::{courant, gazette};
use crate::limits::{OPEN_STREAMS, STREAM_IDLE};
use crate::{Error, Read};
use bytes::Bytes;
use protocol::request::{ReadFrom, ReadRequest};
use protocol::{Journal, Life, Span};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::time::Instant;

/// The streams that wait for their next read.
#[derive(Default)]
pub(crate) struct Streams {
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    /// The longest waiting first. Bounded by number and by time.
    waiting: Vec<Waiting>,
    /// A task takes out those that waited too long.
    is_swept: bool,
}

struct Waiting {
    since: Instant,
    journal: Journal,
    /// The life that was checked when the stream was opened.
    life: Option<Life>,
    incoming: Incoming,
}

impl Streams {
    /// Bytes at an offset, or none at the head.
    pub async fn read(&self, door: &Door, read: Read) -> Result<Bytes, Error> {
        if read.max == 0 {
            return Ok(Bytes::new());
        }
        if let Some(mut waiting) = self.resume(&read)
            && let Ok(Next::Content(bytes)) = waiting.incoming.next(read.max).await
        {
            self.keep(waiting);
            return Ok(bytes);
        }
        self.read_anew(door, read).await
    }

    async fn read_anew(&self, door: &Door, read: Read) -> Result<Bytes, Error> {
        let from = ReadFrom::At(read.offset);
        let mut incoming =
            Incoming::open(door, ReadRequest::new(read.journal.clone(), from)).await?;
        // After the stream is open: a life that is there before and after was there meanwhile.
        if let Some(life) = read.life {
            check_life(door, &read.journal, life).await?;
        }
        match incoming.next(read.max).await? {
            Next::Content(bytes) => {
                let since = Instant::now();
                self.keep(Waiting { since, journal: read.journal, life: read.life, incoming });
                Ok(bytes)
            }
            Next::Gap(span) => Err(gap(door, read.journal, span).await),
            Next::End => Ok(Bytes::new()),
        }
    }

    /// Takes out the stream that goes on where the read begins.
    fn resume(&self, read: &Read) -> Option<Waiting> {
        let mut shelf = locked(&self.shelf);
        let fits = |open: &Waiting| {
            open.journal == read.journal
                && open.incoming.position() == read.offset
                && (read.life.is_none() || open.life == read.life)
        };
        let at = shelf.waiting.iter().rposition(fits)?;
        Some(shelf.waiting.remove(at))
    }

    fn keep(&self, mut open: Waiting) {
        open.since = Instant::now();
        let mut shelf = locked(&self.shelf);
        if shelf.waiting.len() >= OPEN_STREAMS {
            shelf.waiting.remove(0);
        }
        shelf.waiting.push(open);
        if !std::mem::replace(&mut shelf.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.shelf)));
        }
    }
}

fn locked(shelf: &Mutex<Shelf>) -> MutexGuard<'_, Shelf> {
    shelf.lock().expect("no holder panics")
}

/// Closes streams that nobody came back for, until there are none.
async fn sweep(shelf: Weak<Mutex<Shelf>>) {
    loop {
        tokio::time::sleep(STREAM_IDLE).await;
        let Some(shelf) = shelf.upgrade() else { return };
        let mut shelf = locked(&shelf);
        shelf.waiting.retain(|open| open.since.elapsed() < STREAM_IDLE);
        if shelf.waiting.is_empty() {
            shelf.is_swept = false;
            return;
        }
    }
}

async fn check_life(door: &Door, journal: &Journal, meant: Life) -> Result<(), Error> {
    let life = match door.is_courant().await? {
        true => courant::one(door, journal).await?.life,
        false => gazette::life_of(door, journal).await?,
    };
    if life == meant { Ok(()) } else { Err(Error::Deleted(journal.clone())) }
}

/// What bytes that can't be read are: trimmed below the first one that can, else lost.
async fn gap(door: &Door, journal: Journal, span: Span) -> Error {
    let first = match door.is_courant().await {
        Ok(true) => courant::one(door, &journal).await.map_or(span.end(), |stat| stat.first),
        _ => span.end(),
    };
    if first > span.begin() {
        let span = Span::between(span.begin(), first.min(span.end()));
        Error::Trimmed { journal, span }
    } else {
        Error::Lost { journal, span }
    }
}
