//! What is looked up when Prometheus asks: sums over journals, and some of them one by one.

use super::process::process;
use super::requests::label_of;
use super::{Metrics, VALID, counters};
use crate::server::caller::Caller;
use crate::stores::Health;
use crate::{Broker, Served};
use prometheus::{GaugeVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};
use std::sync::Arc;

/// Journals that are told one by one, the first by name. A server of metrics keeps each series, and
/// a broker may have a million journals.
const JOURNALS_MAX: usize = 1000;

impl Metrics {
    /// Everything, as text. The journals that `caller` may list are told one by one, and none
    /// without one.
    pub(crate) fn text(&self, broker: &Broker, caller: Option<&Caller>) -> String {
        let scrape = Registry::new();
        let served = broker.all_served();
        sums(&scrape, &served);
        local(&scrape, broker);
        placed(&scrape, served.len());
        stores(&scrape, broker, caller.is_some());
        process(&scrape);
        if let Some(caller) = caller {
            journals(&scrape, served.iter().filter(|served| caller.sees(served)));
        }
        let mut families = self.registry.gather();
        if caller.is_some() {
            families.extend(self.of_stores.gather());
        }
        families.extend(scrape.gather());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        // A family that can't be written is one without a name or a value.
        TextEncoder::new().encode_to_string(&families).unwrap_or_default()
    }
}

/// Puts a gauge without labels.
pub(super) fn put(registry: &Registry, name: &str, help: &str, value: u64) {
    labelled(registry, name, help, &[]).with_label_values(&[] as &[&str]).set(signed(value));
}

fn labelled(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    let gauges = IntGaugeVec::new(Opts::new(name, help), labels).expect(VALID);
    registry.register(Box::new(gauges.clone())).expect("each name is registered once");
    gauges
}

/// Counters by journal, of what is counted elsewhere.
fn counted(registry: &Registry, name: &str, help: &str) -> IntCounterVec {
    let counters = IntCounterVec::new(Opts::new(name, help), &["journal"]).expect(VALID);
    registry.register(Box::new(counters.clone())).expect("each name is registered once");
    counters
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn sums(registry: &Registry, served: &[Arc<Served>]) {
    let (mut unsynced, mut unpersisted, mut gaps, mut second_writers) = (0, 0, 0, 0);
    for served in served {
        let stat = served.stat();
        unsynced += stat.head.since(stat.synced);
        unpersisted += stat.head.since(stat.persisted);
        gaps += u64::from(stat.gaps > 0);
        second_writers += u64::from(served.second_writer().is_some());
    }
    let sums = [
        ("courant_journals", "Journals that are served here.", served.len() as u64),
        ("courant_unsynced_bytes", "Bytes that a power cut would lose.", unsynced),
        ("courant_unpersisted_bytes", "Bytes that no store has yet.", unpersisted),
        ("courant_journals_with_gaps", "Journals of which bytes are lost or damaged.", gaps),
        (
            "courant_journals_with_second_writer",
            "Journals to whose stores another broker wrote.",
            second_writers,
        ),
    ];
    for (name, help, value) in sums {
        put(registry, name, help, value);
    }
}

fn local(registry: &Registry, broker: &Broker) {
    let data = broker.data();
    put(registry, "courant_local_bytes", "Bytes of journals in local files.", data.local_len());
    if let Some(budget) = data.options().local_budget {
        put(registry, "courant_local_budget_bytes", "The budget for local files.", budget);
    }
    if let Ok(space) = data.disk().space() {
        put(registry, "courant_disk_free_bytes", "Free bytes of the data's disk.", space.free);
        put(registry, "courant_disk_size_bytes", "The size of that disk.", space.total);
    }
    let help = "Fragments that were closed, to be put into a store.";
    let completed = IntCounter::new("gazette_spool_completed_total", help).expect(VALID);
    completed.inc_by(data.rolled());
    registry.register(Box::new(completed)).expect("each name is registered once");
    let help = "Bytes of appends that are not complete, in memory and on disk.";
    let staged = labelled(registry, "courant_staged_bytes", help, &["place"]);
    let (in_memory, on_disk) = broker.staged();
    staged.with_label_values(&["memory"]).set(signed(in_memory));
    staged.with_label_values(&["disk"]).set(signed(on_disk));
}

/// What Gazette's leader tells of its cluster. A broker that stands alone leads one of itself, and
/// holds one replica of each journal, whatever its spec says.
fn placed(registry: &Registry, journals: usize) {
    let gauges = [
        ("gazette_allocator_desired_replication_slots", "Replicas of journals.", journals),
        ("gazette_allocator_items", "Journals.", journals),
        ("gazette_allocator_members", "Brokers.", 1),
    ];
    for (name, help, value) in gauges {
        put(registry, name, help, value as u64);
    }
}

/// Sums for everybody; the stores by name, which say where a company keeps what, for those who may
/// list.
fn stores(registry: &Registry, broker: &Broker, with_names: bool) {
    let health = broker.stores().health();
    put(registry, "gazette_store_active", "Stores in use.", health.len() as u64);
    let failing = health.iter().filter(|store| store.failures > 0).count();
    put(registry, "courant_stores_failing", "Stores whose last request failed.", failing as u64);
    if !with_names {
        return;
    }
    let help = "Requests of a store that failed in a row.";
    let failures = labelled(registry, "courant_store_failures", help, &["store"]);
    for Health { url, failures: failed, .. } in health {
        failures.with_label_values(&[label_of(&url)]).set(failed.into());
    }
}

fn journals<'s>(registry: &Registry, served: impl Iterator<Item = &'s Arc<Served>>) {
    let gauges = |name, help| labelled(registry, name, help, &["journal"]);
    let heads = gauges("gazette_write_head", "Where the journal ends.");
    let first = gauges("courant_journal_first_offset", "Its first readable offset.");
    let unpersisted =
        gauges("courant_journal_unpersisted_bytes", "Bytes of it that no store has yet.");
    let local = gauges("courant_journal_local_bytes", "Bytes of it in local files.");
    let counters = |name, help| counted(registry, name, help);
    let appended = counters("gazette_append_bytes_total", "Bytes of content that it took.");
    let read = counters("gazette_read_bytes_total", "Bytes of content that were read of it.");
    let help = "When it last grew, in seconds since 1970.";
    let opts = Opts::new("courant_journal_modified_seconds", help);
    let modified = GaugeVec::new(opts, &["journal"]).expect(VALID);
    registry.register(Box::new(modified.clone())).expect("each name is registered once");
    let fetched = FetchedSeries::new(registry);
    for served in served.take(JOURNALS_MAX) {
        fetched.put(served);
        let stat = served.stat();
        let name = &[stat.journal.as_str()];
        heads.with_label_values(name).set(stat.head.get());
        first.with_label_values(name).set(stat.first.get());
        unpersisted.with_label_values(name).set(signed(stat.head.since(stat.persisted)));
        local.with_label_values(name).set(signed(served.replica().local_len()));
        appended.with_label_values(name).inc_by(served.traffic().appended());
        read.with_label_values(name).inc_by(served.traffic().read());
        let since = stat.modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        modified.with_label_values(name).set(since.as_secs_f64());
    }
}

/// What was fetched of stored fragments, by journal and codec.
struct FetchedSeries([IntCounterVec; 4]);

impl FetchedSeries {
    fn new(registry: &Registry) -> Self {
        let series = [
            ("gazette_fragment_open_total", "Stored fragments that were opened."),
            ("gazette_fragment_open_bytes_total", "Bytes of journals in those."),
            ("gazette_read_fragment_bytes_total", "Bytes of journals that were read of those."),
            (
                "gazette_discard_fragment_bytes_total",
                "Bytes that were decompressed only to reach what was asked for.",
            ),
        ];
        let series = series.map(|(name, help)| counters(name, help, &["journal", "codec"]));
        for counters in &series {
            registry.register(Box::new(counters.clone())).expect("each name is registered once");
        }
        FetchedSeries(series)
    }

    fn put(&self, served: &Served) {
        for (codec, fetched) in served.traffic().all_fetched() {
            let labels = [served.journal().as_str(), codec.name()];
            let values =
                [fetched.opened(), fetched.opened_len(), fetched.read(), fetched.skipped()];
            for (counters, value) in self.0.iter().zip(values) {
                counters.with_label_values(&labels).inc_by(value);
            }
        }
    }
}
