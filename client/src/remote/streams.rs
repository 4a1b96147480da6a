//! Reads at any offset, over streams that stay open behind sequential readers.
//!
//! A mount reads a file in pieces. Asking for each would cost a request and forbid reading ahead,
//! so a stream that answered a read waits, with what the broker sends ahead, for the read that
//! goes on where it stopped. Only content is ever taken from such a stream: that the head was
//! reached is old news by then, and is asked anew.

use super::door::Door;
use super::incoming::Next;
use super::{courant, gazette};
use crate::fragments::Fragments;
use crate::fragments::passage::Passage;
use crate::limits::OPEN_STREAMS;
use crate::shelf::Shelf;
use crate::{Error, Read};
use bytes::Bytes;
use protocol::request::{ReadFrom, ReadRequest};
use protocol::{Journal, Life, Span};
use std::sync::Arc;

/// The streams that wait for their next read.
pub(crate) struct Streams {
    shelf: Shelf<Waiting>,
    fragments: Arc<Fragments>,
}

struct Waiting {
    journal: Journal,
    /// The life that was checked when the stream was opened.
    life: Option<Life>,
    passage: Passage,
}

impl Streams {
    /// No streams yet; stored fragments are fetched as `fragments` can.
    pub fn new(fragments: Arc<Fragments>) -> Self {
        Streams { shelf: Shelf::new(OPEN_STREAMS), fragments }
    }

    pub fn fragments(&self) -> &Arc<Fragments> {
        &self.fragments
    }

    /// Bytes at an offset, or none at the head.
    pub async fn read(&self, door: &Arc<Door>, read: Read) -> Result<Bytes, Error> {
        if read.max == 0 {
            return Ok(Bytes::new());
        }
        if let Some(mut waiting) = self.resume(&read)
            && let Ok(Next::Content(bytes)) = waiting.passage.next(read.max).await
        {
            self.shelf.keep(waiting);
            return Ok(bytes);
        }
        self.read_anew(door, read).await
    }

    async fn read_anew(&self, door: &Arc<Door>, read: Read) -> Result<Bytes, Error> {
        let request = ReadRequest::new(read.journal.clone(), ReadFrom::At(read.offset));
        let mut passage = Passage::open(door, &self.fragments, request).await?;
        // After the stream is open: a life that is there before and after was there meanwhile.
        if let Some(life) = read.life {
            check_life(door, &read.journal, life).await?;
        }
        match passage.next(read.max).await? {
            Next::Content(bytes) => {
                self.shelf.keep(Waiting { journal: read.journal, life: read.life, passage });
                Ok(bytes)
            }
            Next::Gap(span) => Err(gap(door, read.journal, span).await),
            Next::End => Ok(Bytes::new()),
        }
    }

    /// Takes out the stream that goes on where the read begins.
    fn resume(&self, read: &Read) -> Option<Waiting> {
        self.shelf.take(|open| {
            open.journal == read.journal
                && open.passage.position() == read.offset
                && (read.life.is_none() || open.life == read.life)
        })
    }
}

async fn check_life(door: &Door, journal: &Journal, meant: Life) -> Result<(), Error> {
    let life = match door.is_courant().await? {
        true => courant::one(door, journal).await?.life,
        false => gazette::life_of(door, journal).await?,
    };
    if life == meant { Ok(()) } else { Err(Error::Deleted(journal.clone())) }
}

/// What bytes that can't be read are: trimmed or lost. Where that can't be asked, its error: what
/// was lost must not be told as trimmed.
async fn gap(door: &Door, journal: Journal, span: Span) -> Error {
    let trimmed = match door.is_courant().await {
        Ok(true) => courant::one(door, &journal).await.map(|stat| stat.trimmed),
        Ok(false) => Ok(span.end()),
        Err(error) => Err(error),
    };
    let trimmed = match trimmed {
        Ok(trimmed) => trimmed,
        Err(error) => return error,
    };
    if trimmed > span.begin() {
        let span = Span::between(span.begin(), trimmed.min(span.end()));
        Error::Trimmed { journal, span }
    } else {
        Error::Lost { journal, span }
    }
}
