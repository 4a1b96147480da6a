//! The broker's one port: gRPC and HTTP/1.1 side by side, bounded, and able to stop.
//!
//! A connection is one task, and so is each HTTP/2 request. Nothing else is spawned for them: a
//! reader that waits at a head is a parked future, not a thread.

pub(crate) mod caller;
mod connection;
mod deadline;
mod door;
mod framed;
mod greeting;
mod handed;
pub(crate) mod intake;
pub(crate) mod limits;
mod listener;
mod operators;
mod reply;
mod tls;

pub use connection::http2_builder;
pub use handed::Handed;
pub use limits::MESSAGE_LEN_MAX;
pub use tls::{Tls, TlsError};

use crate::Broker;
use caller::Stop;
use client::token::Keys;
use door::House;
use listener::{Listener, Socket, is_unix};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};

/// How a port behaves, beside where it is.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Tokens are asked for that one of these signed; without keys all are let in.
    pub keys: Option<Keys>,
    /// TLS on TCP.
    pub tls: Option<Tls>,
    /// Origins whose pages may ask `/v1/`, as `https://HOST`; `*` is all of them.
    pub origins: Vec<String>,
    /// The largest gRPC message that is taken, in bytes.
    pub message_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { keys: None, tls: None, origins: Vec::new(), message_max: MESSAGE_LEN_MAX }
    }
}

/// A port that is bound, and not served yet: the broker that will be behind it wants to know its
/// own endpoint first.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    settings: Settings,
}

/// The port can't be had.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}: {source}; {}", remedy(address, source))]
pub struct CannotListen {
    address: String,
    source: io::Error,
}

/// What its user can do about a port that can't be had.
fn remedy(address: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse if is_unix(address) => {
            "another process listens there, or what lies there is no socket: remove it, or take \
             another path"
        }
        io::ErrorKind::PermissionDenied if is_unix(address) => {
            "this user may not make files in that directory: take another one"
        }
        io::ErrorKind::InvalidInput if is_unix(address) => {
            "the system takes about 100 bytes of an absolute path: take a shorter one"
        }
        io::ErrorKind::AddrInUse => {
            "another process has this port: stop it, or listen on another one (0 takes a free one)"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 are root's: listen on a higher one",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: try 127.0.0.1, or 0.0.0.0 for all it has"
        }
        io::ErrorKind::NotFound if is_unix(address) => {
            "the directory of the socket must be there: make it"
        }
        _ => "expected HOST:PORT, as in 127.0.0.1:8080, or unix:///PATH",
    }
}

impl Server {
    /// Binds `address`, which is `HOST:PORT` or `unix:///PATH`. Port 0 takes a free one.
    pub async fn bind(address: &str) -> Result<Self, CannotListen> {
        let listener = Listener::bind(address).await;
        let failed = |source| CannotListen { address: address.to_owned(), source };
        Ok(Server { listener: listener.map_err(failed)?, settings: Settings::default() })
    }

    /// The same port with other settings.
    #[must_use]
    pub fn with(self, settings: Settings) -> Self {
        Server { settings, ..self }
    }

    /// The address with the port that was taken; `None` for a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    /// Where clients on this machine find it.
    pub fn endpoint(&self) -> String {
        self.listener.endpoint(self.settings.tls.is_some())
    }

    /// Serves `broker` until `stop` is ready. Then no connection is taken any more, reads end as
    /// they do at a head, and what else is in flight may end within [`limits::DRAIN_MAX`].
    pub async fn serve(self, broker: Broker, stop: impl Future<Output = ()>) {
        let (stopping, stop_told) = Stop::new();
        let tls = self.settings.tls.clone();
        let house = House::new(broker, self.settings, stop_told.clone());
        house.serving().await;
        let mut connections = JoinSet::new();
        let accepting =
            Accepting { listener: &self.listener, house: &house, tls, stop: &stop_told };
        tokio::select! {
            biased;
            () = stop => {}
            () = accepting.accept(&mut connections) => {}
        }
        drop(self.listener);
        house.stopping().await;
        stopping.send_replace(true);
        drain(connections).await;
    }
}

/// What takes connections.
struct Accepting<'a> {
    listener: &'a Listener,
    house: &'a Arc<House>,
    tls: Option<Tls>,
    stop: &'a Stop,
}

impl Accepting<'_> {
    /// Takes connections for ever.
    async fn accept(self, connections: &mut JoinSet<()>) {
        loop {
            let accepted = tokio::select! {
                biased;
                Some(ended) = connections.join_next() => {
                    report(ended);
                    continue;
                }
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, _)) if connections.len() < limits::CONNECTIONS_MAX => {
                    let (doors, stop) = (self.house.doors(), self.stop.clone());
                    let window = self.house.window(connections.len());
                    let tls = self.tls.clone();
                    connections.spawn(connection::serve(socket, tls, doors, stop, window));
                }
                Ok((socket, peer)) => turn_away(socket, &peer, self.tls.is_some()).await,
                Err(error) => {
                    tracing::warn!(%error, "can't take a connection");
                    tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Tells a client for which there is no room. One that speaks TLS would not understand, and is only
/// hung up on.
async fn turn_away(socket: Socket, peer: &str, has_tls: bool) {
    tracing::warn!(%peer, limit = limits::CONNECTIONS_MAX, "turning a connection away");
    if !has_tls || matches!(socket, Socket::Unix(_)) {
        connection::turn_away(socket).await;
    }
}

/// Waits for connections to end, for a while, and cuts what is left.
async fn drain(mut connections: JoinSet<()>) {
    let mut late = pin!(tokio::time::sleep(limits::DRAIN_MAX));
    loop {
        tokio::select! {
            biased;
            ended = connections.join_next() => match ended {
                Some(ended) => report(ended),
                None => return,
            },
            () = &mut late => break,
        }
    }
    tracing::warn!(connections = connections.len(), "stopping with requests in flight");
    connections.shutdown().await;
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_cannot_be_had_names_address_and_remedy() {
        let taken = Server::bind("127.0.0.1:0").await.expect("a free port");
        let address = taken.address().expect("a TCP port").to_string();
        let cases = [
            (address.as_str(), "another process has this port"),
            ("192.0.2.1:0", "this machine has no such address"),
            ("nowhere", "expected HOST:PORT"),
            ("unix:///dev/null", "no socket: remove it"),
            ("unix:///no/such/directory/socket", "must be there"),
            (&*format!("unix:///{}", "long".repeat(40)), "a shorter one"),
        ];
        for (address, remedy) in cases {
            let text = Server::bind(address).await.expect_err(address).to_string();
            assert!(text.starts_with(&format!("can't listen on {address}: ")), "{text}");
            assert!(text.contains(remedy), "{text}");
        }
    }
}
