//! Requests of fragment stores: how many, how long, and what they carried.

use super::{VALID, counters};
use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Registry};
use tokio::time::Instant;

const SUCCESS: &str = "success";
const ERROR: &str = "error";

/// Bounds of durations, in seconds, and of listings, in objects: those of Gazette.
const SECONDS: [f64; 6] = [0.01, 0.04, 0.16, 0.64, 2.56, 10.24];
const OBJECTS: [f64; 6] = [10.0, 40.0, 160.0, 640.0, 2_560.0, 10_240.0];

/// What a store is asked to do, in Gazette's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// Whether there is an object, and of which size.
    Exists,
    Get,
    Put,
    List,
    Remove,
    SignGet,
}

impl Request {
    fn name(self) -> &'static str {
        match self {
            Request::Exists => "exists",
            Request::Get => "get",
            Request::Put => "put",
            Request::List => "list",
            Request::Remove => "remove",
            Request::SignGet => "signget",
        }
    }
}

/// The counters of all stores. They have a registry of their own: where a company keeps what is for
/// those alone who may list. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    seconds: HistogramVec,
    total: IntCounterVec,
    put_bytes: IntCounterVec,
    listed: HistogramVec,
    checks: IntCounterVec,
}

/// The counters of one store. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    requests: Requests,
    /// Its label.
    store: String,
}

impl Requests {
    pub fn new(registry: &Registry) -> Self {
        const OPERATION: [&str; 3] = ["store", "operation", "status"];
        let histogram = |name, help, labels: &[&str], bounds: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
            HistogramVec::new(options, labels).expect(VALID)
        };
        let requests = Requests {
            seconds: histogram(
                "gazette_store_operation_duration_seconds",
                "Seconds that a store took to answer.",
                &OPERATION,
                &SECONDS,
            ),
            total: counters(
                "gazette_store_operation_total",
                "Requests of a store, by how they ended.",
                &OPERATION,
            ),
            put_bytes: counters(
                "gazette_store_put_bytes_total",
                "Bytes of the objects that were put, as they lie in the store.",
                &["store", "encoding"],
            ),
            listed: histogram(
                "gazette_store_list_items_count",
                "Objects that a listing found.",
                &["store"],
                &OBJECTS,
            ),
            checks: counters(
                "gazette_store_health_check_total",
                "Puts and listings, each of which tells whether the store is well.",
                &["store", "status"],
            ),
        };
        requests.register(registry);
        requests
    }

    fn register(&self, registry: &Registry) {
        let collectors: [Box<dyn Collector>; 5] = [
            Box::new(self.seconds.clone()),
            Box::new(self.total.clone()),
            Box::new(self.put_bytes.clone()),
            Box::new(self.listed.clone()),
            Box::new(self.checks.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("each name is registered once");
        }
    }

    /// The counters of the store at a URL.
    pub fn of(&self, url: &str) -> Meter {
        Meter { requests: self.clone(), store: label_of(url).to_owned() }
    }
}

/// A store's name in series. What stands behind the path may hold a secret.
pub(super) fn label_of(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

impl Meter {
    /// A request that began then is over.
    pub fn asked(&self, request: Request, begun: Instant, is_ok: bool) {
        let labels = [self.store.as_str(), request.name(), status(is_ok)];
        self.requests.total.with_label_values(&labels).inc();
        let seconds = begun.elapsed().as_secs_f64();
        self.requests.seconds.with_label_values(&labels).observe(seconds);
    }

    /// An object of so many bytes was put, with that encoding if it has one.
    pub fn put(&self, len: u64, encoding: Option<&str>) {
        let labels = [self.store.as_str(), encoding.unwrap_or("none")];
        self.requests.put_bytes.with_label_values(&labels).inc_by(len);
    }

    /// A listing found so many objects.
    pub fn listed(&self, objects: u64) {
        self.requests.listed.with_label_values(&[self.store.as_str()]).observe(objects as f64);
    }

    /// A put or a listing showed whether the store is well.
    pub fn checked(&self, is_well: bool) {
        let labels = [self.store.as_str(), status(is_well)];
        self.requests.checks.with_label_values(&labels).inc();
    }
}

fn status(is_ok: bool) -> &'static str {
    if is_ok { SUCCESS } else { ERROR }
}
