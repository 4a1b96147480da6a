//! The stored half of a journal: what its stores list, when they are listed again, and whether
//! somebody else writes to them.

use crate::stores::{Stores, pause};
use crate::{Error, Served, limits};
use index::cover::{Cover, CoverSet};
use index::ledger::Ledger;
use index::store::{Source, digest};
use protocol::{Fragment, Offset, Span, Sum};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
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
    second_writer: Option<String>,
    /// The next listing, once there was one.
    due: Option<Instant>,
    failures: u32,
    is_listing: bool,
}

/// Whether the stores were listed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Listed {
    No,
    /// The last try failed, and there was no success before.
    Failed(String),
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
        let unlisted = |detail: &str| Error::Unlisted {
            journal: served.journal().clone(),
            detail: detail.to_owned(),
        };
        let mut listed = self.listed.subscribe();
        let tried = timeout(limits::LISTING_WAIT, listed.wait_for(|now| *now != Listed::No)).await;
        match tried {
            Err(_elapsed) => Err(unlisted("the first listing takes long")),
            Ok(Err(_closed)) => Err(Error::Closing),
            Ok(Ok(now)) => match &*now {
                Listed::Failed(detail) => Err(unlisted(detail)),
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

    /// All fragments known, in order.
    pub fn all(&self) -> Vec<Fragment> {
        self.state().cover.iter().cloned().collect()
    }

    pub fn second_writer(&self) -> Option<String> {
        self.state().second_writer.clone()
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
    }

    /// The next listing need not wait for its time.
    pub fn refresh_soon(&self) {
        self.state().due = None;
    }

    /// Whether a listing is due, and none is under way.
    pub fn is_due(&self) -> bool {
        let state = self.state();
        !state.is_listing && state.due.is_none_or(|due| Instant::now() >= due)
    }

    /// `None` while a listing is under way.
    fn begin(&self) -> Option<Listing<'_>> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_listing, true) {
            return None;
        }
        state.put_meanwhile.clear();
        Some(Listing { stored: self })
    }

    fn take(&self, listing: Vec<Fragment>, second_writer: Option<String>, interval: Duration) {
        let mut state = self.state();
        state.failures = 0;
        state.due = Some(Instant::now() + interval);
        let meanwhile = std::mem::take(&mut state.put_meanwhile);
        let verified = std::mem::take(&mut state.verified);
        state.cover.replace(listing.into_iter().chain(meanwhile));
        // What was deleted from the store need not be remembered.
        let is_there = |span: &Span| match state.cover.covering(span.begin()) {
            Cover::Here(fragment) => fragment.span == *span,
            Cover::Next(_) | Cover::Past => false,
        };
        state.verified = verified.into_iter().filter(|(span, _)| is_there(span)).collect();
        state.second_writer = second_writer;
    }

    fn fail(&self, error: &Error) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.due = Some(Instant::now() + pause(state.failures));
        drop(state);
        self.listed.send_if_modified(|listed| {
            let failed = Listed::Failed(error.to_string());
            let is_news = *listed != Listed::Yes && *listed != failed;
            if is_news {
                *listed = failed;
            }
            is_news
        });
    }

    fn verified(&self, fragment: &Fragment) -> bool {
        self.state().verified.get(&fragment.span) == Some(&fragment.sum)
    }
}

/// The one listing of a journal that is under way.
struct Listing<'a> {
    stored: &'a Stored,
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        self.stored.state().is_listing = false;
    }
}

/// Lists the stores of a journal and takes the listing over, unless somebody does so already. A
/// failure keeps what was known.
///
/// `spread` in 0..=1023 moves the next listing within a fifth of the interval.
pub(crate) async fn refresh(served: &Served, stores: &Stores, spread: u32) -> Result<(), Error> {
    let stored = served.stored();
    let Some(_listing) = stored.begin() else { return Ok(()) };
    let refreshed = list(served, stores).await;
    match refreshed {
        Ok((listing, second_writer)) => {
            report(served, second_writer.as_ref());
            let interval = served.entry().spec.fragment.refresh_interval;
            let interval = interval.mul_f64(0.9 + 0.2 * f64::from(spread) / 1024.0);
            let end = listing.iter().map(Fragment::end).max().unwrap_or_default();
            stored.take(listing, second_writer, interval);
            adopt(served, end).await?;
            stored.listed.send_replace(Listed::Yes);
            Ok(())
        }
        Err(error) => {
            stored.fail(&error);
            Err(error)
        }
    }
}

async fn list(served: &Served, stores: &Stores) -> Result<(Vec<Fragment>, Option<String>), Error> {
    let mut listing = Vec::new();
    for url in &served.entry().spec.fragment.stores {
        let store = stores.get(url)?;
        match store.list(served.journal()).await {
            Ok(found) => listing.extend(found),
            Err(error) => {
                stores.failed(url, &error);
                return Err(error.into());
            }
        }
        stores.succeeded(url);
    }
    let second_writer = find_second_writer(served, &listing).await;
    Ok((listing, second_writer))
}

/// A journal without local records goes on where its stores end.
async fn adopt(served: &Served, end: Offset) -> Result<(), Error> {
    let replica = served.replica();
    if end == Offset::ZERO || !replica.is_blank() {
        return Ok(());
    }
    // Nobody appends to a blank journal before it is listed; the turn keeps it so.
    let _turn = replica.turn().await;
    if replica.is_blank() {
        tracing::info!(journal = %served.journal(), %end, "goes on at the end of its store");
        replica.adopt(end)?;
    }
    Ok(())
}

fn report(served: &Served, second_writer: Option<&String>) {
    let before = served.stored().second_writer();
    let journal = served.journal();
    match (before, second_writer) {
        (None, Some(found)) => {
            tracing::error!(%journal, %found, "a second writer: appends stop");
        }
        (Some(_), None) => tracing::info!(%journal, "no second writer any more: appends go on"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

/// What in the listing this broker can't have put: it ends above the head of a journal with local
/// records, or overlaps local bytes that are others.
async fn find_second_writer(served: &Served, listing: &[Fragment]) -> Option<String> {
    if served.replica().is_blank() {
        return None;
    }
    // Read after the listing: what we put meanwhile ends below it.
    let head = served.replica().head();
    let ledger = served.replica().ledger();
    for fragment in listing.iter().filter(|fragment| !fragment.span.is_empty()) {
        let name = index::name::content_name(fragment);
        if fragment.end() > head {
            return Some(format!("{name} ends above the head {head}"));
        }
        match overlap(&ledger, fragment) {
            Overlap::None => {}
            Overlap::Whole if is_known(served, &ledger, fragment) => {}
            Overlap::Part if is_known(served, &ledger, fragment) => {}
            Overlap::Part => return Some(format!("{name} has other borders than local bytes")),
            Overlap::Whole => {
                if !has_local_content(served, fragment).await {
                    return Some(format!("{name} has other content than local bytes"));
                }
            }
        }
    }
    None
}

#[derive(Debug, PartialEq, Eq)]
enum Overlap {
    None,
    Part,
    Whole,
}

fn overlap(ledger: &Ledger, fragment: &Fragment) -> Overlap {
    let gaps = ledger.local.gaps(fragment.span);
    match gaps[..] {
        [] => Overlap::Whole,
        [gap] if gap == fragment.span => Overlap::None,
        _ => Overlap::Part,
    }
}

/// Whether the fragment is one that was put from the local bytes, or was compared with them.
fn is_known(served: &Served, ledger: &Ledger, fragment: &Fragment) -> bool {
    let put = ledger.closed.iter().any(|closed| {
        closed.span == fragment.span
            && closed.persisted.as_ref().is_some_and(|stored| stored.sum == fragment.sum)
    });
    put || served.stored().verified(fragment)
}

/// Compares sums. Where the local bytes can't be read the question stays open until next time.
async fn has_local_content(served: &Served, fragment: &Fragment) -> bool {
    match digest(fragment.span, Arc::new(LocalBytes::of(served))).await {
        Ok(found) if found.sum == fragment.sum => {
            served.stored().state().verified.insert(fragment.span, fragment.sum);
            true
        }
        Ok(_) => false,
        Err(error) => {
            let journal = served.journal();
            tracing::warn!(%journal, %error, "a listed fragment can't be compared");
            true
        }
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
