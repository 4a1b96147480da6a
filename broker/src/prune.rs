//! Pruning on request: what retention would delete by itself, now and to the last object.
//!
//! Retention looks at the fragments that cover the journal. A prune lists the stores besides, so
//! that smaller fragments and forks below the covered ones go with them (gazette-spec 9.2).

use crate::retain::{Keeps, trim};
use crate::{Broker, Error, Served};
use protocol::{Fragment, Journal, Offset};
use std::sync::Arc;

/// What a prune deleted, or would delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pruned {
    /// Stored fragments whose objects go, ascending.
    pub fragments: Vec<Fragment>,
    /// The first readable offset after it.
    pub first: Offset,
}

impl Broker {
    /// Deletes the stored fragments of a journal that are older than its retention, or lie further
    /// below its head than the bytes that it keeps; with `dry_run` it only says which. Without
    /// either limit it keeps for ever. The fragment that ends highest always stays, and so does
    /// what is not whole below the ones that go.
    ///
    /// Fails where the stores can't be listed, or a mount reads the journal's file directly: its
    /// bytes can't be freed then.
    pub async fn prune(&self, journal: &Journal, dry_run: bool) -> Result<Pruned, Error> {
        let served = self.served(journal).ok_or_else(|| self.not_found(journal))?;
        self.wait_listed(&served).await?;
        check(&served)?;
        let keeps = Keeps::of(self, &served)?;
        if keeps.is_all() {
            return Ok(Pruned { fragments: Vec::new(), first: served.stat().first });
        }
        let covering = keeps.before_first(served.stored().all(), served.replica().persisted());
        let below = covering.last().map_or(Offset::ZERO, Fragment::end);
        let below = below.max(served.replica().trimmed());
        let fragments = self.stored_below(&served, below, keeps).await?;
        if dry_run {
            return Ok(Pruned { fragments, first: served.stat().first.max(below) });
        }
        trim(self, &served, below).await?;
        self.delete_objects(&served, &fragments).await?;
        Ok(Pruned { fragments, first: served.stat().first })
    }

    /// The objects of all stores of a journal that end at `below` or before, and are not kept.
    async fn stored_below(
        &self,
        served: &Served,
        below: Offset,
        keeps: Keeps,
    ) -> Result<Vec<Fragment>, Error> {
        let mut found = self.list_objects(served).await?;
        found.retain(|fragment| fragment.end() <= below && !keeps.has(fragment));
        found.sort_by_key(|fragment| fragment.span);
        Ok(found)
    }
}

/// Refuses while something else has a say in what may go.
fn check(served: &Arc<Served>) -> Result<(), Error> {
    let journal = served.journal().clone();
    if let Some(detail) = served.second_writer() {
        return Err(Error::SecondWriter { journal, detail });
    }
    if served.replica().is_pinned() {
        let detail = "a mount reads its file directly; prune again when it is closed there";
        return Err(Error::NotAllowed { journal, detail });
    }
    Ok(())
}
