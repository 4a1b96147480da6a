//! What a request is answered with; of a gRPC call also its end, on time and counted.

use super::caller::Seat;
use super::deadline::exceeded;
use super::framed::Frames;
use crate::metrics::Call;
use bytes::Bytes;
use http::{HeaderMap, Response};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::{Code, Status};

/// The body of an answer. What stands behind it, such as a reader of a journal, goes with it.
#[derive(Debug)]
pub struct Reply {
    body: Body,
    frames: Frames,
    /// `None` where nobody counts.
    call: Option<Call>,
    /// When it ends at the latest.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Its place among the requests in flight, where it has none of its own.
    #[expect(dead_code, reason = "it is held to be dropped")]
    seat: Option<Seat>,
}

impl Reply {
    fn new(body: Body, call: Option<Call>, deadline: Option<Pin<Box<Sleep>>>) -> Self {
        Reply { body, frames: Frames::default(), call, deadline, seat: None }
    }

    /// The same, with a place that is free again when it is over.
    pub fn holding(self, seat: Seat) -> Self {
        Reply { seat: Some(seat), ..self }
    }

    /// The answer to a request that is no call.
    pub fn plain(answer: Response<Body>) -> Response<Reply> {
        answer.map(|body| Reply::new(body, None, None))
    }

    /// The answer to a call that has until `deadline`.
    pub fn of_call(
        answer: Response<Body>,
        mut call: Option<Call>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Response<Reply> {
        // Where there is no message the status is in the head, and nobody asks for a body.
        tell_end(&mut call, answer.headers());
        answer.map(|body| Reply::new(body, call, deadline))
    }

    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready())
    }

    /// Drops what makes the answer, and ends it with the status that says why.
    fn cut(&mut self) -> Frame<Bytes> {
        (self.body, self.deadline) = (Body::empty(), None);
        let mut trailers = HeaderMap::new();
        exceeded().add_header(&mut trailers).expect("the text is of header characters");
        tell_end(&mut self.call, &trailers);
        Frame::trailers(trailers)
    }

    fn count(&mut self, frame: &Frame<Bytes>) {
        if let Some(bytes) = frame.data_ref() {
            let messages = self.frames.push(bytes);
            if let Some(call) = &self.call {
                call.sent(messages);
            }
        } else if let Some(trailers) = frame.trailers_ref() {
            tell_end(&mut self.call, trailers);
        }
    }
}

/// Tells the call how it ended, where these headers say so.
fn tell_end(call: &mut Option<Call>, headers: &HeaderMap) {
    if let (Some(call), Some(code)) = (call, headers.get(Status::GRPC_STATUS)) {
        call.end(Code::from_bytes(code.as_bytes()));
    }
}

impl hyper::body::Body for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // First, since a body may have something to send at any time.
        if self.is_late(cx) {
            return Poll::Ready(Some(Ok(self.cut())));
        }
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &polled {
            self.count(frame);
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
