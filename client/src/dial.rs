//! The seam to the network: how a connection to a broker is made.

use crate::limits;
use crate::line::{Watched, Watching};
use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
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

/// The network itself, as production has it.
#[derive(Debug, Clone)]
pub(crate) enum Network {
    Tcp(HttpConnector, Uri),
    /// The path of a socket.
    Unix(PathBuf),
}

impl Network {
    /// The way to `host:port` of a URL.
    pub fn tcp(url: Uri) -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits::CONNECT_MAX));
        connector.set_keepalive(Some(limits::KEEP_ALIVE));
        connector.set_keepalive_interval(Some(limits::KEEP_ALIVE / 3));
        connector.set_keepalive_retries(Some(3));
        Network::Tcp(connector, url)
    }
}

impl Dial for Network {
    fn dial(&self) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        match self.clone() {
            Network::Tcp(mut connector, url) => Box::pin(async move {
                let dialed = connector.call(url).await.map_err(io::Error::other)?;
                Ok(Box::new(dialed.into_inner()) as Box<dyn Stream>)
            }),
            Network::Unix(path) => Box::pin(async move {
                Ok(Box::new(UnixStream::connect(path).await?) as Box<dyn Stream>)
            }),
        }
    }
}

/// Watched connections as tonic asks for them.
#[derive(Clone)]
pub(crate) struct Dialer(pub Watching);

impl Service<Uri> for Dialer {
    type Response = TokioIo<Watched>;
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
