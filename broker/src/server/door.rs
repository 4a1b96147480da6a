//! Which service answers a request: both protocols share the port and the journals.

use super::caller::{Rooms, Stop, Visitor};
use super::deadline::{exceeded, timeout_of};
use super::framed::{FRAMING, Framed};
use super::intake::Intake;
use super::operators::Operators;
use super::reply::Reply;
use super::{Settings, limits};
use crate::Broker;
use crate::append::Budget;
use crate::auth::Guard;
use crate::courant::Courant;
use crate::gazette::{Gazette, call_error};
use crate::http::Gateway;
use crate::json::Json;
use crate::metrics::{Call, Metrics};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::Service;
use protocol::wire::courant::courant_server::CourantServer;
use protocol::wire::gazette::journal_server::JournalServer;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tonic::Status;
use tonic::body::Body;

type Answer = BoxFuture<'static, Result<Response<Reply>, Infallible>>;

/// What all connections of a port share.
#[derive(Debug)]
pub struct House {
    broker: Broker,
    stop: Stop,
    guard: Arc<Guard>,
    rooms: Rooms,
    /// Room for messages of Append streams that are not whole.
    messages: Arc<Budget>,
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
        let memory = broker.config().memory;
        let longest = settings.message_max.saturating_add(FRAMING);
        let intake = Intake::new(memory, longest);
        let longest = longest as u64;
        Arc::new(House {
            guard: Arc::new(Guard::new(settings.keys, clock)),
            rooms: Rooms::default(),
            messages: Budget::new("in messages that are not whole", memory.messages().max(longest)),
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
        let (guard, rooms) = (self.guard.clone(), self.rooms.clone());
        let visitor = Visitor::new(self.broker.clone(), self.stop.clone(), guard, rooms);
        let memory = self.broker.config().memory;
        let room = memory.messages_of_connection().max(self.message_max as u64 + FRAMING as u64);
        let here = Budget::new("in messages of one connection that are not whole", room);
        let gazette = Gazette::new(visitor.clone(), self.checking.clone());
        let courant = Courant::new(visitor.clone());
        Doors {
            gazette: JournalServer::new(gazette).max_decoding_message_size(self.message_max),
            courant: CourantServer::new(courant).max_decoding_message_size(self.message_max),
            gateway: Gateway::new(visitor.clone(), self.json.clone()),
            visitor,
            messages: [self.messages.clone(), here],
            operators: self.operators.clone(),
            intake: self.intake.clone(),
            metrics: self.broker.metrics().clone(),
        }
    }

    /// The flow control window of a connection beside so many others: its part of the memory for
    /// all of them.
    pub fn window(&self, others: usize) -> u32 {
        let part = self.broker.config().memory.windows() / (others as u64 + 1);
        let part = u32::try_from(part).unwrap_or(u32::MAX);
        part.clamp(limits::CONNECTION_WINDOW_MIN, limits::CONNECTION_WINDOW)
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
    visitor: Visitor,
    /// Room for messages that are not whole: of all connections, and of this one.
    messages: [Arc<Budget>; 2],
    operators: Operators,
    intake: Intake,
    metrics: Arc<Metrics>,
}

impl Service<Request<Incoming>> for Doors {
    type Response = Response<Reply>;
    type Error = Infallible;
    type Future = Answer;

    // The generated services are called directly: a router between would box each body again.
    fn call(&self, request: Request<Incoming>) -> Self::Future {
        if !is_grpc(&request) {
            let gateway = self.gateway.clone();
            return Box::pin(async move { Ok(Reply::plain(gateway.answer(request).await)) });
        }
        let call = self.metrics.begin_call(request.uri().path());
        let timeout = match timeout_of(request.headers()) {
            Ok(timeout) => timeout,
            Err(refused) => return refuse(call, refused),
        };
        let messages = call.as_ref().map(Call::received);
        // Requests of one message are bounded where they are taken whole.
        let is_stream = has_many_messages(request.uri().path());
        let room = is_stream.then(|| self.messages.each_ref().map(Budget::share));
        let request = request.map(|body| Framed::new(body, messages, room));
        match request.uri().path().split('/').nth(1) {
            Some("protocol.Journal") => self.whole(self.gazette.clone(), request, call, timeout),
            Some("courant.v1.Courant") => self.whole(self.courant.clone(), request, call, timeout),
            _ => self.open(request, call, timeout),
        }
    }
}

impl Doors {
    /// Answers what everybody may ask. A watch of health keeps its place as long as it lasts.
    fn open(
        &self,
        request: Request<Framed<Incoming>>,
        call: Option<Call>,
        timeout: Option<Duration>,
    ) -> Answer {
        let seat = match self.visitor.enter_open() {
            Ok(seat) => seat,
            Err(busy) => return refuse(call, call_error(busy)),
        };
        let answering = in_time(call, timeout, self.operators.call(request));
        Box::pin(async move { Ok(answering.await?.map(|reply| reply.holding(seat))) })
    }

    /// Hands a request to its service: one of a single message once that is there, since the
    /// service would take it in before it asks who sends it.
    fn whole<S>(
        &self,
        mut service: S,
        request: Request<Framed<Incoming>>,
        call: Option<Call>,
        timeout: Option<Duration>,
    ) -> Answer
    where
        S: tower::Service<Request<Framed<Incoming>>, Response = Response<Body>, Error = Infallible>
            + tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Send
            + 'static,
        <S as tower::Service<Request<Framed<Incoming>>>>::Future: Send + 'static,
        <S as tower::Service<Request<Body>>>::Future: Send + 'static,
    {
        // What is no method is refused by its service, without waiting for what it may stream.
        if call.is_none() || has_many_messages(request.uri().path()) {
            return Box::pin(in_time(call, timeout, service.call(request)));
        }
        let authorization = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let seat = match self.visitor.knock(authorization) {
            Ok(seat) => seat,
            Err(refused) => return refuse(call, call_error(refused)),
        };
        let intake = self.intake.clone();
        let answering = async move {
            let (head, body) = request.into_parts();
            let taken = intake.take(body).await;
            drop(seat);
            match taken {
                Ok(taken) => {
                    let body = Body::new(Full::new(taken.bytes));
                    let answered = service.call(Request::from_parts(head, body)).await;
                    drop(taken.room);
                    answered
                }
                Err(refused) => Ok(refused.into_http()),
            }
        };
        Box::pin(in_time(call, timeout, answering))
    }
}

/// Answers at once that a call is not served.
fn refuse(call: Option<Call>, why: Status) -> Answer {
    let refused = Reply::of_call(why.into_http(), call, None);
    Box::pin(std::future::ready(Ok(refused)))
}

/// Answers a call by its deadline: then what answers it is dropped, with all that it holds. An
/// append that is recorded happens all the same.
async fn in_time(
    call: Option<Call>,
    timeout: Option<Duration>,
    answering: impl Future<Output = Result<Response<Body>, Infallible>>,
) -> Result<Response<Reply>, Infallible> {
    let Some(timeout) = timeout else { return Ok(Reply::of_call(answering.await?, call, None)) };
    let mut deadline = Box::pin(tokio::time::sleep(timeout));
    let answered = tokio::select! {
        biased;
        answered = answering => answered?,
        () = &mut deadline => exceeded().into_http(),
    };
    Ok(Reply::of_call(answered, call, Some(deadline)))
}

/// Whether a request to this path is a stream of messages, which its service takes one by one.
fn has_many_messages(path: &str) -> bool {
    ["/Append", "/Appends", "/AppendEach", "/Hold", "/Replicate"]
        .iter()
        .any(|method| path.ends_with(method))
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
