//! A port without a socket: its connections are handed in, as a simulated network does.

use super::caller::Stop;
use super::connection::speak_undated;
use super::door::House;
use super::{Settings, limits};
use crate::Broker;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// The services of a broker, for connections that carry HTTP/2 without TLS. Once it is dropped,
/// connections end when the requests in flight on them are answered.
#[derive(Debug)]
pub struct Handed {
    house: Arc<House>,
    stop: Stop,
    _stopping: watch::Sender<bool>,
}

impl Handed {
    pub fn new(broker: Broker, settings: Settings) -> Self {
        let (_stopping, stop) = Stop::new();
        Handed { house: House::new(broker, settings, stop.clone()), stop, _stopping }
    }

    /// Serves the requests of one connection until the other end hangs up.
    pub fn serve<S>(&self, stream: S) -> impl Future<Output = ()> + Send + 'static
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (doors, stop) = (self.house.doors(), self.stop.clone());
        speak_undated(stream, doors, stop, limits::CONNECTION_WINDOW)
    }
}
