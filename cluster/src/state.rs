//! The key space in memory: what reads see, and what a transaction would make of it. No waiting
//! and no storage in here.

use crate::change::{check, kept_suspend};
use crate::life::free_life;
use crate::name::check_reserved;
use crate::{Change, Entry, Error, Listing, Refused, Templates, nests};
use protocol::{Journal, JournalSpec, Life, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All specs and templates at one revision. `lives` are those of `specs`.
#[derive(Debug)]
pub(crate) struct State {
    pub revision: i64,
    pub templates: Arc<Templates>,
    specs: BTreeMap<String, Arc<Entry>>,
    lives: BTreeSet<Life>,
}

/// Rows to write: an entry to put, or `None` to delete what is there.
pub(crate) type Rows = BTreeMap<String, Option<Arc<Entry>>>;

/// What a transaction comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// A compare failed.
    Conflict(Journal),
    /// Nothing is put and nothing deleted, so the revision stays.
    Nothing,
    /// Rows for the next revision.
    Write { revision: i64, rows: Rows },
}

impl State {
    pub fn new(revision: i64, templates: Templates, entries: Vec<Entry>) -> Self {
        let lives = entries.iter().map(|entry| entry.life).collect();
        let by_name = |entry: Entry| (entry.spec.name.as_str().to_owned(), Arc::new(entry));
        let specs = entries.into_iter().map(by_name).collect();
        State { revision, templates: Arc::new(templates), specs, lives }
    }

    pub fn get(&self, journal: &Journal) -> Option<&Arc<Entry>> {
        self.specs.get(journal.as_str())
    }

    pub fn list(&self, selector: &Selector) -> Listing {
        let is_meant = |entry: &&Arc<Entry>| selector.matches(&entry.spec.labels, &entry.spec.name);
        let entries = match selector.exact_names() {
            // Sorted, as labels of one name are.
            Some(names) => {
                let named = names.into_iter().filter_map(|name| self.specs.get(name));
                named.filter(is_meant).cloned().collect()
            }
            None => self.specs.values().filter(is_meant).cloned().collect(),
        };
        Listing { revision: self.revision, entries }
    }

    pub fn may_create(&self, journal: &Journal) -> Result<(), Refused> {
        check_name(journal, nests(journal, &self.specs).map(|(other, _)| other))
    }

    /// What `changes` would do. `Self::publish` takes the rows once they are durable; no other
    /// transaction may come between.
    pub fn plan(&self, cluster_id: u64, changes: Vec<Change>) -> Result<Plan, Error> {
        check(&changes)?;
        let is_kept = |change: &&Change| {
            let entry = self.get(change.journal());
            change.expect().holds(entry.map(|entry| entry.mod_revision))
        };
        if let Some(change) = changes.iter().find(|change| !is_kept(change)) {
            return Ok(Plan::Conflict(change.journal().clone()));
        }
        let revision = self.revision + 1;
        let rows = self.rows(cluster_id, revision, changes);
        if rows.is_empty() {
            return Ok(Plan::Nothing);
        }
        self.check_created(&rows)?;
        Ok(Plan::Write { revision, rows })
    }

    /// Shows rows that are durable.
    pub fn publish(&mut self, revision: i64, rows: Rows) {
        // Invariant: revisions have no gaps, so a plan made for another state is a bug.
        assert_eq!(revision, self.revision + 1);
        for (name, entry) in rows {
            match entry {
                Some(entry) => {
                    self.lives.insert(entry.life);
                    self.specs.insert(name, entry);
                }
                None => {
                    let old = self.specs.remove(&name).expect("only what is there is deleted");
                    self.lives.remove(&old.life);
                }
            }
        }
        self.revision = revision;
    }

    fn rows(&self, cluster_id: u64, revision: i64, changes: Vec<Change>) -> Rows {
        let mut rows = Rows::new();
        let mut made = BTreeSet::new();
        for change in changes {
            let name = change.journal().as_str().to_owned();
            match (change, self.specs.get(&name)) {
                (Change::Upsert { spec, .. }, Some(old)) => {
                    rows.insert(name, Some(Arc::new(replaced(old, spec, revision))));
                }
                (Change::Upsert { spec, .. }, None) => {
                    let is_taken = |life| self.lives.contains(&life) || made.contains(&life);
                    let entry = created(cluster_id, spec, revision, is_taken);
                    made.insert(entry.life);
                    rows.insert(name, Some(Arc::new(entry)));
                }
                (Change::Delete { .. }, Some(_)) => {
                    rows.insert(name, None);
                }
                (Change::Delete { .. }, None) => {}
            }
        }
        rows
    }

    /// Refuses a new name that would nest once the rows are written. Names that nest already, as
    /// in data of Gazette's, can be changed and deleted.
    fn check_created(&self, rows: &Rows) -> Result<(), Refused> {
        let created = rows.values().flatten().filter(|e| e.create_revision == e.mod_revision);
        for entry in created {
            let journal = &entry.spec.name;
            let is_deleted = |name: &str| matches!(rows.get(name), Some(None));
            let there = nests(journal, &self.specs).map(|(other, _)| other);
            let beside = nests(journal, rows).map(|(other, _)| other);
            let others = there.chain(beside).filter(|other| !is_deleted(other));
            check_name(journal, others)?;
        }
        Ok(())
    }
}

/// A journal that begins at `revision`.
fn created(
    cluster_id: u64,
    spec: JournalSpec,
    revision: i64,
    is_taken: impl Fn(Life) -> bool,
) -> Entry {
    let (nonce, life) = free_life(cluster_id, &spec.name, revision, is_taken);
    Entry { spec, create_revision: revision, mod_revision: revision, life, nonce }
}

/// `spec` in the place of `old`, the same journal.
fn replaced(old: &Entry, mut spec: JournalSpec, revision: i64) -> Entry {
    spec.suspend = kept_suspend(spec.suspend, old.spec.suspend);
    Entry { spec, mod_revision: revision, ..old.clone() }
}

fn check_name<'a>(
    journal: &Journal,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<(), Refused> {
    check_reserved(journal)?;
    match others.next() {
        Some(other) => Err(Refused::Nested { journal: journal.clone(), other: other.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
