//! GET and HEAD of a range: exactly those bytes, with their length, or an answer that they are not
//! there.

use super::head::{put_metadata, put_range, put_route};
use super::range::{Asked, is_meant, tag};
use super::{Problem, line};
use crate::gazette::read_responses;
use crate::server::caller::Caller;
use crate::{Ask, Error, Resolution};
use bytes::Bytes;
use client::Stat;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;
use protocol::request::{ReadFrom, ReadRequest};
use protocol::response::ReadResponse;
use protocol::{Journal, MetaJournal, Span, Status};
use tonic::body::Body;

/// Serves a range. `None` where there is no journal to be read: its answer has no ranges.
pub async fn read<B>(
    caller: &Caller,
    journal: &MetaJournal,
    asked: Asked,
    request: &Request<B>,
) -> Result<Option<Response<Body>>, Problem> {
    let resolution = caller.resolve(&Ask::new(journal.journal().clone())).await?;
    let Ok(served) = resolution.served() else { return Ok(None) };
    if !served.entry().spec.flags.may_read() {
        return Ok(None);
    }
    let stat = caller.broker.stat(served).await?;
    let tag = tag(stat.life);
    let is_meant = is_meant(request.headers(), &tag);
    // Whoever knows another journal by this name wants the whole of this one.
    let wanted = if is_meant { asked } else { Asked::From(0) };
    let found = match wanted.span(stat.first, stat.head) {
        Some(span) => bytes(caller, journal, span, request.method(), &resolution).await?,
        None => None,
    };
    let mut response = found.unwrap_or_else(|| unsatisfiable(&stat));
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if !is_meant && response.status() == StatusCode::PARTIAL_CONTENT {
        response.headers_mut().remove(CONTENT_RANGE);
        *response.status_mut() = StatusCode::OK;
    }
    Ok(Some(response))
}

/// The answer to a range that is not there, with what is.
fn unsatisfiable(stat: &Stat) -> Response<Body> {
    let text = format!("the journal has bytes {}..{}", stat.first, stat.head);
    let mut response = line(StatusCode::RANGE_NOT_SATISFIABLE, text);
    put_range(response.headers_mut(), None, stat.head);
    response
}

/// The answer with the bytes of a span; `None` where the first of them is lost.
async fn bytes(
    caller: &Caller,
    journal: &MetaJournal,
    span: Span,
    method: &Method,
    resolution: &Resolution,
) -> Result<Option<Response<Body>>, Problem> {
    let is_head = method == Method::HEAD;
    let asked = ReadRequest {
        end: Some(span.end()),
        metadata_only: is_head,
        ..ReadRequest::new(journal.clone(), ReadFrom::At(span.begin()))
    };
    let mut responses = read_responses(caller.clone(), asked).boxed();
    let Some(ReadResponse::Metadata(metadata)) = responses.next().await.transpose()? else {
        return Err(caller.grant.why_ended().into());
    };
    if metadata.status != Status::Ok || metadata.offset != span.begin() {
        return Ok(None);
    }
    let rest = Rest { responses, journal: journal.journal().clone(), span };
    let body = match is_head {
        true => Body::empty(),
        false => Body::new(StreamBody::new(stream::try_unfold(rest, Rest::frame))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let headers = response.headers_mut();
    put_metadata(headers, &metadata);
    put_route(headers, journal.journal(), &caller.broker.header_of(resolution));
    put_range(headers, Some(span), metadata.write_head);
    headers.insert(CONTENT_LENGTH, span.len().into());
    Ok(Some(response))
}

/// What is left of a read.
struct Rest {
    responses: BoxStream<'static, Result<ReadResponse, Error>>,
    journal: Journal,
    /// Of the bytes that were not sent yet.
    span: Span,
}

impl Rest {
    /// The next bytes. Where they end early the body is broken off, so that no client takes it for
    /// whole.
    async fn frame(mut self) -> Result<Option<(Frame<Bytes>, Rest)>, Error> {
        if self.span.is_empty() {
            return Ok(None);
        }
        let next = self.span.begin();
        loop {
            match self.responses.next().await.transpose()? {
                Some(ReadResponse::Metadata(metadata)) if metadata.offset == next => {}
                Some(ReadResponse::Content { offset, content }) if offset == next => {
                    let next = offset.plus(content.len() as u64);
                    self.span = Span::between(next, self.span.end());
                    return Ok(Some((Frame::data(content), self)));
                }
                Some(_) | None => {
                    return Err(Error::Hole { journal: self.journal, span: self.span });
                }
            }
        }
    }
}
