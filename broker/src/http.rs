//! Journals over plain HTTP: GET reads, HEAD asks, PUT appends (gazette-spec 6.1).
//!
//! The path is the journal's name, so that `curl URL` and `curl -T - URL` are all a script needs.
//! Only what begins with `/v1/` or `/debug/`, and `/metrics`, means something else. No journal is
//! created here.

mod append;
mod debug;
mod head;
mod range;
mod ranged;
mod read;
mod target;

use crate::json::Json;
use crate::server::caller::{Caller, Visitor};
use crate::{Error, metrics};
use client::token::Capability;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use protocol::{Invalid, Status};
use tonic::body::Body;

/// The gateway, for the requests of one connection.
#[derive(Clone)]
pub struct Gateway {
    visitor: Visitor,
    json: Json,
}

/// Why a request is not served, for the client's user to read.
struct Problem {
    code: StatusCode,
    text: String,
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        Problem { code: StatusCode::BAD_REQUEST, text: invalid.to_string() }
    }
}

/// What to do about a journal that is not there.
const CREATE: &str = "nothing was appended; create it first, with courant journals apply or by \
                      writing to its file in a mount";

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let code = head::code_of_error(&error);
        let text = match &error {
            Error::Unresolved { status: Status::JournalNotFound, .. } => {
                format!("{error}: {CREATE}")
            }
            error => error.to_string(),
        };
        Problem { code, text }
    }
}

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Self {
        let mut response = line(problem.code, problem.text);
        if problem.code == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// An answer of one line. Browsers must not take for a page what may repeat parts of a request.
fn line(code: StatusCode, line: String) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(line + "\n")));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

impl Gateway {
    pub fn new(visitor: Visitor, json: Json) -> Self {
        Gateway { visitor, json }
    }

    pub async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        if let Some(clean) = target::clean(path, request.uri().query()) {
            return match *request.method() {
                // Many clients count a redirect as success and don't follow: its bytes were lost.
                Method::PUT => {
                    Problem { code: StatusCode::BAD_REQUEST, text: unclean(&clean) }.into()
                }
                _ => moved(&clean),
            };
        }
        match path {
            "/metrics" | "/debug/metrics" => self.metrics(&request),
            path if path.starts_with("/debug/") => debug::answer(path),
            path if path.starts_with("/v1/") => self.json.answer(&self.visitor, request).await,
            _ => self.journal(request).await.unwrap_or_else(Into::into),
        }
    }

    async fn journal(&self, request: Request<Incoming>) -> Result<Response<Body>, Problem> {
        match *request.method() {
            Method::GET | Method::HEAD => {
                read::read(self.admit(&request, Capability::READ)?, &request).await
            }
            Method::PUT => {
                let admitted = self.admit(&request, Capability::APPEND);
                append::append(admitted, request).await
            }
            ref other => {
                let text = format!("unknown method: {other}");
                Err(Problem { code: StatusCode::BAD_REQUEST, text })
            }
        }
    }

    /// Names of journals are for those alone who may list them; everybody has the rest, as with
    /// Gazette.
    fn metrics<B>(&self, request: &Request<B>) -> Response<Body> {
        let lister = self.admit(request, Capability::LIST).ok();
        let mut response = Response::new(Body::new(Full::from(self.visitor.metrics(lister))));
        let format = HeaderValue::from_static(metrics::CONTENT_TYPE);
        response.headers_mut().insert(CONTENT_TYPE, format);
        response
    }

    fn admit<B>(&self, request: &Request<B>, needed: Capability) -> Result<Caller, Problem> {
        let authorization = request.headers().get(AUTHORIZATION);
        let authorized = self.visitor.authorize(authorization.map(|it| it.as_bytes()), needed);
        authorized.map_err(Problem::from)
    }
}

fn unclean(clean: &str) -> String {
    format!("the path is not clean: nothing was appended (expected {clean})")
}

fn moved(target: &str) -> Response<Body> {
    let mut response = line(StatusCode::MOVED_PERMANENTLY, format!("moved to {target}"));
    if let Ok(target) = HeaderValue::from_str(target) {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}
