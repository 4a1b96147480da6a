//! Persisting: closed spans of local bytes become fragments of a store, in order.
//!
//! A store that is down costs nothing but local space: what waits for it is tried again at a
//! bounded rate, and goes on without a restart.

use crate::stored::LocalBytes;
use crate::{Broker, Error, Served, limits, retain};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use index::ledger::{Closed, Stored};
use index::store::{Store, StoreError, digest};
use index::{Content, Entry, Turn, record};
use protocol::{Fragment, LabelSet, Life, Remedy, Span};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often it is looked for what has rolled.
const LOOK: Duration = Duration::from_secs(1);

/// Persists what rolls, until the broker closes. Puts under way are given up then: local files
/// keep everything safe.
pub(crate) async fn run(broker: Broker) {
    let mut puts: FuturesUnordered<BoxFuture<'static, Life>> = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    let mut waiting: VecDeque<Arc<Served>> = VecDeque::new();
    loop {
        while puts.len() < limits::PUTS
            && let Some(served) = waiting.pop_front()
        {
            if busy.insert(served.life()) {
                puts.push(Box::pin(persist_next(broker.clone(), served)));
            }
        }
        tokio::select! {
            biased;
            () = broker.closed() => return,
            Some(life) = puts.next(), if !puts.is_empty() => {
                busy.remove(&life);
            }
            () = sleep(LOOK), if waiting.is_empty() => {
                let served = broker.all_served().into_iter();
                waiting.extend(served.filter(|served| is_due(&broker, served)));
            }
        }
    }
}

fn is_due(broker: &Broker, served: &Served) -> bool {
    let entry = served.entry();
    let store = entry.spec.fragment.stores.first();
    store.is_some_and(|url| broker.shared.stores.may_ask(url))
        && (!served.replica().to_persist().is_empty() || served.stored().to_see_to().is_some())
}

/// Persists all closed spans of one journal, up to the first that can't be.
async fn persist_next(broker: Broker, served: Arc<Served>) -> Life {
    let entry = served.entry();
    let listing = served.stored().to_see_to();
    let mut waiting = served.replica().to_persist();
    if listing.is_some() {
        waiting.extend(to_put_again(&broker, &served));
    }
    for closed in waiting {
        // One at a time where the store has failed: the next one may find it resting again.
        let store = entry.spec.fragment.stores.first();
        let Some(_permit) = store.and_then(|url| broker.shared.stores.ask(url)) else {
            return served.life();
        };
        if let Err(error) = persist(&broker, &served, &closed).await {
            let (journal, span) = (served.journal(), closed.span);
            match (error.remedy(), &error) {
                // The store has said so already, once.
                (Remedy::Later, _) | (Remedy::Fix, Error::Store(_)) => {
                    tracing::debug!(%journal, %span, %error, "not persisted yet");
                }
                (Remedy::Fix | Remedy::Lost | Remedy::Reroute, _) => {
                    tracing::warn!(%journal, %span, %error, "not persisted");
                }
            }
            return served.life();
        }
    }
    if let Some(listing) = listing {
        served.stored().set_seen_to(listing);
    }
    served.life()
}

/// Spans that were put once, of which the store has nothing any more, and the local files have
/// all: somebody deleted the objects. They are put again, unless their journal's retention would
/// have deleted them as well (`retain` sees to those).
fn to_put_again(broker: &Broker, served: &Served) -> Vec<Closed> {
    let since = retain::kept_since(broker, &served.entry().spec);
    let is_kept = |stored: &Stored| since.is_none_or(|since| stored.mod_time >= since);
    let mut vanished = served.vanished();
    vanished.retain(|closed| closed.persisted.as_ref().is_some_and(is_kept));
    if !vanished.is_empty() {
        let (journal, count) = (served.journal(), vanished.len());
        tracing::warn!(%journal, count, "fragments are gone from the store: they are put again");
    }
    vanished
}

/// Rolls and persists everything below the head, for a journal that is about to be deleted. The
/// turn keeps others from appending meanwhile.
pub(crate) async fn flush(
    broker: &Broker,
    served: &Arc<Served>,
    turn: &mut Turn,
) -> Result<(), Error> {
    let replica = served.replica();
    replica.roll()?;
    if replica.persisted() >= turn.head() {
        return Ok(());
    }
    // Only what is durable is put.
    let nothing = Content::Memory(bytes::Bytes::new());
    let entry = Entry { content: nothing, registers: None, writer: None, is_disk: true };
    turn.record(entry)?.done().await?;
    for closed in replica.to_persist() {
        if let Err(error) = persist(broker, served, &closed).await {
            return Err(unpersisted(served, error.to_string()));
        }
    }
    match replica.unpersisted_len() {
        0 => Ok(()),
        _ => Err(unpersisted(served, "they are beside damaged ones in one fragment".to_owned())),
    }
}

fn unpersisted(served: &Served, detail: String) -> Error {
    let (journal, len) = (served.journal().clone(), served.replica().unpersisted_len());
    Error::Unpersisted { journal, len, detail }
}

/// Persists one closed span: summed and compared with the log's checksum, put, recorded, shown.
pub(crate) async fn persist(
    broker: &Broker,
    served: &Arc<Served>,
    closed: &Closed,
) -> Result<(), Error> {
    let entry = served.entry();
    let Some(url) = entry.spec.fragment.stores.first() else { return Ok(()) };
    let store = broker.shared.stores.get(url)?;
    let source = Arc::new(LocalBytes::of(served));
    let digest = digest(closed.span, source.clone()).await?;
    if digest.crc32c != closed.crc {
        return damaged(served, closed.span);
    }
    let template = entry.spec.postfix_template()?;
    let first_append = i64::try_from(closed.first_append_us / 1_000_000).unwrap_or(i64::MAX);
    let local = Fragment::local(served.journal().clone(), closed.span, digest.sum, closed.codec);
    let path_postfix = template.evaluate(first_append, &entry.spec.labels);
    let fragment = Fragment { path_postfix, ..local };
    // Those of this moment: what changed since the span's end is recorded with a later fragment.
    let registers = served.replica().registers();
    let _storing = broker.shared.storing.read().await;
    let put = put(&store, &fragment, &registers, source).await;
    match put {
        Ok(stored) => {
            broker.shared.stores.succeeded(url);
            broker.metrics().persisted(stored.span.len());
            recorded(served, &store, stored).await?;
            broker.shared.stored.notify_one();
            Ok(())
        }
        Err(error) => {
            broker.shared.stores.failed(url, &error);
            Err(error.into())
        }
    }
}

async fn put(
    store: &Store,
    fragment: &Fragment,
    registers: &LabelSet,
    source: Arc<LocalBytes>,
) -> Result<Fragment, StoreError> {
    let most = limits::put_max(fragment.span.len());
    match timeout(most, store.put_with(fragment, registers, source)).await {
        Ok(put) => put,
        Err(_elapsed) => Err(StoreError::Unhealthy {
            store: store.url().to_owned(),
            detail: format!("it takes longer than {} s to put {fragment}", most.as_secs()),
        }),
    }
}

/// Records that a store has the span, and serves it from there once it is evicted.
async fn recorded(served: &Arc<Served>, store: &Store, stored: Fragment) -> Result<(), Error> {
    let persisted = record::Persisted {
        life: served.life().get(),
        begin: stored.begin().get(),
        end: stored.end().get(),
        sum: stored.sum.as_bytes().to_vec(),
        store: stored.backing_store.clone(),
        postfix: stored.path_postfix.clone(),
        mod_time: stored.mod_time,
        codec: stored.codec.number(),
    };
    // First into the set that readers look at: from the record on the span may be evicted.
    served.stored().add(stored.clone());
    let recorded = served.replica().persisted_as(persisted);
    served.forget_view();
    if served.is_purged() {
        // The journal was purged while this was put: nobody else will delete it.
        store.delete(&stored).await?;
    }
    recorded?;
    Ok(())
}

fn damaged(served: &Served, span: Span) -> Result<(), Error> {
    let journal = served.journal();
    tracing::error!(%journal, %span, "local bytes are damaged: they are not those of the log");
    served.replica().damaged(span)?;
    served.forget_view();
    Ok(())
}
