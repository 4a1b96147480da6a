//! Committing what waits: when its line is complete, at fsync, and whoever else asks for it.
//!
//! A draft is sealed before its append is asked for, and is opened again only when it is known that
//! the append did not happen. So it happens once, whoever asks for it again, and however often.

use crate::closing;
use crate::nodes::Node;
use crate::patience::{appending, left, may_have_happened};
use crate::staging::{Draft, Pen};
use crate::{Error, Filesystem};
use bytes::Bytes;
use client::{Anchored, Append, Appended, Durability, Error as Failure};
use protocol::{Journal, Life};

impl Filesystem {
    /// Finds out what became of an append that had no answer, before anything else is written.
    pub(crate) async fn settle_draft(&self, pen: &mut Pen, node: &Node) -> Result<(), Error> {
        match pen.waiting() {
            Some(draft) if draft.is_sealed() => self.commit(pen, node).await,
            _ => Ok(()),
        }
    }

    /// Appends what waits. After an error it waits on, but for a write that was not acknowledged.
    /// What a failed write has spoiled is never committed.
    pub(crate) async fn commit(&self, pen: &mut Pen, node: &Node) -> Result<(), Error> {
        if let Some(error) = &pen.spoiled {
            return Err(error.clone());
        }
        let Some(draft) = pen.waiting() else { return Ok(()) };
        let shown = match self.writable(node, None).await {
            Ok(shown) => shown,
            Err(error) => {
                if !draft.is_sealed() {
                    draft.revert();
                }
                return Err(error);
            }
        };
        match self.send(draft, shown.journal(), shown.life()).await {
            Ok(appended) => self.acknowledge(&shown, appended).await,
            Err(error) => {
                if !self.journals.knows_writers() && draft.is_sealed() {
                    self.give_up(pen);
                }
                Err(error)
            }
        }
    }

    /// Sets aside what may have been appended, where asking again could append it twice.
    fn give_up(&self, pen: &mut Pen) {
        if let (Some(staging), Some(draft)) = (&self.staging, pen.take()) {
            closing::aside(staging, draft, closing::MAY_BE_THERE);
        }
    }

    /// Has the content of a draft appended to a life of its journal.
    pub(crate) async fn send(
        &self,
        draft: &mut Draft,
        journal: &Journal,
        life: Life,
    ) -> Result<Appended, Error> {
        if !draft.is_sealed() || draft.header().life.is_none() {
            draft.seal_for(journal, life)?;
        }
        loop {
            let header = draft.header();
            let durability =
                if header.is_disk { Durability::Disk } else { self.options.durability };
            let append = Append {
                life: Some(header.life.unwrap_or(life)),
                staged: Some(draft.staged()),
                durability: Some(durability),
                writer: Some(header.writer),
                rate_wait: Some(self.options.rate_wait()),
                ..Append::new(header.journal.clone(), Bytes::new())
            };
            match self.append_once(append, draft.is_doubtful).await {
                // A repetition is answered with what is there: this is no repetition of that. The
                // sequence rises, so this ends.
                Ok(there) if there.span.len() != draft.len() => {
                    tracing::error!(%journal, span = %there.span, "it is under the next sequence");
                    draft.take_next_sequence()?;
                }
                Ok(appended) => {
                    draft.done();
                    return Ok(appended);
                }
                Err(error) => {
                    draft.is_doubtful = may_have_happened(&error);
                    if !draft.is_doubtful {
                        draft.revert();
                    }
                    return Err(crate::write::refused_append(error, None));
                }
            }
        }
    }

    /// Appends once, however often that takes.
    async fn append_once(&self, append: Append, is_doubtful: bool) -> Result<Appended, Failure> {
        let patience = left(self.options.write_timeout);
        if self.journals.knows_writers() {
            let ask = || self.journals.append(append.clone());
            return appending(patience, is_doubtful, ask).await;
        }
        let seed = append.writer.map_or(0, |writer| u128::from_be_bytes(writer.id) as u64);
        Anchored::new(self.journals.clone(), patience, seed).append(append).await
    }
}
