//! Listing the fragments of a journal, stored and local (gazette-spec 1.10).

use crate::{Broker, Error, Resolution, Served};
use index::cover::CoverSet;
use protocol::Fragment;
use protocol::Offset;
use protocol::request::FragmentsRequest;
use protocol::response::ListedFragment;

/// Some fragments, in the order of their offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub fragments: Vec<ListedFragment>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Offset>,
}

impl Broker {
    /// One page of a journal's fragments. Waits for the first listing of its stores.
    pub async fn fragments(
        &self,
        resolution: &Resolution,
        request: &FragmentsRequest,
    ) -> Result<Page, Error> {
        let served = resolution.served()?;
        served.must_be_readable()?;
        self.wait_listed(served).await?;
        let mut page = some(served, request, request.page_len().saturating_add(1));
        let has_more = page.len() > request.page_len();
        let next = page.pop_if(|_| has_more).map(|fragment| fragment.begin());
        let mut fragments = Vec::with_capacity(page.len());
        for fragment in page {
            fragments.push(self.listed(fragment, request).await?);
        }
        Ok(Page { fragments, next })
    }

    async fn listed(
        &self,
        fragment: Fragment,
        request: &FragmentsRequest,
    ) -> Result<ListedFragment, Error> {
        let signed_url = match request.signature_ttl.filter(|_| fragment.is_persisted()) {
            None => String::new(),
            Some(ttl) => self.shared.stores.sign(&fragment, ttl).await?,
        };
        Ok(ListedFragment { fragment, signed_url })
    }
}

/// The first `limit` fragments that are wanted: stored ones, and local bytes that no store has.
/// What lies behind them is not looked at.
fn some(served: &Served, request: &FragmentsRequest, limit: usize) -> Vec<Fragment> {
    let is_wanted = |fragment: &Fragment| is_wanted(fragment, request);
    // In this order: what is stored between the two looks is in the second.
    let local = served.unpersisted();
    let stored = served.stored().some_from(request.next_page_token, limit, is_wanted);
    let mut set: CoverSet = stored.into_iter().collect();
    set.extend(local.into_iter().filter(is_wanted));
    set.iter().take(limit).cloned().collect()
}

fn is_wanted(fragment: &Fragment, request: &FragmentsRequest) -> bool {
    let is_stored = fragment.is_persisted();
    let is_old = is_stored && fragment.mod_time < request.begin_mod_time;
    let is_late = request.end_mod_time.is_some_and(|end| !is_stored || fragment.mod_time > end);
    fragment.begin() >= request.next_page_token && !is_old && !is_late
}
