//! The key space of a broker that stands alone: one redb file, and all of it in memory.

mod store;

use crate::state::{Plan, Rows, State};
use crate::{
    Backing, Change, Entry, Error, Identity, KeySpace, Listing, Memory, Outcome, Refused, Template,
    Templates,
};
use futures::future::BoxFuture;
use protocol::{Journal, Selector};
use std::panic::resume_unwind;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use store::Store;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;

/// A key space in one file, which no other process may have open.
///
/// A transaction is durable in the file before it is shown. One that fails for want of storage is
/// not shown; whether it is durable is found out when the next transaction reads the file again. A
/// sync that fails ends all writing until the process starts anew.
///
/// The revision is a counter in the file, so it never goes back unless the file does: one restored
/// from an older copy is another data set, and should be given a new identity by starting over.
#[derive(Debug)]
pub struct Embedded {
    shared: Arc<Shared>,
    /// Its queue is the order of transactions.
    writer: Arc<Mutex<Writer>>,
}

/// What reads look at.
#[derive(Debug)]
struct Shared {
    identity: Identity,
    state: RwLock<State>,
    /// Told after the state, so that who wakes at a revision can read it.
    revision: watch::Sender<i64>,
}

#[derive(Debug)]
struct Writer {
    store: Store,
    shared: Arc<Shared>,
}

impl Embedded {
    /// Opens the key space in `backing`, or creates one in an empty file. `entropy` is the chance
    /// that a new one takes its identity from; an existing one keeps its own. Blocks.
    pub fn open(backing: Arc<dyn Backing>, entropy: u64) -> Result<Self, Error> {
        let mut store = Store::new(backing);
        let (identity, state) = store.open(entropy)?;
        let revision = watch::Sender::new(state.revision);
        let shared = Arc::new(Shared { identity, state: RwLock::new(state), revision });
        let writer = Writer { store, shared: shared.clone() };
        Ok(Embedded { shared, writer: Arc::new(Mutex::new(writer)) })
    }

    /// Whether nothing was ever committed to `backing`, so that opening it begins a data set.
    pub fn is_blank(backing: Arc<dyn Backing>) -> std::io::Result<bool> {
        Store::new(backing).is_blank()
    }

    /// A new key space that ends with the process.
    pub fn in_memory(entropy: u64) -> Self {
        Embedded::open(Arc::new(Memory::default()), entropy).expect("memory does not fail")
    }

    /// Runs `step` as the only writer. Once it has begun it ends, whether or not anyone waits, so
    /// the file and the memory never part.
    async fn write<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut writer = self.writer.clone().lock_owned().await;
        // A simulation has one thread, and its order comes from the seed, not from a pool's.
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return step(&mut writer);
        }
        match spawn_blocking(move || step(&mut writer)).await {
            Ok(done) => done,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(Error::Stopping),
            },
        }
    }
}

impl KeySpace for Embedded {
    fn identity(&self) -> Identity {
        self.shared.identity
    }

    fn watch(&self) -> watch::Receiver<i64> {
        self.shared.revision.subscribe()
    }

    fn get(&self, journal: &Journal) -> Option<Arc<Entry>> {
        self.shared.read().get(journal).cloned()
    }

    fn list(&self, selector: &Selector) -> Listing {
        self.shared.read().list(selector)
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.write(move |writer| writer.apply(changes)))
    }

    fn may_create(&self, journal: &Journal) -> Result<(), Refused> {
        self.shared.read().may_create(journal)
    }

    fn templates(&self) -> Arc<Templates> {
        self.shared.read().templates.clone()
    }

    fn put_template(&self, template: Template) -> BoxFuture<'_, Result<i64, Error>> {
        Box::pin(self.write(move |writer| writer.put_template(template)))
    }

    fn remove_template(&self, prefix: String) -> BoxFuture<'_, Result<i64, Error>> {
        Box::pin(self.write(move |writer| writer.remove_template(&prefix)))
    }

    fn image(&self) -> BoxFuture<'_, Result<Vec<u8>, Error>> {
        Box::pin(self.write(|writer| {
            // After a failed write the file may hold what nobody was shown.
            writer.reopen()?;
            writer.store.image()
        }))
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect("no writer panics")
    }

    /// Changes what reads see, then wakes who waits for it.
    fn change(&self, change: impl FnOnce(&mut RwLockWriteGuard<'_, State>)) -> i64 {
        let mut state = self.state.write().expect("no writer panics");
        change(&mut state);
        let revision = state.revision;
        // Under the lock: a read that saw the change finds its revision told.
        self.revision.send_replace(revision);
        revision
    }
}

impl Writer {
    fn apply(&mut self, changes: Vec<Change>) -> Result<Outcome, Error> {
        self.reopen()?;
        let plan = self.shared.read().plan(self.shared.identity.cluster_id, changes)?;
        match plan {
            Plan::Conflict(journal) => Ok(Outcome::Conflict { revision: self.revision(), journal }),
            Plan::Nothing => Ok(Outcome::Applied { revision: self.revision() }),
            Plan::Write { revision, rows } => self.commit(revision, rows),
        }
    }

    fn commit(&mut self, revision: i64, rows: Rows) -> Result<Outcome, Error> {
        self.store.write_specs(revision, &rows)?;
        let revision = self.shared.change(|state| state.publish(revision, rows));
        Ok(Outcome::Applied { revision })
    }

    fn put_template(&mut self, template: Template) -> Result<i64, Error> {
        template.check()?;
        self.reopen()?;
        let revision = self.revision() + 1;
        self.store.write_template(revision, &template.prefix, Some(&template))?;
        Ok(self.show_templates(revision, |templates| templates.put(template)))
    }

    fn remove_template(&mut self, prefix: &str) -> Result<i64, Error> {
        self.reopen()?;
        if self.shared.read().templates.get(prefix).is_none() {
            return Ok(self.revision());
        }
        let revision = self.revision() + 1;
        self.store.write_template(revision, prefix, None)?;
        Ok(self.show_templates(revision, |templates| templates.remove(prefix)))
    }

    fn show_templates(&self, revision: i64, change: impl FnOnce(&mut Templates)) -> i64 {
        self.shared.change(|state| {
            change(Arc::make_mut(&mut state.templates));
            state.revision = revision;
        })
    }

    fn revision(&self) -> i64 {
        self.shared.read().revision
    }

    /// Reads the file again after a write failed, and shows what turns out to be in it.
    fn reopen(&mut self) -> Result<(), Error> {
        if self.store.is_open() {
            return Ok(());
        }
        let (identity, state) = self.store.open(self.shared.identity.cluster_id)?;
        let shown = self.revision();
        if identity != self.shared.identity || state.revision < shown {
            self.store.close();
            return Err(Error::WentBack { shown, stored: state.revision });
        }
        if state.revision > shown {
            tracing::warn!(shown, stored = state.revision, "a failed transaction was durable");
            self.shared.change(|shown| **shown = state);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
