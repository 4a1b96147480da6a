//! Which service answers a request: both protocols share the port and the journals.

use super::Settings;
use super::caller::{Seats, Stop, Visitor};
use super::intake::Intake;
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
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::Service;
use protocol::wire::courant::courant_server::CourantServer;
use protocol::wire::gazette::journal_server::JournalServer;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::body::Body;

type Answer = BoxFuture<'static, Result<Response<Body>, Infallible>>;

/// Bytes before each message of gRPC.
const FRAMING: usize = 5;

/// What all connections of a port share.
#[derive(Debug)]
pub struct House {
    broker: Broker,
    stop: Stop,
    guard: Arc<Guard>,
    seats: Seats,
    operators: Operators,
    json: Json,
    intake: Intake,
    message_max: usize,
    /// One check of a store at a time: they would find each other's probes.
    checking: Arc<Mutex<()>>,
}

impl House {
    pub fn new(broker: Broker, settings: Settings, stop: Stop) -> Arc<Self> {
        let clock = broker.config().clock.clone();
        // With what frames a message.
        let intake = Intake::new(settings.message_max.saturating_add(FRAMING));
        Arc::new(House {
            guard: Arc::new(Guard::new(settings.keys, clock)),
            seats: Seats::default(),
            operators: Operators::new(),
            json: Json::new(settings.origins, intake.clone()),
            intake,
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
            intake: self.intake.clone(),
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
    intake: Intake,
}

impl Service<Request<Incoming>> for Doors {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    // The generated services are called directly: a router between would box each body again.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if !is_grpc(&request) {
            let gateway = self.gateway.clone();
            return Box::pin(async move { Ok(gateway.answer(request).await) });
        }
        match request.uri().path().split('/').nth(1) {
            Some("protocol.Journal") => self.whole(self.gazette.clone(), request),
            Some("courant.v1.Courant") => self.whole(self.courant.clone(), request),
            _ => self.operators.call(request),
        }
    }
}

impl Doors {
    /// Hands a request to its service: one of a single message once that is there, since the
    /// service would take it in before it asks who sends it.
    fn whole<S>(&self, mut service: S, request: Request<Incoming>) -> Answer
    where
        S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
            + tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Send
            + 'static,
        <S as tower::Service<Request<Incoming>>>::Future: Send + 'static,
        <S as tower::Service<Request<Body>>>::Future: Send + 'static,
    {
        if has_many_messages(request.uri().path()) {
            return Box::pin(service.call(request));
        }
        let intake = self.intake.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            match intake.take(body).await {
                Ok(taken) => {
                    let body = Body::new(Full::new(taken.bytes));
                    let answered = service.call(Request::from_parts(head, body)).await;
                    drop(taken.room);
                    answered
                }
                Err(refused) => Ok(refused.into_http()),
            }
        })
    }
}

/// Whether a request to this path is a stream of messages, which its service takes one by one.
fn has_many_messages(path: &str) -> bool {
    path.ends_with("/Append") || path.ends_with("/Replicate")
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
