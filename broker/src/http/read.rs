//! GET and HEAD: a read, its first metadata as headers and its content as the body.

use super::head::{CLOSE_ERROR, code_of, put_metadata, put_route};
use super::range::Asked;
use super::target::{ReadParameters, journal_of};
use super::{Problem, line, ranged};
use crate::Error;
use crate::gazette::read_responses;
use crate::server::caller::Caller;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use http::header::{HeaderMap, HeaderValue, TRAILER};
use http::{Method, Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use protocol::request::ReadRequest;
use protocol::response::{ReadMetadata, ReadResponse};
use protocol::{Offset, Status};
use tonic::body::Body;

/// Serves a GET or a HEAD.
pub async fn read<B>(caller: Caller, request: &Request<B>) -> Result<Response<Body>, Problem> {
    let parameters = ReadParameters::parse(request.uri().query())?;
    let journal = journal_of(request.uri().path())?;
    if request.uri().query().unwrap_or_default().is_empty()
        && let Some(asked) = Asked::of(request.headers())
        && let Some(response) = ranged::read(&caller, &journal, asked, request).await?
    {
        return Ok(response);
    }
    let is_head = *request.method() == Method::HEAD;
    let asked = ReadRequest {
        block: parameters.block,
        metadata_only: is_head,
        ..ReadRequest::new(journal.clone(), parameters.from)
    };
    let grant = caller.grant.clone();
    let mut responses = read_responses(caller, asked).boxed();
    let Some(first) = responses.next().await.transpose()? else {
        return Err(grant.why_ended().into());
    };
    let ReadResponse::Metadata(metadata) = first else {
        unreachable!("a read begins with metadata");
    };
    let status = metadata.status;
    let code = code_of(status);
    let mut response = match status {
        Status::Ok if is_head => Response::new(Body::empty()),
        Status::Ok => Response::new(Body::new(StreamBody::new(frames(responses, metadata.offset)))),
        refused => line(code, refused.to_string()),
    };
    *response.status_mut() = code;
    let headers = response.headers_mut();
    put_metadata(headers, &metadata);
    if let Some(header) = &metadata.header {
        put_route(headers, journal.journal(), header);
    }
    if status == Status::Ok && !is_head {
        headers.insert(TRAILER, HeaderValue::from_static("X-Close-Error"));
    }
    Ok(response)
}

/// What is left of a read, as the frames of a body.
struct Rest {
    responses: BoxStream<'static, Result<ReadResponse, Error>>,
    /// Where the next byte belongs.
    next: Offset,
}

/// The content, then a trailer that says why there is no more of it. A fault breaks the body off,
/// so that no client takes it for whole.
fn frames(
    responses: BoxStream<'static, Result<ReadResponse, Error>>,
    next: Offset,
) -> impl Stream<Item = Result<Frame<Bytes>, Error>> {
    let rest = Rest { responses, next };
    stream::try_unfold(Some(rest), |rest| async move {
        let Some(mut rest) = rest else { return Ok(None) };
        Ok(Some(match rest.content().await? {
            Ok(content) => (Frame::data(content), Some(rest)),
            Err(reason) => (Frame::trailers(closing(&reason)), None),
        }))
    })
}

impl Rest {
    /// The next content, or why there is none.
    async fn content(&mut self) -> Result<Result<Bytes, String>, Error> {
        loop {
            match self.responses.next().await.transpose()? {
                None => return Ok(Err("broker terminated RPC".to_owned())),
                Some(ReadResponse::Metadata(metadata)) => {
                    if let Some(reason) = self.ends_at(&metadata) {
                        return Ok(Err(reason));
                    }
                }
                Some(ReadResponse::Content { offset, content }) => {
                    self.next = offset.plus(content.len() as u64);
                    return Ok(Ok(content));
                }
            }
        }
    }

    /// The body holds one run of offsets: its reader knows the first one alone.
    fn ends_at(&self, metadata: &ReadMetadata) -> Option<String> {
        match metadata.status {
            Status::Ok if metadata.offset == self.next => None,
            Status::Ok => Some("offset jump".to_owned()),
            other => Some(other.to_string()),
        }
    }
}

fn closing(reason: &str) -> HeaderMap {
    let reason = HeaderValue::from_str(reason).expect("a reason is plain text");
    HeaderMap::from_iter([(CLOSE_ERROR, reason)])
}
