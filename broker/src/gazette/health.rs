//! FragmentStoreHealth: whether a fragment can be put, listed, read and deleted in a store.

use crate::Broker;
use index::store::{Digest, Source, Store, StoreError, digest};
use protocol::{Codec, Fragment, Journal, Offset, Span};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A store that takes longer to answer is not healthy (gazette-spec 2.7).
const CHECK_MAX: Duration = Duration::from_secs(60);

/// The journal of the probe. The name is reserved, so it is no journal of anybody's.
const PROBE_JOURNAL: &str = ".courant/health-check";

/// What the probe holds.
#[derive(Debug)]
struct Probe(&'static [u8]);

const PROBE: Probe = Probe(b"health-check\n");

/// Says why the store is not healthy, if it is not. Gazette tries the deletion on request only;
/// here it is always a part of the check, since a probe that can't be deleted would stay.
pub async fn check(broker: &Broker, url: &str) -> Result<(), String> {
    match tokio::time::timeout(CHECK_MAX, try_store(broker, url)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("store {url}: no answer within {} s", CHECK_MAX.as_secs())),
    }
}

async fn try_store(broker: &Broker, url: &str) -> Result<(), StoreError> {
    let store = broker.stores().get(url)?;
    let probe = probe().await?;
    let put = store.put(&probe, Arc::new(PROBE)).await?;
    let is_read = read_back(&store, &put).await;
    store.delete(&put).await?;
    is_read
}

async fn read_back(store: &Store, put: &Fragment) -> Result<(), StoreError> {
    store.verify(put).await?;
    let listed = store.list(&put.journal).await?;
    if listed.iter().any(|fragment| fragment.same_content(put)) {
        return Ok(());
    }
    Err(StoreError::Missing { store: store.url().to_owned(), name: put.to_string() })
}

async fn probe() -> Result<Fragment, StoreError> {
    let span = Span::at(Offset::ZERO, PROBE.0.len() as u64);
    let Digest { sum, .. } = digest(span, Arc::new(PROBE)).await?;
    let journal = Journal::new(PROBE_JOURNAL).expect("a valid name");
    Ok(Fragment::local(journal, span, sum, Codec::None))
}

impl Source for Probe {
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset.get()).map_or(self.0.len(), |at| at.min(self.0.len()));
        let len = buf.len().min(self.0.len() - from);
        buf[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }
}
