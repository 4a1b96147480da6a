//! What operators ask of a broker: specs, fragments, heads, stores, deletion.

use super::courant::{self, Deleted};
use super::pieces::{Parts, gazette_request};
use super::words::broken;
use super::{Remote, fault, gazette, outcome};
use crate::Error;
use bytes::Bytes;
use protocol::request::{
    AppendRequest, AppendSuspend, ApplyRequest, FragmentStoreHealthRequest, FragmentsRequest,
    PAGE_LIMIT_MAX,
};
use protocol::response::{
    AppendResponse, ApplyResponse, FragmentStoreHealthResponse, FragmentsResponse, ListResponse,
    ListedFragment, ListedJournal,
};
use protocol::{Fragment, Journal, Offset, Selector, Status};

/// What became of the head of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetHead {
    /// It was at this offset, which no store goes beyond, and is there.
    Kept(Offset),
    /// It is at this offset, where the stores end.
    Moved(Offset),
    /// Others moved the end each time this looked, the last time at this offset.
    Raced(Offset),
}

/// Tries to move a head while others move the end.
const RESETS_MAX: usize = 4;

impl Remote {
    /// Whether the broker knows writers, so that an append with a writer's sequence is made once. A
    /// Gazette broker does not.
    pub async fn knows_writers(&self) -> Result<bool, Error> {
        self.door().is_courant().await
    }

    /// Refuses where the caller may not list journals, as who mounts them has to.
    pub async fn check_listing(&self) -> Result<(), Error> {
        let none = "name=no-such/journal".parse().expect("a selector");
        self.list_specs(none).await.map(drop)
    }

    /// The specs of the journals that a selector means, by name.
    pub async fn list_specs(&self, selector: Selector) -> Result<Vec<ListedJournal>, Error> {
        gazette::list_specs(self.door(), selector).await.map(|listed| listed.journals)
    }

    /// The same as one answer, under its header.
    pub async fn list_whole(&self, selector: Selector) -> Result<ListResponse, Error> {
        gazette::list_whole(self.door(), selector).await
    }

    /// Moves the head of a journal whose store goes on beyond what its brokers know to the end of
    /// the store, so that appends go on there (gazette-spec 2.10). A store that can't be looked at
    /// is an error, and then nothing is changed.
    pub async fn reset_head(&self, journal: &Journal) -> Result<ResetHead, Error> {
        let pulse = |offset| {
            let suspend = AppendSuspend::Keep;
            self.pulse(AppendRequest { offset, suspend, ..AppendRequest::new(journal.clone()) })
        };
        // At no offset first: whether there is anything to move.
        let answer = pulse(None).await?;
        if answer.status == Status::Ok {
            return Ok(ResetHead::Kept(answer.commit.map(|span| span.end()).unwrap_or_default()));
        }
        let mut refused = answer;
        let mut head = Offset::ZERO;
        for _ in 0..RESETS_MAX {
            match refused.status {
                Status::IndexHasGreaterOffset | Status::WrongAppendOffset => {}
                _ => return Err(outcome::refused(refused, journal)),
            }
            head = gazette::head(self.door(), journal).await?;
            refused = pulse(Some(head)).await?;
            if refused.status == Status::Ok {
                return Ok(ResetHead::Moved(head));
            }
        }
        Ok(ResetHead::Raced(head))
    }

    /// Suspends a journal: with `force` now, else if all of it is persisted. Answers whether it is
    /// suspended.
    pub async fn suspend(&self, journal: &Journal, force: bool) -> Result<bool, Error> {
        let suspend = if force { AppendSuspend::Now } else { AppendSuspend::IfFlushed };
        let request = AppendRequest { suspend, ..AppendRequest::new(journal.clone()) };
        let answer = self.pulse(request).await?;
        match answer.status {
            Status::Ok => Ok(false),
            Status::Suspended => Ok(true),
            _ => Err(outcome::refused(answer, journal)),
        }
    }

    /// An append of no bytes.
    async fn pulse(&self, request: AppendRequest) -> Result<AppendResponse, Error> {
        let messages = gazette_request(request, Parts::Whole(Bytes::new()));
        let mut client = self.door().gazette();
        let answer = client.append(messages).await;
        // It changes no content, so that it may be asked for again.
        let answer = answer.map_err(|status| fault::error(self.url(), status))?;
        AppendResponse::try_from(answer.into_inner()).map_err(broken)
    }

    /// Whether the broker can write to a store: `None`, or what is wrong with it.
    pub async fn store_health(
        &self,
        request: FragmentStoreHealthRequest,
    ) -> Result<Option<String>, Error> {
        let request = protocol::wire::gazette::FragmentStoreHealthRequest::from(request);
        // Not bounded by time: a first check of a store that is away takes what it takes.
        let mut client = self.door().gazette();
        let answer = client.fragment_store_health(request).await;
        let answer = answer.map_err(|status| self.door().fault(status))?.into_inner();
        let answer = FragmentStoreHealthResponse::try_from(answer).map_err(broken)?;
        match answer.status {
            Status::Ok => Ok(None),
            _ => Ok(Some(answer.store_health_error)),
        }
    }

    /// Deletes the stored fragments of a journal that are older than its retention, or says which
    /// those are.
    pub async fn prune(&self, journal: &Journal, dry_run: bool) -> Result<Deleted, Error> {
        if !self.door().is_courant().await? {
            let what = "prunes nothing: gazctl journals prune does, with a store's credentials";
            return Err(gazette::not_there(self.door(), journal, what));
        }
        courant::prune(self.door(), journal, dry_run).await
    }

    /// Makes all changes or none, and says at which revision of the key space.
    pub async fn apply(&self, request: ApplyRequest) -> Result<i64, Error> {
        let first = request.changes.first().map(|change| change.journal().clone());
        let mut client = self.door().gazette();
        let request = protocol::wire::gazette::ApplyRequest::from(request);
        let answer = self.door().ask(client.apply(request)).await?;
        let answer = ApplyResponse::try_from(answer).map_err(broken)?;
        let revision = answer.header.etcd.revision;
        match (answer.status, first) {
            (Status::Ok, _) => Ok(revision),
            (Status::EtcdTransactionFailed, Some(journal)) => {
                Err(Error::Conflict(journal, revision))
            }
            (status, Some(journal)) => Err(outcome::error(status, &journal)),
            (status, None) => Err(Error::Later(format!("{}: {status}", self.url()))),
        }
    }

    /// All fragments of a journal, ascending; `request` says which, from its first page on.
    pub async fn fragments(&self, request: FragmentsRequest) -> Result<Vec<ListedFragment>, Error> {
        let journal = request.journal.journal().clone();
        let mut request = request;
        let mut fragments = Vec::new();
        loop {
            let page = self.page(&journal, &request).await?;
            fragments.extend(page.fragments);
            match page.next_page_token {
                Some(next) => request.next_page_token = next,
                None => return Ok(fragments),
            }
        }
    }

    /// The first `max` fragments that a store has and that begin at `from` or above.
    pub(super) async fn stored_from(
        &self,
        journal: &Journal,
        from: Offset,
        max: usize,
    ) -> Result<Vec<Fragment>, Error> {
        let mut request = FragmentsRequest::new(journal.clone());
        request.next_page_token = from;
        let mut found = Vec::new();
        while found.len() < max {
            let page_max = usize::try_from(PAGE_LIMIT_MAX).expect("it is positive");
            request.page_limit = Some((max - found.len()).min(page_max));
            let page = self.page(journal, &request).await?;
            let fragments = page.fragments.into_iter().map(|listed| listed.fragment);
            found.extend(fragments.filter(Fragment::is_persisted));
            match page.next_page_token {
                Some(next) => request.next_page_token = next,
                None => break,
            }
        }
        Ok(found)
    }

    /// One page of a journal's fragments. The next one begins further on.
    async fn page(
        &self,
        journal: &Journal,
        request: &FragmentsRequest,
    ) -> Result<FragmentsResponse, Error> {
        let mut client = self.door().gazette();
        let page = protocol::wire::gazette::FragmentsRequest::from(request.clone());
        let page = self.door().ask(client.list_fragments(page)).await?;
        let page = FragmentsResponse::try_from(page).map_err(broken)?;
        match (page.status, page.next_page_token) {
            (Status::Ok, Some(next)) if next <= request.next_page_token => {
                Err(Error::Protocol(format!("{journal}: pages go back")))
            }
            (Status::Ok, _) => Ok(page),
            (status, _) => Err(outcome::error(status, journal)),
        }
    }

    /// Deletes a journal's spec, and with `purge` the objects of its fragments; with `dry_run` it
    /// only says what that would be. With `mod_revision` only the spec of that revision goes.
    pub async fn delete(
        &self,
        journal: &Journal,
        purge: bool,
        dry_run: bool,
        mod_revision: Option<i64>,
    ) -> Result<Deleted, Error> {
        if !self.door().is_courant().await? {
            let what = "deletes journals by Apply alone: that is not safe from here";
            return Err(gazette::not_there(self.door(), journal, what));
        }
        courant::delete(self.door(), journal, purge, dry_run, mod_revision).await
    }
}
