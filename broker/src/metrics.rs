//! What the broker counts, for Prometheus: under Gazette's names where the meaning is the same
//! (gazette-spec 6.4), and under `courant_` where Gazette has nothing like it.
//!
//! What happens often is counted by atomics alone. What can be looked up is not counted at all, but
//! looked up when somebody asks.

mod calls;
mod process;
mod requests;
mod scrape;
mod traffic;

pub(crate) use calls::Call;
pub(crate) use requests::{Meter, Request, Requests};
pub(crate) use traffic::Traffic;

use crate::{Committed, Served};
use calls::Calls;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};
use protocol::Status;
use std::sync::Arc;
use tokio::time::Instant;

/// The content type of what Prometheus reads.
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Bounds of append latencies, in seconds: from two writes into the page cache to a disk that
/// hangs.
const LATENCIES: [f64; 17] = [
    25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];

/// The status of what went well, and of what ended in an error of the call.
const OK: &str = "ok";
const ERROR: &str = "<error>";

/// The requests that Gazette counts, of whichever protocol they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    List,
    Apply,
    Read,
    Append,
    Replicate,
    ListFragments,
    FragmentStoreHealth,
}

impl Operation {
    const ALL: [Operation; 7] = [
        Operation::List,
        Operation::Apply,
        Operation::Read,
        Operation::Append,
        Operation::Replicate,
        Operation::ListFragments,
        Operation::FragmentStoreHealth,
    ];

    /// The name of its RPC.
    fn name(self) -> &'static str {
        match self {
            Operation::List => "List",
            Operation::Apply => "Apply",
            Operation::Read => "Read",
            Operation::Append => "Append",
            Operation::Replicate => "Replicate",
            Operation::ListFragments => "ListFragments",
            Operation::FragmentStoreHealth => "FragmentStoreHealth",
        }
    }
}

/// The counters of one broker.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// What only those are told who may list.
    of_stores: Registry,
    requests: Requests,
    calls: Calls,
    /// By the number of the operation.
    started: [IntCounter; Operation::ALL.len()],
    succeeded: [IntCounter; Operation::ALL.len()],
    completed: IntCounterVec,
    commits: IntCounter,
    commit_bytes: IntCounter,
    rollbacks: IntCounter,
    rollback_bytes: IntCounter,
    append_seconds: Histogram,
    read_bytes: IntCounter,
    persisted: IntCounter,
    persisted_bytes: IntCounter,
}

impl Metrics {
    pub fn new() -> Self {
        let (registry, of_stores) = (Registry::new(), Registry::new());
        let started = counters(
            "gazette_journal_server_started_totals",
            "Requests that began, by operation.",
            &["operation"],
        );
        let completed = counters(
            "gazette_journal_server_completed_totals",
            "Requests that ended, by operation and by how: ok, <error>, or the status.",
            &["operation", "status"],
        );
        let started_of = |operation: Operation| started.with_label_values(&[operation.name()]);
        let ok_of = |operation: Operation| completed.with_label_values(&[operation.name(), OK]);
        let metrics = Metrics {
            calls: Calls::new(&registry),
            requests: Requests::new(&of_stores),
            of_stores,
            started: Operation::ALL.map(started_of),
            succeeded: Operation::ALL.map(ok_of),
            completed: completed.clone(),
            commits: counter("gazette_spool_commits_total", "Appends that were committed."),
            commit_bytes: counter("gazette_spool_commit_bytes_total", "Bytes of their content."),
            rollbacks: counter(
                "gazette_spool_rollbacks_total",
                "Appends that were complete and did not happen.",
            ),
            rollback_bytes: counter("gazette_spool_rollback_bytes_total", "Bytes of those."),
            append_seconds: latencies(),
            read_bytes: counter("courant_read_bytes_total", "Bytes of content that were read."),
            persisted: counter(
                "gazette_spool_persisted_total",
                "Fragments that were put into a store.",
            ),
            persisted_bytes: counter(
                "courant_persisted_bytes_total",
                "Bytes of journals in those fragments, before compression.",
            ),
            registry,
        };
        metrics.register(started, completed);
        metrics
    }

    fn register(&self, started: IntCounterVec, completed: IntCounterVec) {
        let collectors: [Box<dyn Collector>; 10] = [
            Box::new(started),
            Box::new(completed),
            Box::new(self.commits.clone()),
            Box::new(self.commit_bytes.clone()),
            Box::new(self.rollbacks.clone()),
            Box::new(self.rollback_bytes.clone()),
            Box::new(self.append_seconds.clone()),
            Box::new(self.read_bytes.clone()),
            Box::new(self.persisted.clone()),
            Box::new(self.persisted_bytes.clone()),
        ];
        for collector in collectors {
            self.registry.register(collector).expect("each name is registered once");
        }
    }

    /// A request that begins. It ends when what is returned is told how, or dropped.
    pub fn begin(self: &Arc<Self>, operation: Operation) -> Counted {
        self.started[operation as usize].inc();
        Counted { metrics: self.clone(), operation, is_ended: false }
    }

    /// What counts requests of stores.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// A gRPC call that begins, of the method at that path, if there is one.
    pub(crate) fn begin_call(&self, path: &str) -> Option<Call> {
        self.calls.begin(path)
    }

    /// An append to a journal whose content, of `len` bytes, is complete. It may be several,
    /// `joined`; 0 is 1.
    pub(crate) fn begin_commit(
        self: &Arc<Self>,
        served: &Arc<Served>,
        len: u64,
        joined: u32,
    ) -> Committing {
        let (metrics, served, begun) = (self.clone(), served.clone(), Instant::now());
        Committing { metrics, served, len, appends: u64::from(joined.max(1)), begun }
    }

    /// Content that was read.
    pub(crate) fn read(&self, len: usize) {
        self.read_bytes.inc_by(len as u64);
    }

    /// A fragment that was put, of so many bytes of its journal.
    pub(crate) fn persisted(&self, len: u64) {
        self.persisted.inc();
        self.persisted_bytes.inc_by(len);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

/// A request under way. Dropped before it is told how it ended, it counts as an error: its client
/// went away, or the call failed.
#[derive(Debug)]
pub struct Counted {
    metrics: Arc<Metrics>,
    operation: Operation,
    is_ended: bool,
}

impl Counted {
    /// It ended with a status, as Gazette answers it.
    pub fn end(mut self, status: Status) {
        self.is_ended = true;
        match status {
            Status::Ok => self.metrics.succeeded[self.operation as usize].inc(),
            status => self.count(&status.to_string()),
        }
    }

    fn count(&self, status: &str) {
        self.metrics.completed.with_label_values(&[self.operation.name(), status]).inc();
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.is_ended {
            self.count(ERROR);
        }
    }
}

/// An append between its last byte and its answer.
#[derive(Debug)]
pub(crate) struct Committing {
    metrics: Arc<Metrics>,
    served: Arc<Served>,
    len: u64,
    appends: u64,
    begun: Instant,
}

impl Committing {
    /// It ended. `None`: it did not happen.
    pub fn end(self, committed: Option<&Committed>) {
        let Some(committed) = committed else {
            self.metrics.rollbacks.inc_by(self.appends);
            return self.metrics.rollback_bytes.inc_by(self.len);
        };
        self.metrics.append_seconds.observe(self.begun.elapsed().as_secs_f64());
        if !committed.is_repeated {
            self.metrics.commits.inc_by(self.appends);
            self.metrics.commit_bytes.inc_by(committed.span.len());
            self.served.traffic().add_appended(committed.span.len());
        }
    }
}

const VALID: &str = "the names and labels are valid";

fn counter(name: &str, help: &str) -> IntCounter {
    IntCounter::new(name, help).expect(VALID)
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), labels).expect(VALID)
}

fn latencies() -> Histogram {
    let help = "Seconds from the last byte of an append to its answer.";
    let options = HistogramOpts::new("courant_append_duration_seconds", help);
    Histogram::with_opts(options.buckets(LATENCIES.to_vec())).expect(VALID)
}
