//! Status: what the broker holds and what it waits for, as one JSON object.

use crate::stores::Health;
use crate::{Broker, Served};
use client::Durability;
use index::Recovered;
use protocol::{Journal, Span};
use serde_json::{Value, json};

/// Journals that are named one by one; of more, only their number is told.
const NAMED_MAX: usize = 100;

/// The object of a `StatusResponse`. Its members are a promise to scripts: they may become more.
pub fn status(broker: &Broker) -> Value {
    let served = broker.all_served();
    let config = broker.config();
    let etcd = broker.key_space().etcd();
    let (in_memory, on_disk) = broker.staged();
    let Sums { local, unsynced, unpersisted } = sums(&served);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "process": broker.process_id().to_string(),
        "endpoint": config.endpoint,
        "cluster_id": format!("{:016x}", etcd.cluster_id),
        "revision": etcd.revision,
        "durability": match config.durability {
            Durability::Disk => "disk",
            Durability::Memory => "memory",
        },
        "is_closing": broker.is_closing(),
        "journals": served.len(),
        "bytes": { "local": local, "unsynced": unsynced, "unpersisted": unpersisted },
        "oldest": oldest(broker, &served, unsynced),
        "is_over_budget": broker.is_over_budget(),
        "open_for_passthrough": pinned(&served, broker.revoked()),
        "unfinished_appends": { "bytes_in_memory": in_memory, "bytes_on_disk": on_disk },
        "stores": broker.stores().health().into_iter().map(store).collect::<Vec<_>>(),
        "attention": attention(&served),
        "recovered": recovered(broker.recovered()),
    })
}

/// The object of a `StatusResponse` about one journal, whose members are a promise as well.
pub fn journal(served: &Served) -> Value {
    let stat = served.stat();
    let (lost, damaged) = served.missing();
    json!({
        "journal": stat.journal.as_str(),
        "life": format!("{:013x}", stat.life.get()),
        "first": stat.first.get(),
        "head": stat.head.get(),
        "synced": stat.synced.get(),
        "persisted": stat.persisted.get(),
        "local_bytes": served.replica().local_len(),
        "is_open_for_passthrough": served.replica().is_pinned(),
        "fragments": stat.fragments,
        "lost": lost.into_iter().map(span).collect::<Vec<_>>(),
        "damaged": damaged.into_iter().map(span).collect::<Vec<_>>(),
        "second_writer": served.second_writer(),
    })
}

fn span(span: Span) -> Value {
    json!({ "begin": span.begin().get(), "end": span.end().get() })
}

/// Bytes of all journals.
#[derive(Default)]
struct Sums {
    local: u64,
    unsynced: u64,
    unpersisted: u64,
}

fn sums(served: &[std::sync::Arc<Served>]) -> Sums {
    let mut sums = Sums::default();
    for served in served {
        let stat = served.stat();
        sums.local += served.replica().local_len();
        sums.unsynced += stat.head.since(stat.synced);
        sums.unpersisted += stat.head.since(stat.persisted);
    }
    sums
}

/// For how many seconds the oldest byte has waited to be synced, and to be stored; null where none
/// waits.
fn oldest(broker: &Broker, served: &[std::sync::Arc<Served>], unsynced: u64) -> Value {
    let now_us = broker.config().clock.now_us();
    let age = |since_us: Option<u64>| {
        since_us.map(|since_us| now_us.saturating_sub(since_us) as f64 / 1e6)
    };
    let unsynced = broker.unsynced_since_us().filter(|_| unsynced > 0);
    let unpersisted = served.iter().filter_map(|served| served.replica().unpersisted_since_us());
    json!({ "unsynced_seconds": age(unsynced), "unpersisted_seconds": age(unpersisted.min()) })
}

/// What open files keep from being freed, whatever the budget: the largest journals are named.
fn pinned(served: &[std::sync::Arc<Served>], revoked: u64) -> Value {
    let pinned = served.iter().filter(|served| served.replica().is_pinned());
    let mut pinned: Vec<_> =
        pinned.map(|served| (served.replica().local_len(), served.journal().as_str())).collect();
    pinned.sort_by(|a, b| b.cmp(a));
    let named = pinned.iter().take(NAMED_MAX);
    json!({
        "count": pinned.len(),
        "revoked": revoked,
        "local_bytes": pinned.iter().map(|(bytes, _)| bytes).sum::<u64>(),
        "journals": named
            .map(|(bytes, journal)| json!({ "journal": journal, "local_bytes": bytes }))
            .collect::<Vec<_>>(),
    })
}

fn store(Health { url, failures, reason }: Health) -> Value {
    json!({ "url": url, "failures": failures, "reason": reason })
}

/// The journals that somebody should look at, and why.
fn attention(served: &[std::sync::Arc<Served>]) -> Value {
    let mut named = Vec::new();
    let mut count = 0;
    for served in served {
        let (lost, damaged) = served.missing();
        let gaps = lost.len() + damaged.len();
        let second_writer = served.second_writer();
        if gaps == 0 && second_writer.is_none() {
            continue;
        }
        count += 1;
        if named.len() < NAMED_MAX {
            let journal = served.journal().as_str();
            named.push(json!({
                "journal": journal,
                "gaps": gaps,
                "lost_bytes": lost.iter().map(|span| span.len()).sum::<u64>(),
                "damaged_bytes": damaged.iter().map(|span| span.len()).sum::<u64>(),
                "second_writer": second_writer,
            }));
        }
    }
    json!({ "count": count, "journals": named })
}

fn recovered(recovered: &Recovered) -> Value {
    let spans = |spans: &[(Journal, Span)]| -> Vec<Value> {
        let shown = spans.iter().take(NAMED_MAX);
        let named = |(journal, at): &(Journal, Span)| {
            let mut told = span(*at);
            told["journal"] = journal.as_str().into();
            told
        };
        shown.map(named).collect()
    };
    json!({
        "was_clean_stop": recovered.is_clean,
        "was_other_boot": recovered.is_other_boot,
        "journals": recovered.journals,
        "records": recovered.records,
        "bytes": recovered.bytes,
        "cut_records": recovered.cut_records,
        "lost": spans(&recovered.lost),
        "damaged": spans(&recovered.damaged),
        "healed": spans(&recovered.healed),
        "damaged_places_of_the_log": recovered.damaged_log.len(),
        "orphans": recovered.orphans.iter().take(NAMED_MAX).collect::<Vec<_>>(),
    })
}
