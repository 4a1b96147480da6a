//! Appending once to a broker that does not know writers, as Gazette's: at a known offset.
//!
//! An append that is allowed at one offset only happens once, however often it is asked for. Where
//! no answer came and the journal goes on beyond that offset, what lies there tells whether the
//! append was made. Two writers of equal content at that one moment can't be told apart.

use crate::retry::{Pauses, is_worth_a_retry};
use crate::{Append, Appended, Error, Journals, Read, Staged};
use bytes::Bytes;
use futures::TryStreamExt;
use protocol::{Journal, Offset, Span};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of one read when it is looked what lies at an offset.
const LOOK_LEN: usize = 256 << 10;

/// A writer that knows where its journals end.
pub struct Anchored {
    journals: Arc<dyn Journals>,
    /// Where the journals ended when this last knew.
    heads: BTreeMap<Journal, Offset>,
    pauses: Pauses,
    patience: Duration,
}

impl Anchored {
    /// `patience` is how long an append may take; `seed` is of the pauses between attempts.
    pub fn new(journals: Arc<dyn Journals>, patience: Duration, seed: u64) -> Self {
        Anchored { journals, heads: BTreeMap::new(), pauses: Pauses::new(seed), patience }
    }

    /// Appends once, at the head. Others that append meanwhile move it, and this goes on behind
    /// them. `Unknown` where the time is over and it could not be told.
    pub async fn append(&mut self, append: Append) -> Result<Appended, Error> {
        let limit = self.patience;
        let journal = append.journal.clone();
        let mut last = Error::Unknown;
        let done = timeout(limit, self.attempts(append, &mut last)).await;
        let Ok(done) = done else {
            // What is known of the head may be wrong after an append that was given up.
            self.heads.remove(&journal);
            return Err(last);
        };
        self.pauses.reset();
        done
    }

    async fn attempts(&mut self, append: Append, last: &mut Error) -> Result<Appended, Error> {
        let journal = append.journal.clone();
        // An attempt at the known head got no answer: it may have been made.
        let mut is_unanswered = false;
        loop {
            let error = match self.attempt(&append, is_unanswered).await {
                Ok(Some(appended)) => {
                    self.heads.insert(journal, appended.span.end());
                    return Ok(appended);
                }
                // The head was another one, and nothing was made.
                Ok(None) => {
                    is_unanswered = false;
                    continue;
                }
                Err(error) => error,
            };
            is_unanswered |= matches!(error, Error::Unknown);
            if !is_unanswered && !is_worth_a_retry(&error) {
                return Err(error);
            }
            tracing::debug!(%error, %journal, "an append is tried again");
            *last = if is_unanswered { Error::Unknown } else { error };
            self.pauses.pause().await;
        }
    }

    /// One attempt at the known head; `None` where the head was another one.
    async fn attempt(
        &mut self,
        append: &Append,
        is_unanswered: bool,
    ) -> Result<Option<Appended>, Error> {
        let journal = &append.journal;
        let head = match self.heads.get(journal) {
            Some(head) => *head,
            None => self.journals.stat(journal).await?.head,
        };
        self.heads.insert(journal.clone(), head);
        let asked = Append { offset: Some(head), ..append.clone() };
        let moved = match self.journals.append(asked).await {
            Err(Error::WrongOffset { head, .. }) => head,
            answer => return answer.map(Some),
        };
        let span = Span::at(head, append.content_len());
        if is_unanswered && moved >= span.end() && self.holds(append, span).await? {
            let life = self.journals.stat(journal).await?.life;
            return Ok(Some(Appended { span, life, repeated: true }));
        }
        self.heads.insert(journal.clone(), moved);
        Ok(None)
    }

    /// Whether the journal has the content of an append at a span of its length.
    async fn holds(&self, append: &Append, span: Span) -> Result<bool, Error> {
        let mut offset = span.begin();
        let mut rest = append.staged.iter().map(Staged::pieces).next();
        let mut next = Some(append.content.clone());
        while let Some(wanted) = next {
            if !self.has_at(append, offset, wanted.clone()).await? {
                return Ok(false);
            }
            offset = offset.plus(wanted.len() as u64);
            next = match &mut rest {
                Some(pieces) => {
                    pieces.try_next().await.map_err(|why| Error::Io(why.to_string()))?
                }
                None => None,
            };
        }
        Ok(true)
    }

    async fn has_at(
        &self,
        append: &Append,
        mut offset: Offset,
        mut wanted: Bytes,
    ) -> Result<bool, Error> {
        while !wanted.is_empty() {
            let (journal, life) = (append.journal.clone(), append.life);
            let max = wanted.len().min(LOOK_LEN);
            let found = self.journals.read(Read { journal, life, offset, max }).await?;
            if found.is_empty() || wanted.split_to(found.len()) != found {
                return Ok(false);
            }
            offset = offset.plus(found.len() as u64);
        }
        Ok(true)
    }
}
