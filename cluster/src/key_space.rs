//! The trait of the key space: what brokers ask of it, whoever keeps it.

use crate::{Change, Error, Outcome, Refused, Template, Templates};
use futures::future::BoxFuture;
use protocol::{Etcd, Journal, JournalSpec, Life, Selector};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::watch;

/// The specs of a data set, and the revision they are at.
///
/// Reads answer at once, from memory. What a read shows is durable, and every read that begins
/// after a revision was seen shows that revision or a later one.
///
/// Over etcd the trait grows by what a key space of several brokers also holds: the members, each
/// under its lease, and the assignments of journals to them (gazette-spec 5.1). Both count in the
/// same revision, so nothing here changes meaning.
pub trait KeySpace: Send + Sync + Debug {
    /// Which data set this is, for the header of every answer.
    fn identity(&self) -> Identity;

    /// The revision: positive, one higher after each transaction that changed something, and never
    /// lower, not after a restart either. A receiver that is late sees only the latest.
    fn watch(&self) -> watch::Receiver<i64>;

    fn get(&self, journal: &Journal) -> Option<Arc<Entry>>;

    /// The journals that are meant, by name, all as of one revision.
    fn list(&self, selector: &Selector) -> Listing;

    /// Makes all changes in one transaction, or none. When it returns they are durable and every
    /// read shows them.
    ///
    /// Fails on a name that may not be created ([`KeySpace::may_create`]) and on requests that are
    /// wrong in themselves. A transaction goes on when the future is dropped after it has begun.
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Refuses the name of a journal that does not exist: one with a reserved part, and one that
    /// nests with another journal's. [`KeySpace::apply`] asks the same again in its transaction.
    fn may_create(&self, journal: &Journal) -> Result<(), Refused>;

    /// The templates of this moment.
    fn templates(&self) -> Arc<Templates>;

    /// Adds a template, or replaces the one of its prefix; returns the revision.
    fn put_template(&self, template: Template) -> BoxFuture<'_, Result<i64, Error>>;

    /// Removes the template of a prefix, if there is one; returns the revision. Without a template
    /// of its own the empty prefix has the built-in one.
    fn remove_template(&self, prefix: String) -> BoxFuture<'_, Result<i64, Error>>;

    /// A copy of the file in which it lies, between two transactions. Opened anew it is this key
    /// space, at this revision.
    fn image(&self) -> BoxFuture<'_, Result<Vec<u8>, Error>>;

    fn revision(&self) -> i64 {
        *self.watch().borrow()
    }

    /// The state for the header of an answer that read the key space now.
    fn etcd(&self) -> Etcd {
        self.identity().at(self.revision())
    }

    /// Returns the revision once it is `revision` or later. There is no limit to the wait but the
    /// caller's: a revision that nobody has made may never come (gazette-spec 1.6).
    fn wait_for(&self, revision: i64) -> BoxFuture<'static, Result<i64, Error>> {
        let mut seen = self.watch();
        Box::pin(async move {
            let reached = seen.wait_for(|at| *at >= revision).await;
            reached.map(|at| *at).map_err(|_| Error::Stopping)
        })
    }

    /// The spec of a new journal by the template of its name, or why the name is refused.
    fn propose(&self, journal: &Journal) -> Result<JournalSpec, Refused> {
        self.may_create(journal)?;
        self.templates().spec_for(journal)
    }
}

/// Which key space answers. Go clients refuse a header in which one of these is zero, and peers
/// refuse another cluster (gazette-spec 1.4, 5.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Names the data set; made by chance when it is created.
    pub cluster_id: u64,
    pub member_id: u64,
    pub raft_term: u64,
}

impl Identity {
    /// The identity with a revision, as a header carries it.
    pub fn at(self, revision: i64) -> Etcd {
        let Identity { cluster_id, member_id, raft_term } = self;
        Etcd { cluster_id, member_id, revision, raft_term }
    }
}

/// A journal's spec and when it came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub spec: JournalSpec,
    /// The revision of the transaction that created the journal.
    pub create_revision: i64,
    /// The revision of the last transaction that put the spec.
    pub mod_revision: i64,
    /// No other journal of the key space has it.
    pub life: Life,
    /// The fourth input of [`crate::life()`].
    pub nonce: u32,
}

/// The journals a selector means, in name order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub revision: i64,
    pub entries: Vec<Arc<Entry>>,
}
