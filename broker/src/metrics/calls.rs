//! The calls of gRPC services, under the names that go-grpc-prometheus gives them.

use super::{VALID, counters};
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Registry};
use prost_reflect::{DescriptorPool, MethodDescriptor};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;
use tonic::Code;

const METHOD: [&str; 3] = ["grpc_type", "grpc_service", "grpc_method"];
const HANDLED: [&str; 4] = ["grpc_type", "grpc_service", "grpc_method", "grpc_code"];

/// The methods of all services of a port. Others are not counted: who asks for what is not there
/// could make any number of series.
#[derive(Debug)]
pub(crate) struct Calls {
    by_path: BTreeMap<String, Arc<Method>>,
}

#[derive(Debug)]
struct Method {
    /// Its labels.
    names: [String; 3],
    started: IntCounter,
    received: IntCounter,
    sent: IntCounter,
    ok: IntCounter,
    handled: IntCounterVec,
    seconds: Histogram,
}

impl Calls {
    /// Those of our services, of health and of reflection.
    pub fn new(registry: &Registry) -> Self {
        let vec = |name, help| counters(name, help, &METHOD);
        let started = vec("grpc_server_started_total", "Calls that began.");
        let received = vec("grpc_server_msg_received_total", "Messages that clients sent.");
        let sent = vec("grpc_server_msg_sent_total", "Messages that were sent to clients.");
        let help = "Calls that ended, by the code that their clients got.";
        let handled = counters("grpc_server_handled_total", help, &HANDLED);
        let help = "Seconds from a call's head to its end.";
        let options = HistogramOpts::new("grpc_server_handling_seconds", help);
        let seconds = HistogramVec::new(options, &METHOD).expect(VALID);
        let collectors: [Box<dyn Collector>; 5] = [
            Box::new(started.clone()),
            Box::new(received.clone()),
            Box::new(sent.clone()),
            Box::new(handled.clone()),
            Box::new(seconds.clone()),
        ];
        for collector in collectors {
            registry.register(collector).expect("each name is registered once");
        }
        let method = |method: MethodDescriptor| {
            let names = names_of(&method);
            let labels = names.each_ref().map(String::as_str);
            let [kind, service, name] = labels;
            let path = format!("/{service}/{name}");
            let method = Method {
                started: started.with_label_values(&labels),
                received: received.with_label_values(&labels),
                sent: sent.with_label_values(&labels),
                ok: handled.with_label_values(&[kind, service, name, name_of(Code::Ok)]),
                seconds: seconds.with_label_values(&labels),
                handled: handled.clone(),
                names,
            };
            (path, Arc::new(method))
        };
        Calls { by_path: methods().into_iter().map(method).collect() }
    }

    /// A call that begins, if there is a method of that path.
    pub fn begin(&self, path: &str) -> Option<Call> {
        let method = self.by_path.get(path)?.clone();
        method.started.inc();
        Some(Call { method, begun: Instant::now(), is_ended: false })
    }
}

fn methods() -> Vec<MethodDescriptor> {
    let sets = [
        protocol::wire::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let mut methods = Vec::new();
    for set in sets {
        let pool = DescriptorPool::decode(set).expect("the services were made from it");
        let services: Vec<_> = pool.services().collect();
        methods.extend(services.iter().flat_map(|service| service.methods().collect::<Vec<_>>()));
    }
    methods
}

fn names_of(method: &MethodDescriptor) -> [String; 3] {
    let kind = match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => "unary",
        (true, false) => "client_stream",
        (false, true) => "server_stream",
        (true, true) => "bidi_stream",
    };
    [kind, method.parent_service().full_name(), method.name()].map(str::to_owned)
}

/// A call under way. Dropped before it is told how it ended, its client went away.
#[derive(Debug)]
pub(crate) struct Call {
    method: Arc<Method>,
    begun: Instant,
    is_ended: bool,
}

impl Call {
    /// A counter of the messages that its client sends.
    pub fn received(&self) -> IntCounter {
        self.method.received.clone()
    }

    /// Messages that were handed on to its client.
    pub fn sent(&self, messages: u64) {
        self.method.sent.inc_by(messages);
    }

    /// It ended so. What is told after the first time does not count.
    pub fn end(&mut self, code: Code) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        self.method.seconds.observe(self.begun.elapsed().as_secs_f64());
        if code == Code::Ok {
            return self.method.ok.inc();
        }
        let [kind, service, name] = self.method.names.each_ref().map(String::as_str);
        self.method.handled.with_label_values(&[kind, service, name, name_of(code)]).inc();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// A code as Go spells it.
fn name_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}
