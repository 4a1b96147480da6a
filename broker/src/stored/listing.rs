//! Listing a journal's stores: all of them at first, and then what is new.
//!
//! To list a journal's whole history at each refresh costs more the longer it lives. So a listing
//! begins a little before the end of the last one, at a *mark*, and one of all comes rarely.
//!
//! That finds what is new only where new fragments have the greatest keys. They do, as names begin
//! with the offset, unless the journal's postfix does not ascend with time: such a journal is
//! always listed in full. It begins *before* the end since a Gazette broker puts up to 32 fragments
//! at the same time: one may appear when a later one has been listed already. What only a listing
//! of all shows are objects that others deleted, and those that others put far below the end.

use super::Foreign;
use super::second::{find_second_writer, follows, report};
use crate::stores::Stores;
use crate::{Error, Served, limits};
use cluster::Entry;
use index::{Content, Entry as Append, Replica, Turn};
use protocol::{Fragment, LabelSet, Offset};
use std::collections::BTreeMap;

/// Where the next listings begin, by the URLs of stores; those that have none are listed in full.
#[derive(Debug, Default)]
pub(super) struct Marks {
    by_url: BTreeMap<String, Fragment>,
    /// The spec that they were made under: another one may put its fragments elsewhere.
    revision: i64,
    /// Listings since that of everything.
    since_all: u32,
}

/// Which part of the stores is listed.
#[derive(Debug, Clone)]
pub(super) enum Extent {
    All,
    /// What comes behind these fragments, by URL.
    Behind(BTreeMap<String, Fragment>),
}

/// What a listing found.
#[derive(Debug)]
pub(super) struct Found {
    pub fragments: Vec<Fragment>,
    pub extent: Extent,
    pub marks: Marks,
    pub second_writer: Option<Foreign>,
}

impl Marks {
    /// What is to be listed next, under that spec.
    pub fn extent(&self, entry: &Entry) -> Extent {
        let ascends = entry.spec.postfix_template().is_ok_and(|template| template.is_ascending());
        let is_old = self.since_all >= limits::LISTINGS_OF_NEWS;
        if !ascends || is_old || self.revision != entry.mod_revision {
            return Extent::All;
        }
        Extent::Behind(self.by_url.clone())
    }

    fn next(&self, entry: &Entry, extent: &Extent) -> Self {
        let (by_url, since_all) = match extent {
            Extent::All => (BTreeMap::new(), 0),
            Extent::Behind(marks) => (marks.clone(), self.since_all + 1),
        };
        Marks { by_url, revision: entry.mod_revision, since_all }
    }

    /// Moves a store's mark on, by what was listed from the last one on, in the order of keys.
    fn advance(&mut self, url: &str, listed: &[Fragment]) {
        if !ends_in_order(listed) {
            self.by_url.remove(url);
        } else if let Some(nth) = listed.len().checked_sub(limits::LISTED_AGAIN + 1) {
            self.by_url.insert(url.to_owned(), listed[nth].clone());
        }
    }
}

/// Whether the last keys are those of the last offsets. They are not where a journal's postfix was
/// another once, whose keys are greater than those of its new one.
fn ends_in_order(listed: &[Fragment]) -> bool {
    let recent = listed.len().saturating_sub(limits::LISTED_AGAIN + 1);
    let end_before = listed[..recent].iter().map(Fragment::end).max().unwrap_or_default();
    let recent = &listed[recent..];
    recent.is_sorted_by_key(Fragment::begin)
        && recent.last().is_none_or(|last| last.end() >= end_before)
}

/// Lists the stores of a journal and takes the listing over, unless somebody does so already:
/// whether it did. A failure keeps what was known.
///
/// `spread` in 0..=1023 moves the next listing within a fifth of the interval.
pub(crate) async fn refresh(served: &Served, stores: &Stores, spread: u32) -> Result<bool, Error> {
    let stored = served.stored();
    let entry = served.entry();
    let Some(listing) = stored.begin(&entry) else { return Ok(false) };
    let refreshed = list(served, stores, &entry, listing.extent()).await;
    match refreshed {
        Ok((found, registers)) => {
            report(served, found.second_writer.as_ref());
            let interval = entry.spec.fragment.refresh_interval;
            let interval = interval.mul_f64(0.9 + 0.2 * f64::from(spread) / 1024.0);
            stored.take(found, interval);
            adopt(served, registers).await?;
            stored.set_listed();
            Ok(true)
        }
        Err(error) => {
            stored.fail(&error);
            Err(error)
        }
    }
}

async fn list(
    served: &Served,
    stores: &Stores,
    entry: &Entry,
    extent: Extent,
) -> Result<(Found, LabelSet), Error> {
    let mut marks = served.stored().next_marks(|marks| marks.next(entry, &extent));
    let mut fragments = Vec::new();
    for url in &entry.spec.fragment.stores {
        let found = list_one(served, stores, url, &extent).await?;
        marks.advance(url, &found);
        fragments.extend(found);
    }
    let registers = last_registers(served, stores, &fragments).await?;
    let second_writer = find_second_writer(served, stores, &fragments).await;
    Ok((Found { fragments, extent, marks, second_writer }, registers))
}

async fn list_one(
    served: &Served,
    stores: &Stores,
    url: &str,
    extent: &Extent,
) -> Result<Vec<Fragment>, Error> {
    let store = stores.get(url)?;
    let mark = match extent {
        Extent::All => None,
        Extent::Behind(marks) => marks.get(url),
    };
    let found = match mark {
        None => store.list(served.journal()).await,
        Some(mark) => store.list_behind(mark).await,
    };
    match found {
        Ok(found) => {
            stores.succeeded(url);
            Ok(found)
        }
        Err(error) => {
            stores.failed(url, &error);
            Err(error.into())
        }
    }
}

/// The registers beside the last fragment, for a journal that has nothing else to know them by.
async fn last_registers(
    served: &Served,
    stores: &Stores,
    listed: &[Fragment],
) -> Result<LabelSet, Error> {
    let last = listed.iter().max_by_key(|fragment| fragment.end());
    match last {
        Some(last) if served.replica().is_blank() || is_followed_by(served, last) => {
            Ok(stores.get(&last.backing_store)?.registers(last).await?)
        }
        Some(_) | None => Ok(LabelSet::default()),
    }
}

/// Whether a journal that follows its stores has not come to that fragment yet.
fn is_followed_by(served: &Served, last: &Fragment) -> bool {
    follows(served) && last.end() > served.replica().head()
}

/// A journal without local records goes on where its stores end, with the registers that it had;
/// and one that follows its stores goes on with them.
async fn adopt(served: &Served, registers: LabelSet) -> Result<(), Error> {
    let replica = served.replica();
    let end = served.stored().end();
    let adopts = || replica.is_blank() || follows(served);
    if end <= replica.head() || !adopts() {
        return Ok(());
    }
    // Nobody appends to a blank journal before it is listed; the turn keeps it so.
    let mut turn = replica.turn().await;
    if adopts() {
        take_over(replica, &mut turn, end, registers).await?;
    }
    Ok(())
}

/// Goes on at the end of a journal's store, with the registers that it had there; none say nothing.
pub(crate) async fn take_over(
    replica: &Replica,
    turn: &mut Turn,
    end: Offset,
    registers: LabelSet,
) -> Result<(), Error> {
    tracing::info!(journal = %replica.name(), %end, "goes on at the end of its store");
    replica.adopt(end)?;
    if registers.is_empty() {
        return Ok(());
    }
    let content = Content::Memory(bytes::Bytes::new());
    let entry = Append { content, registers: Some(registers), writer: None, is_disk: true };
    turn.record(entry)?.done().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Codec, Journal, Offset, Span, Sum};

    fn listed(begins: impl IntoIterator<Item = u32>) -> Vec<Fragment> {
        let journal = Journal::new("a/journal").expect("a valid name");
        let fragment = |begin: u32| {
            let span = Span::at(Offset::from(begin * 10), 10);
            Fragment::local(journal.clone(), span, Sum::ZERO, Codec::None)
        };
        begins.into_iter().map(fragment).collect()
    }

    #[test]
    fn marks_stand_before_the_end() {
        let again = u32::try_from(limits::LISTED_AGAIN).expect("small");
        let mut marks = Marks::default();
        let begin = |marks: &Marks| marks.by_url.get("url").map(|mark| mark.begin().get() / 10);
        // Case: few fragments have no mark.
        marks.advance("url", &listed(0..again));
        assert_eq!(begin(&marks), None);
        marks.advance("url", &listed(0..again + 5));
        assert_eq!(begin(&marks), Some(4));
        // Case: nothing is new.
        marks.advance("url", &listed(5..again + 5));
        assert_eq!(begin(&marks), Some(4));
        marks.advance("url", &listed(5..again + 8));
        assert_eq!(begin(&marks), Some(7));
        // Case: a greater key that is no later offset.
        marks.advance("url", &listed((8..again + 8).chain([1])));
        assert_eq!(begin(&marks), None);
        // Case: so long ago that it is no more among the last.
        marks.advance("url", &listed([10_000].into_iter().chain(0..again + 5)));
        assert_eq!(begin(&marks), None);
    }
}
