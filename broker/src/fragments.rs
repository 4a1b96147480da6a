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
        if !served.entry().spec.flags.may_read() {
            let detail = "the journal is write-only";
            return Err(Error::NotAllowed { journal: resolution.journal.clone(), detail });
        }
        served.stored().wait_listed(served).await?;
        let mut wanted = all(served).into_iter().filter(|fragment| is_wanted(fragment, request));
        let page: Vec<Fragment> = wanted.by_ref().take(request.page_len()).collect();
        let next = wanted.next().map(|fragment| fragment.begin());
        let fragments = page.into_iter().map(|fragment| self.listed(fragment, request));
        Ok(Page { fragments: fragments.collect::<Result<_, Error>>()?, next })
    }

    fn listed(
        &self,
        fragment: Fragment,
        request: &FragmentsRequest,
    ) -> Result<ListedFragment, Error> {
        let signed_url = match request.signature_ttl.filter(|_| fragment.is_persisted()) {
            None => String::new(),
            Some(ttl) => {
                let store = self.shared.stores.get(&fragment.backing_store)?;
                store.signed_url(&fragment, ttl)?
            }
        };
        Ok(ListedFragment { fragment, signed_url })
    }
}

/// Every fragment of the journal: stored ones, and local bytes that no store has.
pub(crate) fn all(served: &Served) -> Vec<Fragment> {
    // In this order: what is stored between the two looks is in the second.
    let local = served.unpersisted();
    let mut set: CoverSet = served.stored().all().into_iter().collect();
    set.extend(local);
    set.iter().cloned().collect()
}

fn is_wanted(fragment: &Fragment, request: &FragmentsRequest) -> bool {
    let is_stored = fragment.is_persisted();
    let is_old = is_stored && fragment.mod_time < request.begin_mod_time;
    let is_late = request.end_mod_time.is_some_and(|end| !is_stored || fragment.mod_time > end);
    fragment.begin() >= request.next_page_token && !is_old && !is_late
}
