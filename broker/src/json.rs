//! The JSON gateway `/v1/`: List and Read for what has no gRPC, such as pages in a browser
//! (gazette-spec 6.2).
//!
//! A request is a message in protobuf's JSON, and so is each line of the answer, as
//! `{"result":{...}}`, or `{"error":{...}}` where it ends in an error.

mod cors;
mod message;

use crate::gazette::{call_error, list_responses, read_responses};
use crate::server::caller::{Caller, Visitor};
use crate::server::intake::Intake;
use bytes::Bytes;
use client::token::Capability;
use cors::Origins;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Full, StreamBody};
use hyper::body::{Frame, Incoming};
use message::Messages;
use protocol::request::{ListRequest, ReadRequest};
use protocol::wire::gazette;
use std::convert::Infallible;
use std::sync::Arc;
use tonic::body::Body;
use tonic::{Code, Status};

/// The lines of an answer.
type Lines = BoxStream<'static, Result<String, Status>>;

/// The gateway. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Json {
    messages: Arc<Messages>,
    origins: Arc<Origins>,
    intake: Intake,
}

impl Json {
    pub fn new(origins: Vec<String>, intake: Intake) -> Self {
        let (messages, origins) = (Arc::new(Messages::new()), Arc::new(Origins::new(origins)));
        Json { messages, origins, intake }
    }

    /// Answers a request for a path under `/v1/`.
    pub async fn answer(&self, visitor: &Visitor, request: Request<Incoming>) -> Response<Body> {
        let origin = self.origins.allowed(request.headers());
        let mut response = self.route(visitor, request).await;
        cors::put(response.headers_mut(), origin);
        response
    }

    async fn route(&self, visitor: &Visitor, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let capability = match path.as_str() {
            "/v1/journals/list" => Capability::LIST,
            "/v1/journals/read" => Capability::READ,
            other => {
                let text = format!("no such path: {other} (expected /v1/journals/list or read)");
                return refused(&Status::not_found(text));
            }
        };
        match *request.method() {
            Method::OPTIONS => return Response::new(Body::empty()),
            Method::POST => {}
            ref other => return wrong_method(other),
        }
        let authorization = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let lines = match visitor.authorize(authorization, capability) {
            Err(refused) => Err(call_error(refused)),
            Ok(caller) => self.lines(caller, &path, request.into_body()).await,
        };
        match lines {
            Ok(lines) => streamed(lines).await,
            Err(status) => refused(&status),
        }
    }

    async fn lines(&self, caller: Caller, path: &str, body: Incoming) -> Result<Lines, Status> {
        let taken = self.intake.take(body).await.map_err(|refused| match refused.code() {
            Code::OutOfRange => Status::invalid_argument(refused.message()),
            _ => refused,
        })?;
        let body = taken.bytes;
        let messages = self.messages.clone();
        if path.ends_with("list") {
            let request: gazette::ListRequest = messages.read("protocol.ListRequest", &body)?;
            let pages = list_responses(caller, ListRequest::try_from(request)?);
            let line = move |page| {
                messages.line("protocol.ListResponse", &gazette::ListResponse::from(page))
            };
            return Ok(pages.map(line).boxed());
        }
        let request: gazette::ReadRequest = messages.read("protocol.ReadRequest", &body)?;
        let responses = read_responses(caller, ReadRequest::try_from(request)?);
        let line = move |response: Result<protocol::response::ReadResponse, crate::Error>| {
            let response = gazette::ReadResponse::from(response.map_err(call_error)?);
            messages.line("protocol.ReadResponse", &response)
        };
        Ok(responses.map(line).boxed())
    }
}

/// An answer of many lines. If the first is an error, the whole answer is.
async fn streamed(mut lines: Lines) -> Response<Body> {
    let first = match lines.next().await {
        Some(Err(status)) => return refused(&status),
        Some(Ok(line)) => line,
        // It ended well before anything was said, and must not be asked again.
        None => return json(Response::new(Body::empty())),
    };
    let lines = stream::iter([Ok(first)]).chain(lines);
    let frames = lines.map(|line| {
        let line = line.unwrap_or_else(|status| message::error(&status, code_of(status.code())));
        Ok::<_, Infallible>(Frame::data(Bytes::from(line)))
    });
    json(Response::new(Body::new(StreamBody::new(frames))))
}

fn refused(status: &Status) -> Response<Body> {
    let code = code_of(status.code());
    let mut response = Response::new(Body::new(Full::from(message::error(status, code))));
    *response.status_mut() = code;
    json(response)
}

fn wrong_method(method: &Method) -> Response<Body> {
    let mut response = refused(&Status::unimplemented(format!("expected POST, not {method}")));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, OPTIONS"));
    response
}

fn json(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The HTTP status of a gRPC code, as gRPC's gateways have it.
fn code_of(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Cancelled => StatusCode::REQUEST_TIMEOUT,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
