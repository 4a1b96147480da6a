//! PUT: the whole body is one append.

use super::Problem;
use super::head::{put_commit, put_route};
use super::target::{journal_of, without_parameters};
use crate::server::caller::Caller;
use crate::{Ask, Error, Terms};
use futures::TryStreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tonic::body::Body;

/// Why a body was not appended.
enum Failure {
    Refused(Error),
    /// It broke off: nobody is left to be told.
    Broken(hyper::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error.into(),
            Failure::Broken(error) => {
                Problem { code: StatusCode::BAD_REQUEST, text: error.to_string() }
            }
        }
    }
}

/// Serves a PUT. A body that does not come to its end appends nothing.
pub async fn append(
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response<Body>, Problem> {
    without_parameters(request.uri().query())?;
    let journal = journal_of(request.uri().path())?.journal().clone();
    let ask = Ask { needs_primary: true, ..Ask::new(journal.clone()) };
    let resolution = caller.broker.resolve(&ask).await?;
    let terms = Terms { needs_sum: true, ..Terms::default() };
    let mut stager = caller.broker.begin_append(resolution, terms, &caller.connection).await?;
    let pieces = request.into_body().into_data_stream().map_err(Failure::Broken);
    stager.push_all(pieces).await?;
    let committed = stager.finish().await?.commit().await?;

    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    put_route(headers, &journal, &committed.header);
    put_commit(headers, committed.span, committed.sum.expect("the terms ask for the sum"));
    Ok(response)
}
