//! The seam to the network: how a connection to a broker is made.

use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::codegen::Service;
use tonic::codegen::http::Uri;

/// A connection, in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes connections in place of TCP and unix sockets: a simulation's network.
pub trait Dial: Debug + Send + Sync + 'static {
    /// A new connection to the one broker that it leads to.
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// A [`Dial`] as tonic asks for connections.
#[derive(Clone)]
pub(crate) struct Dialer(pub Arc<dyn Dial>);

impl Service<Uri> for Dialer {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let dialing = self.0.dial();
        Box::pin(async move { dialing.await.map(TokioIo::new) })
    }
}
