//! PUT: the whole body is one append.

use super::Problem;
use super::head::{put_commit, put_route};
use super::target::{journal_of, without_parameters};
use crate::metrics::Operation;
use crate::server::caller::Caller;
use crate::server::limits::{DISCARD_LEN_MAX, DISCARD_MAX};
use crate::{Ask, Error, Terms};
use futures::TryStreamExt;
use http::header::{CONTENT_RANGE, EXPECT};
use http::request::Parts;
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::{Invalid, Status};
use tonic::body::Body;

/// Why a body was not appended.
enum Failure {
    Refused(Problem),
    /// It broke off: hardly anybody is left to be told.
    Broken(hyper::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error.into())
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Failure::Refused(invalid.into())
    }
}

/// Serves a PUT, if its caller was admitted. A body that does not come to its end appends nothing.
pub async fn append(
    admitted: Result<Caller, Problem>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Problem> {
    let (head, mut body) = request.into_parts();
    let committed = match admitted {
        Ok(caller) => counted(&caller, &head, &mut body).await,
        Err(refused) => Err(Failure::Refused(refused)),
    };
    match committed {
        Ok(response) => Ok(response),
        Err(Failure::Refused(problem)) => {
            // Who expects to be told sends no body once he is, and over HTTP/2 the answer is read
            // whether or not the body was (RFC 9113, section 8.1).
            let is_http1 = head.version < Version::HTTP_2;
            if is_http1 && !head.headers.contains_key(EXPECT) {
                discard(body).await;
            }
            Err(problem)
        }
        Err(Failure::Broken(error)) => {
            Err(Problem { code: StatusCode::BAD_REQUEST, text: error.to_string() })
        }
    }
}

/// Appends, and counts how that ended.
async fn counted(
    caller: &Caller,
    head: &Parts,
    body: &mut Incoming,
) -> Result<Response<Body>, Failure> {
    let counted = caller.broker.metrics().begin(Operation::Append);
    let committed = commit(caller, head, body).await;
    if committed.is_ok() {
        counted.end(Status::Ok);
    }
    committed
}

async fn commit(
    caller: &Caller,
    head: &Parts,
    body: &mut Incoming,
) -> Result<Response<Body>, Failure> {
    without_parameters(head.uri.query())?;
    if head.headers.contains_key(CONTENT_RANGE) {
        // RFC 9110, section 9.3.4: a part is not to be taken for the whole.
        let text = "a PUT appends its whole body: send it without Content-Range";
        return Err(Invalid::new(text).into());
    }
    let journal = journal_of(head.uri.path())?.journal().clone();
    let ask = Ask { needs_primary: true, ..Ask::new(journal.clone()) };
    let resolution = caller.resolve(&ask).await?;
    let terms = Terms { needs_sum: true, ..Terms::default() };
    let mut stager = caller.broker.begin_append(resolution, terms, &caller.connection).await?;
    let content = body.into_data_stream().map_err(Failure::Broken);
    caller.within_grant(stager.push_all(content)).await?;
    let committed = stager.finish().await?.commit().await?;

    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    put_route(headers, &journal, &caller.broker.header_here());
    put_commit(headers, committed.span, committed.sum.expect("the terms ask for the sum"));
    Ok(response)
}

/// Takes the rest of a body for nothing: many clients look for an answer only when they have sent
/// everything, and find a broken connection in its place if they are cut off before.
async fn discard(mut body: Incoming) {
    let all = async {
        let mut len = 0;
        while let Some(Ok(frame)) = body.frame().await
            && len <= DISCARD_LEN_MAX
        {
            len += frame.data_ref().map_or(0, bytes::Bytes::len);
        }
    };
    // Whether or not there was an end to it, the answer goes out.
    let _ = tokio::time::timeout(DISCARD_MAX, all).await;
}
