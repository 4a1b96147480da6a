//! Heads: where many journals end, at once or as soon as one of them is not as it was known.

use crate::server::caller::Caller;
use crate::{Error, Served};
use client::Stat;
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use protocol::wire::courant::{Head, HeadsRequest, HeadsResponse, Known};
use protocol::{Journal, Life};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::watch;

/// The longest wait: callers ask again, and so notice a broker that is no more.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The heads of this moment.
///
/// Journals that are asked for by name are waited for until their end is known, since an unlisted
/// one would seem empty. All below a prefix are told as they are.
pub async fn heads(caller: &Caller, request: &HeadsRequest) -> Result<HeadsResponse, Error> {
    // Before the journals are looked up, so that one created meanwhile is not missed.
    let census = *caller.broker.census().borrow();
    let stats: Vec<Stat> = if request.journals.is_empty() {
        let below = caller.broker.served_below(&request.prefix);
        let seen = below.iter().filter(|served| caller.sees(served));
        seen.map(|served| served.stat()).collect()
    } else {
        let served: Vec<_> = request.journals.iter().filter_map(|it| found(caller, it)).collect();
        try_join_all(served.iter().map(|served| caller.broker.stat(served))).await?
    };
    let mut heads: Vec<Head> = stats.into_iter().map(head).collect();
    heads.sort_by(|a, b| a.journal.cmp(&b.journal));
    Ok(HeadsResponse { heads, census, appends_each: true })
}

/// Waits until something is not as the request knows it, and not longer than it says.
pub async fn wait_for_change(caller: &Caller, request: &HeadsRequest) {
    let mut census = caller.broker.census();
    let mut grown = FuturesUnordered::new();
    for known in &request.known {
        match watch_of(caller, known) {
            Some(head) => grown.push(leaves(head, known.head)),
            None => return,
        }
    }
    let at_most = Duration::from_millis(request.wait_ms.into()).min(WAIT_MAX);
    tokio::select! {
        biased;
        () = caller.ended() => {}
        _ = census.wait_for(|census| *census != request.census) => {}
        Some(()) = grown.next() => {}
        () = tokio::time::sleep(at_most) => {}
    }
}

/// The head of a journal that is as it is known; `None` when it is not.
fn watch_of(caller: &Caller, known: &Known) -> Option<watch::Receiver<index::Head>> {
    let served = found(caller, &known.journal)?;
    if served.life() != Life::new(known.life) {
        return None;
    }
    let head = served.replica().watch();
    let is_known = is_at(&head.borrow(), known.head);
    is_known.then_some(head)
}

fn is_at(head: &index::Head, known: i64) -> bool {
    !head.is_gone && head.offset.get() == known
}

async fn leaves(mut head: watch::Receiver<index::Head>, known: i64) {
    // A replica that is dropped is no longer as it was known either.
    let _ = head.wait_for(|head| !is_at(head, known)).await;
}

fn found(caller: &Caller, name: &str) -> Option<Arc<Served>> {
    caller.served(&Journal::new(name).ok()?)
}

/// A journal's state as the wire tells it.
pub fn head(stat: Stat) -> Head {
    let modified = stat.modified.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Head {
        journal: stat.journal.to_string(),
        life: stat.life.get(),
        first: stat.first.get(),
        trimmed: Some(stat.trimmed.get()),
        head: stat.head.get(),
        synced: stat.synced.get(),
        persisted: stat.persisted.get(),
        modified_us: i64::try_from(modified.as_micros()).unwrap_or(i64::MAX),
        create_revision: stat.create_revision,
        mod_revision: stat.mod_revision,
        content_type: stat.content_type.unwrap_or_default(),
        may_write: stat.may_write,
        fragments: stat.fragments,
        gaps: stat.gaps,
        may_read: stat.may_read,
        registers: stat.registers.map(|registers| registers.to_bytes().into()),
    }
}
