//! List: snapshots of the journals a selector means, in pages, once or for ever (gazette-spec 1.8).

use crate::metrics::{Counted, Operation};
use crate::resolve::is_suspended;
use crate::server::caller::Caller;
use cluster::{Entry, Listing};
use futures::{Stream, stream};
use protocol::request::ListRequest;
use protocol::response::{ListResponse, ListedJournal};
use protocol::{Route, Selector, Status};
use std::collections::VecDeque;
use std::sync::Arc;

/// Journals of one message, as Gazette's clients expect.
const PAGE_LEN: usize = 25;

/// The messages of a List stream.
pub fn responses(caller: Caller, request: ListRequest) -> impl Stream<Item = ListResponse> + Send {
    let counted = Some(caller.broker.metrics().begin(Operation::List));
    let lister = Lister { counted, ..Lister::new(caller, request) };
    stream::unfold((lister, VecDeque::new()), |(mut lister, mut pages)| async move {
        if pages.is_empty() {
            let Some(snapshot) = lister.next_snapshot().await else {
                lister.ended();
                return None;
            };
            pages = snapshot;
        }
        let page = pages.pop_front().expect("a snapshot has a page");
        let page = lister.page(page);
        Some((page, (lister, pages)))
    })
}

/// A message to be: its journals are copied out of the key space only when it is sent.
enum Page {
    /// The first of a snapshot carries the revision.
    First(i64, Vec<Arc<Entry>>),
    Further(Vec<Arc<Entry>>),
    End,
}

struct Lister {
    caller: Caller,
    selector: Selector,
    is_watch: bool,
    /// The key space must be at this revision before the next snapshot is made.
    from: i64,
    /// What the last snapshot showed; `None` before the first one.
    shown: Option<Shown>,
    counted: Option<Counted>,
}

/// What Gazette compares to tell whether a snapshot is news: changes of routes alone are not.
#[derive(PartialEq, Eq)]
struct Shown {
    journals: usize,
    mod_revision_max: i64,
}

impl Shown {
    fn of(listing: &Listing) -> Self {
        let revisions = listing.entries.iter().map(|entry| entry.mod_revision);
        Shown { journals: listing.entries.len(), mod_revision_max: revisions.max().unwrap_or(0) }
    }
}

impl Lister {
    fn new(caller: Caller, request: ListRequest) -> Self {
        let resumed = request.watch_resume.filter(|_| request.watch);
        let from = resumed.map_or(0, |header| header.etcd.revision.saturating_add(1));
        let ListRequest { selector, watch, .. } = request;
        Lister { caller, selector, is_watch: watch, from, shown: None, counted: None }
    }

    /// The pages of the next snapshot that is news, or `None` at the stream's end.
    async fn next_snapshot(&mut self) -> Option<VecDeque<Page>> {
        if self.shown.is_some() && !self.is_watch {
            return None;
        }
        loop {
            self.wait().await?;
            let listing = self.listing();
            self.from = listing.revision.saturating_add(1);
            let shown = Some(Shown::of(&listing));
            if shown != self.shown {
                self.shown = shown;
                return Some(pages(listing, self.is_watch));
            }
        }
    }

    /// The stream ends well.
    fn ended(&mut self) {
        if let Some(counted) = self.counted.take() {
            counted.end(Status::Ok);
        }
    }

    /// The journals that are meant, as far as the caller may see them.
    fn listing(&self) -> Listing {
        let mut listing = self.caller.broker.key_space().list(&self.selector);
        let grant = &self.caller.grant;
        listing.entries.retain(|entry| grant.sees(&entry.spec.name, &entry.spec.labels));
        listing
    }

    /// Waits for the revision of the next snapshot; `None` when the port stops or the token ends.
    async fn wait(&mut self) -> Option<()> {
        let reached = self.caller.broker.key_space().wait_for(self.from);
        tokio::select! {
            biased;
            () = self.caller.ended() => None,
            reached = reached => reached.ok().map(drop),
        }
    }

    fn page(&self, page: Page) -> ListResponse {
        let (revision, entries) = match page {
            Page::First(revision, entries) => (Some(revision), entries),
            Page::Further(entries) => (None, entries),
            Page::End => return ListResponse::default(),
        };
        let header = revision.map(|revision| {
            let mut header = self.caller.broker.header();
            // That of the listing: a watch that resumes at a later one would miss what came
            // between.
            header.etcd.revision = revision;
            header
        });
        let journals = entries.into_iter().map(|entry| self.listed(&entry)).collect();
        ListResponse { status: Status::Ok, header, journals }
    }

    fn listed(&self, entry: &Entry) -> ListedJournal {
        let is_served = !is_suspended(entry);
        ListedJournal {
            spec: entry.spec.clone(),
            mod_revision: entry.mod_revision,
            create_revision: entry.create_revision,
            route: if is_served { self.caller.broker.own_route() } else { Route::default() },
        }
    }
}

fn pages(listing: Listing, is_watch: bool) -> VecDeque<Page> {
    let (first, further) = listing.entries.split_at(listing.entries.len().min(PAGE_LEN));
    let first = [Page::First(listing.revision, first.to_vec())];
    let further = further.chunks(PAGE_LEN).map(|entries| Page::Further(entries.to_vec()));
    first.into_iter().chain(further).chain(is_watch.then_some(Page::End)).collect()
}
