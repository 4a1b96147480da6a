//! The stored half of a journal: what its stores list, when they are listed again, and whether
//! somebody else writes to them.

mod listing;
mod second;

pub(crate) use listing::{refresh, take_over};

use crate::stores::{pause, pause_after};
use crate::{Error, Served, limits};
use cluster::Entry;
use index::cover::{Cover, CoverSet};
use index::store::Source;
use listing::{Extent, Found, Marks};
use protocol::{Fragment, Offset, Remedy, Span, Sum};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// See the module.
#[derive(Debug)]
pub(crate) struct Stored {
    state: Mutex<State>,
    listed: watch::Sender<Listed>,
}

#[derive(Debug, Default)]
struct State {
    cover: CoverSet,
    /// Fragments that were put since the listing that is under way began: it may have missed them.
    put_meanwhile: Vec<Fragment>,
    /// Fragments that the local bytes were compared with.
    verified: BTreeMap<Span, Sum>,
    second_writer: Option<Foreign>,
    /// The next listing, once there was one.
    due: Option<Instant>,
    failures: u32,
    is_listing: bool,
    /// Where the next listing begins, and whether it is to list everything all the same.
    marks: Marks,
    wants_all: bool,
    /// Fragments that were deleted since the listing that is under way began.
    deleted_meanwhile: Vec<Span>,
    /// Listings of everything, and up to which of them it was seen to what they lack.
    whole_listings: u64,
    seen_to: u64,
}

/// What another broker wrote to the journal's stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// The fragment, and what is wrong with it.
    pub detail: String,
    /// It has other bytes at offsets that are local ones as well. Else it only ends above the head.
    pub is_fork: bool,
}

/// Whether the stores were listed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Listed {
    No,
    /// The last try failed, and there was no success before.
    Failed(String, Remedy),
    Yes,
}

impl Stored {
    /// Nothing is known, unless there are no stores.
    pub fn new(has_no_stores: bool) -> Self {
        let listed = if has_no_stores { Listed::Yes } else { Listed::No };
        Stored { state: Mutex::default(), listed: watch::Sender::new(listed) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the stored half panics")
    }

    pub fn is_listed(&self) -> bool {
        *self.listed.borrow() == Listed::Yes
    }

    /// Waits for the first listing, for a while; a try that fails ends the wait.
    pub async fn wait_listed(&self, served: &Served) -> Result<(), Error> {
        let unlisted = |detail: &str, remedy| Error::Unlisted {
            journal: served.journal().clone(),
            detail: detail.to_owned(),
            remedy,
        };
        let mut listed = self.listed.subscribe();
        let tried = timeout(limits::LISTING_WAIT, listed.wait_for(|now| *now != Listed::No)).await;
        match tried {
            Err(_elapsed) => Err(unlisted("the first listing takes long", Remedy::Later)),
            Ok(Err(_closed)) => Err(Error::Closing),
            Ok(Ok(now)) => match &*now {
                Listed::Failed(detail, remedy) => Err(unlisted(detail, *remedy)),
                Listed::Yes | Listed::No => Ok(()),
            },
        }
    }

    /// The fragment at `offset` that reaches furthest; else where the next one begins.
    pub fn covering(&self, offset: Offset) -> Result<Fragment, Option<Offset>> {
        match self.state().cover.covering(offset) {
            Cover::Here(fragment) => Ok(fragment.clone()),
            Cover::Next(fragment) => Err(Some(fragment.begin())),
            Cover::Past => Err(None),
        }
    }

    pub fn fragments(&self) -> u64 {
        self.state().cover.len() as u64
    }

    /// When the fragment that ends furthest was stored.
    pub fn last_stored(&self) -> Option<SystemTime> {
        let mod_time = self.state().cover.last()?.mod_time;
        Some(UNIX_EPOCH + Duration::from_secs(u64::try_from(mod_time).ok()?))
    }

    /// Whether a store has all of a span, as far as its last listing tells.
    pub fn covers(&self, span: Span) -> bool {
        self.state().cover.covers(span)
    }

    /// What of a span no store has, ascending.
    pub fn gaps(&self, span: Span) -> Vec<Span> {
        let state = self.state();
        let (mut gaps, mut at) = (Vec::new(), span.begin());
        while at < span.end() {
            at = match state.cover.covering(at) {
                Cover::Here(fragment) => fragment.end(),
                Cover::Next(fragment) => {
                    let end = fragment.begin().min(span.end());
                    gaps.push(Span::between(at, end));
                    end
                }
                Cover::Past => {
                    gaps.push(Span::between(at, span.end()));
                    span.end()
                }
            };
        }
        gaps
    }

    /// All fragments known, in order.
    pub fn all(&self) -> Vec<Fragment> {
        self.state().cover.iter().cloned().collect()
    }

    /// The first `limit` fragments that begin at or above `begin` and are wanted, in order.
    pub fn some_from(
        &self,
        begin: Offset,
        limit: usize,
        is_wanted: impl Fn(&Fragment) -> bool,
    ) -> Vec<Fragment> {
        let state = self.state();
        let wanted = state.cover.iter_from(begin).filter(|fragment| is_wanted(fragment));
        wanted.take(limit).cloned().collect()
    }

    pub fn second_writer(&self) -> Option<Foreign> {
        self.state().second_writer.clone()
    }

    /// The journal's head has jumped over what another broker wrote, which is its own from here on.
    pub fn overtook(&self) {
        self.state().second_writer.take_if(|foreign| !foreign.is_fork);
    }

    /// Where the stored fragments end.
    pub fn end(&self) -> Offset {
        self.state().cover.end()
    }

    /// A fragment was put.
    pub fn add(&self, fragment: Fragment) {
        let mut state = self.state();
        state.verified.insert(fragment.span, fragment.sum);
        if state.is_listing {
            state.put_meanwhile.push(fragment.clone());
        }
        state.cover.add(fragment);
    }

    /// A fragment was deleted.
    pub fn remove(&self, span: Span) {
        let mut state = self.state();
        state.cover.remove(span);
        state.put_meanwhile.retain(|fragment| fragment.span != span);
        if state.is_listing {
            state.deleted_meanwhile.push(span);
        }
    }

    /// The number of the last listing of everything, if nobody has seen yet to what it lacks of
    /// what was put.
    pub fn to_see_to(&self) -> Option<u64> {
        let state = self.state();
        (state.seen_to < state.whole_listings).then_some(state.whole_listings)
    }

    /// What that listing lacks is there again, or is to be gone.
    pub fn set_seen_to(&self, listing: u64) {
        self.state().seen_to = listing;
    }

    /// Where the first fragment begins.
    pub fn begin_offset(&self) -> Option<Offset> {
        self.state().cover.first().map(Fragment::begin)
    }

    /// The next listing need not wait for its time, and is one of everything: something that is
    /// known may not be there.
    pub fn refresh_soon(&self) {
        let mut state = self.state();
        (state.due, state.wants_all) = (None, true);
    }

    /// Whether a listing is due, and none is under way.
    pub fn is_due(&self) -> bool {
        let state = self.state();
        !state.is_listing && state.due.is_none_or(|due| Instant::now() >= due)
    }

    /// `None` while a listing is under way.
    fn begin(&self, entry: &Entry) -> Option<Listing<'_>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_listing, true) {
            return None;
        }
        state.put_meanwhile.clear();
        state.deleted_meanwhile.clear();
        // What another broker wrote over local bytes may be before the mark. What it wrote above
        // the head is behind it.
        let has_fork = state.second_writer.as_ref().is_some_and(|foreign| foreign.is_fork);
        let is_all = std::mem::take(&mut state.wants_all) || has_fork;
        let extent = if is_all { Extent::All } else { state.marks.extent(entry) };
        Some(Listing { stored: self, extent })
    }

    fn next_marks(&self, next: impl FnOnce(&Marks) -> Marks) -> Marks {
        next(&self.state().marks)
    }

    fn take(&self, found: Found, interval: Duration) {
        let mut state = self.state();
        state.failures = 0;
        state.due = Some(Instant::now() + interval);
        state.marks = found.marks;
        state.second_writer = found.second_writer;
        let meanwhile = std::mem::take(&mut state.put_meanwhile);
        let deleted = std::mem::take(&mut state.deleted_meanwhile);
        let is_there = |fragment: &Fragment| !deleted.contains(&fragment.span);
        let listing = found.fragments.into_iter().filter(is_there).chain(meanwhile);
        match found.extent {
            Extent::Behind(_) => state.cover.extend(listing),
            Extent::All => {
                state.cover.replace(listing);
                state.forget_deleted();
                state.whole_listings += 1;
            }
        }
    }

    fn set_listed(&self) {
        self.listed.send_replace(Listed::Yes);
    }

    fn fail(&self, error: &Error) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.wants_all = true;
        let pause = match error {
            Error::Store(error) => pause_after(state.failures, error),
            _ => pause(state.failures),
        };
        state.due = Some(Instant::now() + pause);
        drop(state);
        self.listed.send_if_modified(|listed| {
            let failed = Listed::Failed(error.to_string(), error.remedy());
            let is_news = *listed != Listed::Yes && *listed != failed;
            if is_news {
                *listed = failed;
            }
            is_news
        });
    }

    fn set_verified(&self, fragment: &Fragment) {
        self.state().verified.insert(fragment.span, fragment.sum);
    }

    fn verified(&self, fragment: &Fragment) -> bool {
        self.state().verified.get(&fragment.span) == Some(&fragment.sum)
    }
}

impl State {
    /// What was deleted from the store need not be remembered.
    fn forget_deleted(&mut self) {
        let cover = &self.cover;
        let is_there = |span: &Span| match cover.covering(span.begin()) {
            Cover::Here(fragment) => fragment.span == *span,
            Cover::Next(_) | Cover::Past => false,
        };
        self.verified.retain(|span, _| is_there(span));
    }
}

/// The one listing of a journal that is under way.
struct Listing<'a> {
    stored: &'a Stored,
    extent: Extent,
}

impl Listing<'_> {
    fn extent(&self) -> Extent {
        self.extent.clone()
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.stored.state().is_listing = false;
    }
}

/// The local bytes of a journal, as what a fragment is made of.
pub(crate) struct LocalBytes {
    replica: Arc<index::Replica>,
}

impl LocalBytes {
    pub fn of(served: &Served) -> Self {
        LocalBytes { replica: served.replica().clone() }
    }
}

impl Source for LocalBytes {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        self.replica.read(offset, buf).map_err(io::Error::other)
    }
}
