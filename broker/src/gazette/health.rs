//! FragmentStoreHealth: whether a store does what fragments need of it (gazette-spec 1.11).

use crate::Broker;
use index::store::StoreError;
use protocol::request::FragmentStoreHealthRequest;
use std::time::Duration;

/// A store that takes longer to answer is not healthy (gazette-spec 2.7).
const CHECK_MAX: Duration = Duration::from_secs(60);

/// Says why the store is not healthy, if it is not.
///
/// The check is made when it is asked for, and not remembered: an operator who repaired a store
/// wants to know of it as it is.
pub async fn check(broker: &Broker, request: &FragmentStoreHealthRequest) -> Result<(), String> {
    let url = request.store.as_str();
    match tokio::time::timeout(CHECK_MAX, try_store(broker, request)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("store {url}: no answer within {} s", CHECK_MAX.as_secs())),
    }
}

async fn try_store(
    broker: &Broker,
    request: &FragmentStoreHealthRequest,
) -> Result<(), StoreError> {
    let store = broker.stores().open(request.store.as_str())?;
    store.check().await?;
    match &request.check_delete {
        Some(prefix) => store.check_delete(prefix).await,
        None => Ok(()),
    }
}
