//! Which service answers a request: both protocols share the port and the journals.

use super::Settings;
use super::caller::{Seats, Stop, Visitor};
use super::operators::Operators;
use crate::Broker;
use crate::auth::Guard;
use crate::courant::Courant;
use crate::gazette::Gazette;
use crate::http::Gateway;
use crate::json::Json;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::Service;
use protocol::wire::courant::courant_server::CourantServer;
use protocol::wire::gazette::journal_server::JournalServer;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::body::Body;
use tower::Service as _;

/// What all connections of a port share.
#[derive(Debug)]
pub struct House {
    broker: Broker,
    stop: Stop,
    guard: Arc<Guard>,
    seats: Seats,
    operators: Operators,
    json: Json,
    message_max: usize,
    /// One check of a store at a time: they would find each other's probes.
    checking: Arc<Mutex<()>>,
}

impl House {
    pub fn new(broker: Broker, settings: Settings, stop: Stop) -> Arc<Self> {
        let clock = broker.config().clock.clone();
        Arc::new(House {
            guard: Arc::new(Guard::new(settings.keys, clock)),
            seats: Seats::default(),
            operators: Operators::new(),
            json: Json::new(settings.origins, settings.message_max),
            message_max: settings.message_max,
            checking: Arc::default(),
            broker,
            stop,
        })
    }

    /// The services for one connection.
    pub fn doors(self: &Arc<Self>) -> Doors {
        let (guard, seats) = (self.guard.clone(), self.seats.clone());
        let visitor = Visitor::new(self.broker.clone(), self.stop.clone(), guard, seats);
        let gazette = Gazette::new(visitor.clone(), self.checking.clone());
        let courant = Courant::new(visitor.clone());
        Doors {
            gazette: JournalServer::new(gazette).max_decoding_message_size(self.message_max),
            courant: CourantServer::new(courant).max_decoding_message_size(self.message_max),
            gateway: Gateway::new(visitor, self.json.clone()),
            operators: self.operators.clone(),
        }
    }

    /// Tells those who watch the port's health that it takes requests.
    pub async fn serving(&self) {
        self.operators.serving().await;
    }

    /// Tells them that it is about to stop.
    pub async fn stopping(&self) {
        self.operators.stopping().await;
    }
}

/// The services of one connection.
pub struct Doors {
    gazette: JournalServer<Gazette>,
    courant: CourantServer<Courant>,
    gateway: Gateway,
    operators: Operators,
}

impl Service<Request<Incoming>> for Doors {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    // The generated services are called directly: a router between would box each body again.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if !is_grpc(&request) {
            let gateway = self.gateway.clone();
            return Box::pin(async move { Ok(gateway.answer(request).await) });
        }
        match request.uri().path().split('/').nth(1) {
            Some("protocol.Journal") => self.gazette.clone().call(request),
            Some("courant.v1.Courant") => self.courant.clone().call(request),
            _ => self.operators.call(request),
        }
    }
}

/// Whether it is a gRPC request: HTTP/2 with a content type that begins so, as clients write
/// `application/grpc+proto` as well.
fn is_grpc<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE);
    request.version() == Version::HTTP_2
        && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_grpc_over_http2_goes_to_the_services() {
        let cases = [
            (Version::HTTP_2, Some("application/grpc"), true),
            (Version::HTTP_2, Some("application/grpc+proto"), true),
            (Version::HTTP_2, Some("text/plain"), false),
            (Version::HTTP_2, None, false),
            // Case: a service needs trailers, which HTTP/1 clients don't ask for.
            (Version::HTTP_11, Some("application/grpc"), false),
        ];
        for (version, content_type, expected) in cases {
            let mut request = Request::builder().version(version);
            if let Some(content_type) = content_type {
                request = request.header(CONTENT_TYPE, content_type);
            }
            let request = request.body(()).expect("a valid request");
            assert_eq!(is_grpc(&request), expected, "{version:?} {content_type:?}");
        }
    }
}
