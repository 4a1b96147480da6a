//! Journals over plain HTTP: GET reads, HEAD asks, PUT appends (gazette-spec 6.1).
//!
//! The path is the journal's name, so that `curl URL` and `curl -T - URL` are all a script needs.
//! Only `/debug/ready` means something else. No journal is created here.

mod append;
mod head;
mod read;
mod target;

use crate::Error;
use crate::server::caller::Caller;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use protocol::Invalid;
use tonic::body::Body;

/// The gateway, for the requests of one connection.
#[derive(Clone)]
pub struct Gateway {
    caller: Caller,
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

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Problem { code: head::code_of_error(&error), text: error.to_string() }
    }
}

impl From<Problem> for Response<Body> {
    fn from(problem: Problem) -> Self {
        let mut response = Response::new(text(problem.text));
        *response.status_mut() = problem.code;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        response
    }
}

/// A body of one line.
fn text(line: String) -> Body {
    Body::new(Full::from(line + "\n"))
}

impl Gateway {
    pub fn new(caller: Caller) -> Self {
        Gateway { caller }
    }

    pub async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() == "/debug/ready" {
            return Response::new(text("ready".to_owned()));
        }
        let answered = match *request.method() {
            Method::GET | Method::HEAD => read::read(self.caller, &request).await,
            Method::PUT => append::append(&self.caller, request).await,
            ref other => {
                let text = format!("unknown method: {other}");
                Err(Problem { code: StatusCode::BAD_REQUEST, text })
            }
        };
        answered.unwrap_or_else(Into::into)
    }
}
