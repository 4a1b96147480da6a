//! Calls by a client that does only what it is told: frames of HTTP/2, and no deadline of its own.

use crate::world::World;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;

type Body = StreamBody<futures::stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

/// A message as gRPC frames it.
pub fn framed(message: &impl Message) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut bytes).unwrap();
    bytes.freeze()
}

/// One connection.
#[derive(Clone)]
pub struct Raw {
    url: String,
    client: SendRequest<Body>,
}

impl Raw {
    pub async fn connect(world: &World) -> Raw {
        let io = TokioIo::new(world.tcp().await);
        let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
        let (client, connection) = shaken.unwrap();
        tokio::spawn(connection);
        Raw { url: world.url.clone(), client }
    }

    /// Calls a method of Gazette's, by bytes as they are sent.
    pub async fn call(
        &mut self,
        method: &str,
        timeout: Option<&str>,
        bytes: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Response<Incoming> {
        let frames = bytes.map(|bytes| Ok(Frame::data(bytes)));
        let mut request = Request::post(format!("{}/protocol.Journal/{method}", self.url))
            .header("content-type", "application/grpc");
        if let Some(timeout) = timeout {
            request = request.header("grpc-timeout", timeout);
        }
        let request = request.body(StreamBody::new(frames.boxed())).unwrap();
        self.client.ready().await.unwrap();
        self.client.send_request(request).await.unwrap()
    }
}

/// Calls on a connection of its own.
pub async fn call(
    world: &World,
    method: &str,
    timeout: &str,
    bytes: impl Stream<Item = Bytes> + Send + 'static,
) -> Response<Incoming> {
    Raw::connect(world).await.call(method, Some(timeout), bytes).await
}

/// How long the messages of an answer are, and the status in its head or at its end.
pub async fn answer(response: Response<Incoming>) -> (usize, String) {
    let (head, body) = response.into_parts();
    let status = |headers: &HeaderMap| {
        headers.get("grpc-status").map(|status| status.to_str().unwrap().to_owned())
    };
    let body = body.collect().await.unwrap();
    let ended = status(&head.headers).or_else(|| status(body.trailers()?));
    (body.to_bytes().len(), ended.expect("a call ends with a status"))
}
