//! Reading a journal from an offset on, over as many connections as it takes.

use crate::fragments::passage::Passage;
use crate::remote::Next;
use crate::retry::{Pauses, is_worth_a_retry};
use crate::{Error, Remote};
use bytes::Bytes;
use protocol::request::{ReadFrom, ReadRequest};
use protocol::{Journal, Offset, Span};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of one piece at most.
const PIECE_MAX: usize = 1 << 20;

/// What a reader meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes at an offset, at least one.
    Content(Offset, Bytes),
    /// Bytes that can't be read any more. The reader goes on behind them.
    Gap(Span),
}

/// A position in a journal that only goes forward. Each byte comes once.
pub struct Reader {
    remote: Arc<Remote>,
    journal: Journal,
    next: ReadFrom,
    end: Option<Offset>,
    /// In Unix seconds; 0 once it is known where that is.
    begin_mod_time: i64,
    block: bool,
    patience: Duration,
    pauses: Pauses,
    incoming: Option<Passage>,
}

impl Reader {
    /// Reads to the head as it is when it is reached.
    pub fn new(remote: Arc<Remote>, journal: Journal, from: ReadFrom, seed: u64) -> Self {
        Reader {
            remote,
            journal,
            next: from,
            end: None,
            begin_mod_time: 0,
            block: false,
            patience: Duration::from_secs(30),
            pauses: Pauses::new(seed),
            incoming: None,
        }
    }

    /// Waits at the head for more, for ever.
    #[must_use]
    pub fn blocking(self, block: bool) -> Self {
        Reader { block, ..self }
    }

    /// Leaves out what was stored before a time, in Unix seconds: begins at the first fragment that
    /// was stored later, or that is in no store yet.
    #[must_use]
    pub fn stored_since(self, begin_mod_time: i64) -> Self {
        Reader { begin_mod_time, ..self }
    }

    /// Ends before an offset.
    #[must_use]
    pub fn until(self, end: Option<Offset>) -> Self {
        Reader { end, ..self }
    }

    /// How long to ask again while the broker is away.
    #[must_use]
    pub fn patient_for(self, patience: Duration) -> Self {
        Reader { patience, ..self }
    }

    /// The offset of the next byte, once it is known.
    pub fn position(&self) -> Option<Offset> {
        match self.next {
            ReadFrom::At(offset) => Some(offset),
            ReadFrom::Head => None,
        }
    }

    /// Whether the last piece ended where an append ends. Content of several journals that changes
    /// over at such places only does not tear appends.
    pub fn is_whole(&self) -> bool {
        self.incoming.as_ref().is_none_or(Passage::is_whole)
    }

    /// The next piece; `None` at the end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Piece>, Error> {
        let mut failing_since = None;
        loop {
            if self.is_at_end() {
                return Ok(None);
            }
            let error = match self.attempt().await {
                Ok(Some(piece)) => {
                    self.pauses.reset();
                    return Ok(Some(piece));
                }
                Ok(None) if !self.block => return Ok(None),
                // A broker that stops ends blocked reads: go on with the one that comes after it.
                Ok(None) => Error::Later(format!("{}: the read was ended", self.journal)),
                Err(error) => error,
            };
            self.incoming = None;
            let since = *failing_since.get_or_insert_with(Instant::now);
            if !is_worth_a_retry(&error) || since.elapsed() >= self.patience {
                return Err(error);
            }
            tracing::debug!(%error, journal = %self.journal, "reading is tried again");
            self.pauses.pause().await;
        }
    }

    fn is_at_end(&self) -> bool {
        matches!((self.next, self.end), (ReadFrom::At(next), Some(end)) if next >= end)
    }

    async fn attempt(&mut self) -> Result<Option<Piece>, Error> {
        if self.incoming.is_none() {
            let request = ReadRequest {
                block: self.block,
                end: self.end,
                begin_mod_time: self.begin_mod_time,
                ..ReadRequest::new(self.journal.clone(), self.next)
            };
            let incoming =
                Passage::open(self.remote.door(), self.remote.fragments_themselves(), request)
                    .await?;
            self.next = ReadFrom::At(incoming.position());
            self.begin_mod_time = 0;
            self.incoming = Some(incoming);
        }
        let incoming = self.incoming.as_mut().expect("opened above");
        let begin = incoming.position();
        let next = incoming.next(PIECE_MAX).await?;
        self.next = ReadFrom::At(incoming.position());
        Ok(match next {
            Next::Content(bytes) => Some(Piece::Content(begin, bytes)),
            Next::Gap(span) => Some(Piece::Gap(span)),
            Next::End => None,
        })
    }
}
