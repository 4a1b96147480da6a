//! What operators ask of a broker: specs, fragments, deletion.

use super::courant::{self, Deleted};
use super::words::broken;
use super::{Remote, gazette, outcome};
use crate::Error;
use protocol::request::{ApplyRequest, FragmentsRequest};
use protocol::response::{ApplyResponse, FragmentsResponse, ListedFragment, ListedJournal};
use protocol::{Journal, Selector, Status};

impl Remote {
    /// The specs of the journals that a selector means, by name.
    pub async fn list_specs(&self, selector: Selector) -> Result<Vec<ListedJournal>, Error> {
        gazette::list_specs(self.door(), selector).await.map(|listed| listed.journals)
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
            let mut client = self.door().gazette();
            let page = protocol::wire::gazette::FragmentsRequest::from(request.clone());
            let page = self.door().ask(client.list_fragments(page)).await?;
            let page = FragmentsResponse::try_from(page).map_err(broken)?;
            if page.status != Status::Ok {
                return Err(outcome::error(page.status, &journal));
            }
            fragments.extend(page.fragments);
            match page.next_page_token {
                Some(next) if next > request.next_page_token => request.next_page_token = next,
                Some(_) => return Err(Error::Protocol(format!("{journal}: pages go back"))),
                None => return Ok(fragments),
            }
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
