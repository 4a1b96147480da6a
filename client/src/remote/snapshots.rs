//! A watch of specs: whole lists, one after each change, over as many connections as it takes.

use super::Remote;
use super::words::broken;
use crate::Error;
use crate::retry::{Pauses, is_worth_a_retry};
use protocol::request::ListRequest;
use protocol::response::ListResponse;
use protocol::wire::gazette;
use protocol::{Header, Selector, Status};
use std::sync::Arc;
use tonic::Streaming;

/// The lists that a selector means, from now on.
pub struct Snapshots {
    remote: Arc<Remote>,
    selector: Selector,
    /// The header of the last list: a watch that is opened again waits for what comes after it.
    last: Option<Header>,
    pages: Option<Streaming<gazette::ListResponse>>,
    pauses: Pauses,
}

impl Snapshots {
    /// Asks nothing yet. `seed` is of the pauses before a broken watch is opened again.
    pub fn new(remote: Arc<Remote>, selector: Selector, seed: u64) -> Self {
        Snapshots { remote, selector, last: None, pages: None, pauses: Pauses::new(seed) }
    }

    /// The next list: at once the first time, then after each change. It has the header of its
    /// first page. A broker that is away is asked again, for ever once it was there.
    pub async fn next(&mut self) -> Result<ListResponse, Error> {
        loop {
            match self.attempt().await {
                Ok(Some(list)) => {
                    self.pauses.reset();
                    self.last.clone_from(&list.header);
                    return Ok(list);
                }
                // A broker that stops, or a token that expires, ends a watch so.
                Ok(None) => {}
                Err(error) if self.last.is_none() || !is_worth_a_retry(&error) => {
                    return Err(error);
                }
                Err(error) => tracing::debug!(%error, "the watch is opened again"),
            }
            self.pages = None;
            self.pauses.pause().await;
        }
    }

    /// Reads pages to the mark that ends a list. `None` when the watch ended first.
    async fn attempt(&mut self) -> Result<Option<ListResponse>, Error> {
        let mut whole = ListResponse::default();
        loop {
            let pages = match &mut self.pages {
                Some(pages) => pages,
                none => none.insert(self.remote.watch(&self.selector, self.last.clone()).await?),
            };
            let page = pages.message().await.map_err(|status| self.remote.door().fault(status))?;
            let Some(page) = page else { return Ok(None) };
            let page = ListResponse::try_from(page).map_err(broken)?;
            if page.status != Status::Ok {
                return Err(Error::Later(format!("{}: {}", self.remote.url(), page.status)));
            }
            if page.is_end_of_snapshot() {
                return Ok(Some(whole));
            }
            whole.header = whole.header.or(page.header);
            whole.journals.extend(page.journals);
        }
    }
}

impl Remote {
    async fn watch(
        &self,
        selector: &Selector,
        watch_resume: Option<Header>,
    ) -> Result<Streaming<gazette::ListResponse>, Error> {
        let request = ListRequest { selector: selector.clone(), watch: true, watch_resume };
        let request = gazette::ListRequest::from(request);
        let mut client = self.door().gazette();
        let pages = client.list(request).await.map_err(|status| self.door().fault(status))?;
        Ok(pages.into_inner())
    }
}
