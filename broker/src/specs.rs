//! Applying specs, creating and deleting journals: key space and data directory kept in step.
//!
//! The key space changes first and decides; the data directory follows. A stop between the two is
//! made good when the broker is opened again: a spec without local files gets some, and local files
//! without a spec are set aside and named.

use crate::stored::refresh;
use crate::{Broker, Error, Served, limits, persist};
use cluster::{Change, Entry, Expect, Outcome};
use index::Turn;
use index::blocking::off_thread;
use protocol::{Fragment, Journal};
use std::sync::Arc;
use tokio::time::timeout;

/// What a deletion took, or would take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Stored fragments whose objects were deleted. Without purging there are none.
    pub fragments: Vec<Fragment>,
}

/// What of a journal goes with its spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// Stored fragments stay, and local bytes are stored first.
    Keep,
    /// Everything goes.
    Objects,
}

impl Broker {
    /// Makes all changes in one transaction, or none. When it answers, journals that were created
    /// take appends, and those that were deleted are gone.
    ///
    /// Content of a deleted journal that no store has is stored first; while that can't be done
    /// the deletion is refused with `Unpersisted`.
    pub async fn apply(&self, changes: Vec<Change>) -> Result<Outcome, Error> {
        self.changing(|broker| async move { broker.apply_in(changes, Purge::Keep).await }).await
    }

    /// Creates a journal by the template of its name. Finding it there is success; the answer says
    /// whether it was created.
    pub async fn create(&self, journal: &Journal) -> Result<(Arc<Served>, bool), Error> {
        if let Some(served) = self.served(journal) {
            return Ok((served, false));
        }
        let journal = journal.clone();
        self.changing(|broker| async move { broker.create_in(&journal).await }).await
    }

    /// Deletes a journal that was last changed as `expect` says.
    pub async fn delete(
        &self,
        journal: &Journal,
        expect: Expect,
        purge: Purge,
    ) -> Result<Deleted, Error> {
        let journal = journal.clone();
        self.changing(|broker| async move { broker.delete_in(journal, expect, purge).await }).await
    }

    /// What [`Broker::delete`] with [`Purge::Objects`] would delete at this moment.
    pub async fn would_purge(&self, journal: &Journal) -> Result<Deleted, Error> {
        let served = self.served(journal);
        let served = served.ok_or_else(|| self.not_found(journal))?;
        Ok(Deleted { fragments: self.list_objects(&served).await? })
    }

    /// Whether [`Broker::create`] would take the name.
    pub fn may_create(&self, journal: &Journal) -> Result<(), cluster::Refused> {
        self.shared.keys.propose(journal).map(drop)
    }

    pub(crate) fn not_found(&self, journal: &Journal) -> Error {
        let status = protocol::Status::JournalNotFound;
        Error::Unresolved { journal: journal.clone(), status }
    }

    /// Runs one change at a time, and to its end, whether or not anyone waits for it.
    async fn changing<T, F>(&self, change: impl FnOnce(Broker) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        if self.is_closing() {
            return Err(Error::Closing);
        }
        let broker = self.clone();
        let change = change(self.clone());
        let task = tokio::spawn(async move {
            let _only = broker.shared.changing.lock().await;
            change.await
        });
        match task.await {
            Ok(done) => done,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => Err(Error::Closing),
            },
        }
    }

    async fn create_in(&self, journal: &Journal) -> Result<(Arc<Served>, bool), Error> {
        if let Some(served) = self.served(journal) {
            return Ok((served, false));
        }
        let spec = self.shared.keys.propose(journal).map_err(cluster::Error::Refused)?;
        let upsert = Change::Upsert { spec, expect: Expect::Absent };
        self.apply_in(vec![upsert], Purge::Keep).await?;
        let served = self.served(journal).ok_or(Error::Deleted(journal.clone()))?;
        // The first append needs it. A store that is down is the business of that append.
        let listing = refresh(&served, &self.shared.stores, self.spread(served.life()));
        let listed = timeout(limits::LISTING_WAIT, listing).await;
        let _ = served.stored().wait_listed(&served).await;
        if let Ok(Err(error)) = listed {
            tracing::warn!(%journal, %error, "the stores of a new journal can't be listed");
        }
        Ok((served, true))
    }

    async fn delete_in(
        &self,
        journal: Journal,
        expect: Expect,
        purge: Purge,
    ) -> Result<Deleted, Error> {
        let served = self.served(&journal).ok_or_else(|| self.not_found(&journal))?;
        if purge == Purge::Objects {
            // A store that can't be listed can't be purged: nothing is deleted then.
            self.list_objects(&served).await?;
        }
        let delete = Change::Delete { journal: journal.clone(), expect };
        if let Outcome::Conflict { revision, journal } = self.apply_in(vec![delete], purge).await? {
            return Err(Error::Conflict { journal, revision });
        }
        match purge {
            Purge::Keep => Ok(Deleted::default()),
            Purge::Objects => {
                let fragments = self.list_objects(&served).await?;
                self.delete_objects(&served, &fragments).await?;
                Ok(Deleted { fragments })
            }
        }
    }

    async fn apply_in(&self, changes: Vec<Change>, purge: Purge) -> Result<Outcome, Error> {
        for change in &changes {
            if let Change::Upsert { spec, .. } = change {
                spec.check_bytes()?;
            }
        }
        let (mut turns, mut leaving) = (Vec::new(), Vec::new());
        let mut journals = Vec::new();
        // Revisions only grow, so what does not hold now never will: nothing is deleted then.
        let may_hold = changes.iter().all(|change| self.holds(change));
        for change in &changes {
            journals.push(change.journal().clone());
            let is_delete = may_hold && matches!(change, Change::Delete { .. });
            if let Some(served) = self.served(change.journal()).filter(|_| is_delete) {
                turns.push(self.quiet(&served, purge).await?);
                leaving.push(served);
            }
        }
        let outcome = self.shared.keys.apply(changes).await?;
        if let Outcome::Applied { .. } = outcome {
            // Not before: a deletion that failed must leave what is stored from then on.
            let purged = leaving.iter().filter(|_| purge == Purge::Objects);
            purged.for_each(|served| served.set_purged());
            let mut has_census = false;
            for journal in &journals {
                has_census |= self.follow(journal).await?;
            }
            if has_census {
                self.shared.census.send_modify(|census| *census += 1);
            }
        }
        Ok(outcome)
    }

    fn holds(&self, change: &Change) -> bool {
        let entry = self.shared.keys.get(change.journal());
        change.expect().holds(entry.map(|entry| entry.mod_revision))
    }

    /// Lets nobody append any more, and has every byte stored that shall be kept.
    async fn quiet(&self, served: &Arc<Served>, purge: Purge) -> Result<Turn, Error> {
        let mut turn = served.replica().turn().await;
        let has_store = !served.entry().spec.fragment.stores.is_empty();
        match purge {
            Purge::Keep if has_store => persist::flush(self, served, &mut turn).await?,
            Purge::Keep | Purge::Objects => {}
        }
        Ok(turn)
    }

    /// Brings one journal to what the key space says of it. Whether one was created or deleted.
    async fn follow(&self, journal: &Journal) -> Result<bool, Error> {
        let entry = self.shared.keys.get(journal);
        let served = self.served(journal);
        match (entry, served) {
            (None, None) => Ok(false),
            (Some(entry), Some(served)) if entry.life == served.life() => {
                served.set_entry(entry);
                Ok(false)
            }
            (Some(entry), None) => self.serve(entry).map(|()| true),
            (entry, Some(served)) => {
                self.retire(&served).await;
                entry.map_or(Ok(()), |entry| self.serve(entry))?;
                Ok(true)
            }
        }
    }

    /// Begins to serve a journal, with the local files of its life or with new ones.
    pub(crate) fn serve(&self, entry: Arc<Entry>) -> Result<(), Error> {
        let replica = match self.shared.data.replica(entry.life) {
            Some(replica) => replica,
            None => self.shared.data.create(entry.life, &entry.spec.name)?,
        };
        let journal = entry.spec.name.clone();
        let served = Arc::new(Served::new(entry, replica));
        self.served_mut().insert(journal, served);
        self.shared.listings.look();
        Ok(())
    }

    async fn retire(&self, served: &Arc<Served>) {
        self.served_mut().remove(served.journal());
        let (data, life) = (self.shared.data.clone(), served.life());
        if let Err(error) = off_thread(move || data.delete(life)).await {
            let journal = served.journal();
            tracing::error!(%journal, %error, "files of a deleted journal stay");
        }
    }

    /// Puts every byte into the stores, as far as journals have any: for a stop after which the
    /// local files are not needed.
    pub async fn flush(&self) -> Result<(), Error> {
        for served in self.all_served() {
            drop(self.quiet(&served, Purge::Keep).await?);
        }
        Ok(())
    }

    /// The objects of a journal in all of its stores, whether they cover it or not.
    pub(crate) async fn list_objects(&self, served: &Served) -> Result<Vec<Fragment>, Error> {
        let mut found = Vec::new();
        for url in &served.entry().spec.fragment.stores {
            found.extend(self.shared.stores.get(url)?.list(served.journal()).await?);
        }
        Ok(found)
    }

    /// Deletes objects of a journal, in this order. Its index has them no longer.
    pub(crate) async fn delete_objects(
        &self,
        served: &Served,
        objects: &[Fragment],
    ) -> Result<(), Error> {
        let _storing = self.shared.storing.read().await;
        for object in objects {
            self.shared.stores.get(&object.backing_store)?.delete(object).await?;
            served.stored().remove(object.span);
        }
        Ok(())
    }
}
