//! The services that tools ask of any gRPC server: is it well, and what does it serve.

use super::framed::Framed;
use super::limits::OPERATORS_LEN_MAX;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use protocol::wire::DESCRIPTORS;
use std::convert::Infallible;
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tower::Service;

/// What health is told of; the empty name is the whole server.
const SERVICES: [&str; 3] = ["", "protocol.Journal", "courant.v1.Courant"];

/// Health and reflection. They say nothing about journals, and are open to everybody: those who
/// probe have no token.
#[derive(Clone, Debug)]
pub struct Operators {
    routes: Routes,
    health: HealthReporter,
}

impl Operators {
    pub fn new() -> Self {
        let (health, health_service) = tonic_health::server::health_reporter();
        let health_service = health_service.max_decoding_message_size(OPERATORS_LEN_MAX);
        let described = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let valid = "the descriptors are those that the wire was made from";
        let v1 = described().build_v1().expect(valid);
        let v1alpha = described().build_v1alpha().expect(valid);
        let routes = Routes::new(health_service)
            .add_service(v1.max_decoding_message_size(OPERATORS_LEN_MAX))
            .add_service(v1alpha.max_decoding_message_size(OPERATORS_LEN_MAX));
        Operators { routes: routes.prepare(), health }
    }

    /// Says that the port takes requests.
    pub async fn serving(&self) {
        self.tell(ServingStatus::Serving).await;
    }

    /// Says that it will not for long.
    pub async fn stopping(&self) {
        self.tell(ServingStatus::NotServing).await;
    }

    async fn tell(&self, status: ServingStatus) {
        for service in SERVICES {
            self.health.set_service_status(service, status).await;
        }
    }

    /// Answers a request, with `Unimplemented` where it is for no service of these.
    pub fn call(
        &self,
        request: Request<Framed<Incoming>>,
    ) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        let mut routes = self.routes.clone();
        Box::pin(async move { routes.call(request).await })
    }
}
