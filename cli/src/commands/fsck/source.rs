//! What is checked: the journals of a store's listing, or those of a broker.

use crate::Error;
use client::audit::{self, Finding};
use client::naming::{self, Named};
use client::{Fragments, Postfix, Remote};
use index::store::{Store, StoreError};
use protocol::request::FragmentsRequest;
use protocol::response::{ListedFragment, ListedJournal};
use protocol::{Fragment, Journal, LabelSet, Offset, Selector, Span};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long URLs are signed for: a journal's fragments are listed just before they are read.
const URL_TTL: Duration = Duration::from_secs(6 * 60 * 60);

/// Where journals and their fragments come from.
pub enum Source {
    Store { url: String, named: Named },
    Broker(Box<Broker>),
}

/// A broker, and as much of its stores as can be seen from here.
pub struct Broker {
    remote: Remote,
    specs: BTreeMap<Journal, ListedJournal>,
    /// All journals, selected or not: what is nested in another is no part of it.
    all: BTreeMap<Journal, ()>,
    /// By URL, those that can be listed.
    stores: BTreeMap<String, Store>,
    names: Vec<Finding>,
}

/// One journal, as it is checked.
#[derive(Debug)]
pub struct Subject {
    pub journal: Journal,
    /// Fragments in stores.
    pub listed: Vec<ListedFragment>,
    /// Bytes that only brokers have, which are no gap.
    local: Vec<Fragment>,
    lost: Vec<Span>,
}

impl Subject {
    pub fn gaps(&self) -> Vec<Finding> {
        let stored = self.listed.iter().map(|listed| listed.fragment.clone());
        let all: Vec<Fragment> = stored.chain(self.local.iter().cloned()).collect();
        audit::gaps(&self.journal, &all, &self.lost)
    }
}

impl Source {
    /// The journals that a store's listing shows.
    pub async fn of_store(
        store: &Store,
        postfix: &Postfix,
        selector: &Selector,
    ) -> Result<Source, Error> {
        let objects = store.survey().await.map_err(refused)?;
        let mut named = naming::sort(store.url(), &objects, postfix);
        let selector = selector.clone().without_legacy_prefix();
        let selects = |journal: &Journal| selector.matches(&LabelSet::default(), journal);
        named.journals.retain(|journal, _| selects(journal));
        if selector != Selector::default() {
            named.strange.retain(|strange| strange.journal.as_ref().is_some_and(selects));
        }
        Ok(Source::Store { url: store.url().to_owned(), named })
    }

    /// The journals of a broker that match.
    pub async fn of_broker(
        remote: Remote,
        ways: Arc<Fragments>,
        selector: &Selector,
    ) -> Result<Source, Error> {
        let listed = remote.list_specs(Selector::default()).await?;
        let all = listed.iter().map(|listed| (listed.spec.name.clone(), ())).collect();
        let selected = remote.list_specs(selector.clone()).await?;
        let specs: BTreeMap<Journal, ListedJournal> =
            selected.into_iter().map(|listed| (listed.spec.name.clone(), listed)).collect();
        let (stores, names) = (BTreeMap::new(), Vec::new());
        let mut broker = Broker { remote, specs, all, stores, names };
        broker.look_at_stores(&ways).await;
        Ok(Source::Broker(Box::new(broker)))
    }

    /// What is checked, for people.
    pub fn name(&self) -> String {
        match self {
            Source::Store { url, .. } => format!("the store {url}"),
            Source::Broker(broker) => {
                format!("the storage of the broker at {}", broker.remote.url())
            }
        }
    }

    /// Names that are no fragment's.
    pub fn names(&self) -> Vec<Finding> {
        match self {
            Source::Store { named, .. } => audit::names(&named.strange),
            Source::Broker(broker) => broker.names.clone(),
        }
    }

    pub fn journals(&self) -> Vec<Journal> {
        match self {
            Source::Store { named, .. } => named.journals.keys().cloned().collect(),
            Source::Broker(broker) => broker.specs.keys().cloned().collect(),
        }
    }

    /// Bytes that will be verified, where that is known from the start.
    pub fn total(&self) -> Option<u64> {
        match self {
            Source::Store { named, .. } => {
                let fragments = named.journals.values().flatten();
                Some(fragments.map(|fragment| fragment.span.len()).sum())
            }
            Source::Broker(_) => None,
        }
    }

    /// A journal of this source, with its fragments as they are at this moment.
    pub async fn subject(&self, journal: &Journal) -> Result<Subject, Error> {
        match self {
            Source::Store { named, .. } => {
                let fragments = named.journals.get(journal).cloned().unwrap_or_default();
                let listed = fragments.into_iter().map(unsigned).collect();
                Ok(Subject {
                    journal: journal.clone(),
                    listed,
                    local: Vec::new(),
                    lost: Vec::new(),
                })
            }
            Source::Broker(broker) => broker.subject(journal).await,
        }
    }
}

impl Broker {
    /// Lists each store once that can be listed from here, for the names in it.
    async fn look_at_stores(&mut self, ways: &Fragments) {
        let urls = self.specs.values().flat_map(|listed| listed.spec.fragment.stores.clone());
        let urls: std::collections::BTreeSet<String> = urls.collect();
        for url in urls {
            let Some(Ok(store)) = ways.store(&url) else { continue };
            let objects = match store.survey().await {
                Ok(objects) => objects,
                Err(error) => {
                    tracing::info!(%error, "the store is seen through the broker alone");
                    continue;
                }
            };
            let strange = naming::sort(&url, &objects, &Postfix::Guessed).strange;
            let is_ours = |finding: &Finding| {
                let owner = self.owner(&finding.object);
                owner.is_some_and(|journal| self.specs.contains_key(journal))
            };
            let names = audit::names(&strange).into_iter().filter(is_ours);
            let names = names.map(|finding| {
                let journal = self.owner(&finding.object).cloned();
                Finding { journal, ..finding }
            });
            let names: Vec<Finding> = names.collect();
            self.names.extend(names);
            self.stores.insert(url, store);
        }
    }

    /// The journal whose directory a path is in; of nested ones the innermost.
    fn owner(&self, path: &str) -> Option<&Journal> {
        let above = std::iter::successors(path.rsplit_once('/'), |(dir, _)| dir.rsplit_once('/'));
        let mut known = above.filter_map(|(dir, _)| self.all.get_key_value(dir));
        known.next().map(|(journal, ())| journal)
    }

    /// What the stores list, where all of them can be listed from here: more than a broker tells,
    /// which leaves out what others cover. Else what it tells, with URLs.
    async fn subject(&self, journal: &Journal) -> Result<Subject, Error> {
        let is_listed = self.is_listed_from_here(journal);
        let signature_ttl = (!is_listed).then_some(URL_TTL);
        let request = FragmentsRequest { signature_ttl, ..FragmentsRequest::new(journal.clone()) };
        let told = self.remote.fragments(request).await?;
        let (stored, local): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|listed| listed.fragment.is_persisted());
        let local = local.into_iter().map(|listed| listed.fragment).collect();
        let listed = match is_listed {
            true => self.listed(journal).await?,
            false => stored,
        };
        let lost = lost(&self.remote, journal).await;
        Ok(Subject { journal: journal.clone(), listed, local, lost })
    }

    fn urls(&self, journal: &Journal) -> &[String] {
        self.specs.get(journal).map_or(&[], |listed| &listed.spec.fragment.stores)
    }

    fn is_listed_from_here(&self, journal: &Journal) -> bool {
        self.urls(journal).iter().all(|url| self.stores.contains_key(url))
    }

    async fn listed(&self, journal: &Journal) -> Result<Vec<ListedFragment>, Error> {
        let mut listed = Vec::new();
        for store in self.urls(journal).iter().filter_map(|url| self.stores.get(url)) {
            for fragment in store.list(journal).await.map_err(refused)? {
                if self.owner(&index::name::path(&fragment)) == Some(journal) {
                    listed.push(unsigned(fragment));
                }
            }
        }
        Ok(listed)
    }
}

fn unsigned(fragment: Fragment) -> ListedFragment {
    ListedFragment { fragment, signed_url: String::new() }
}

fn refused(error: StoreError) -> Error {
    client::Error::Unsupported(error.to_string()).into()
}

/// The spans of a journal that a broker of ours knows to be lost. One of Gazette knows none.
async fn lost(remote: &Remote, journal: &Journal) -> Vec<Span> {
    match remote.status_of(journal).await {
        Ok(status) => lost_of(&serde_json::from_str(&status).unwrap_or_default()),
        Err(error) => {
            tracing::debug!(%journal, %error, "the broker tells no lost spans");
            Vec::new()
        }
    }
}

fn lost_of(status: &Value) -> Vec<Span> {
    let span = |entry: &Value| {
        let offset = |name: &str| entry[name].as_i64().and_then(|at| Offset::new(at).ok());
        Span::new(offset("begin")?, offset("end")?).ok()
    };
    status["lost"].as_array().into_iter().flatten().filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_spans_are_read_from_the_status() {
        let status = serde_json::json!({ "lost": [
            { "begin": 5, "end": 9 },
            { "begin": 20, "end": 21 },
            // Case: what is no span.
            { "begin": 9, "end": 5 },
            { "begin": "0", "end": 5 },
        ] });
        let span = |begin: u32, end: u32| Span::between(Offset::from(begin), Offset::from(end));
        assert_eq!(lost_of(&status), [span(5, 9), span(20, 21)]);
        assert!(lost_of(&Value::Null).is_empty());
    }
}
