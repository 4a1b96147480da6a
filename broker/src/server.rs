//! The broker's one port: gRPC and HTTP/1.1 side by side, bounded, and able to stop.
//!
//! A connection is one task, and so is each HTTP/2 request. Nothing else is spawned for them: a
//! reader that waits at a head is a parked future, not a thread.

pub(crate) mod caller;
mod connection;
mod door;
mod greeting;
pub(crate) mod limits;

use crate::Broker;
use caller::{Caller, Stop};
use door::Doors;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{JoinError, JoinSet};

/// A port that is bound, and not served yet: the broker that will be behind it wants to know its
/// own endpoint first.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// The port can't be had.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address}: {source}; {}", remedy(source))]
pub struct CannotListen {
    address: String,
    source: io::Error,
}

/// What its user can do about a port that can't be had.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process has this port: stop it, or listen on another one (0 takes a free one)"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 are root's: listen on a higher one",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: try 127.0.0.1, or 0.0.0.0 for all it has"
        }
        _ => "expected HOST:PORT, as in 127.0.0.1:8080",
    }
}

impl Server {
    /// Binds `address`, which is `HOST:PORT`. Port 0 takes a free one.
    pub async fn bind(address: &str) -> Result<Self, CannotListen> {
        let failed = |source| CannotListen { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address })
    }

    /// The address with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients on this machine find it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves `broker` until `stop` is ready. Then no connection is taken any more, reads end as
    /// they do at a head, and what else is in flight may end within [`limits::DRAIN_MAX`].
    pub async fn serve(self, broker: Broker, stop: impl Future<Output = ()>) {
        let (stopping, stop_told) = Stop::new();
        let mut connections = JoinSet::new();
        tokio::select! {
            biased;
            () = stop => {}
            () = accept(&self.listener, &broker, &stop_told, &mut connections) => {}
        }
        drop(self.listener);
        stopping.send_replace(true);
        drain(connections).await;
    }
}

/// Takes connections for ever.
async fn accept(
    listener: &TcpListener,
    broker: &Broker,
    stop: &Stop,
    connections: &mut JoinSet<()>,
) {
    let checking = Arc::new(Mutex::new(()));
    loop {
        let accepted = tokio::select! {
            biased;
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) if connections.len() < limits::CONNECTIONS_MAX => {
                let caller = Caller::new(broker.clone(), stop.clone());
                let doors = Doors::new(caller, checking.clone());
                connections.spawn(connection::serve(stream, doors, stop.clone()));
            }
            Ok((stream, peer)) => turn_away(stream, peer).await,
            Err(error) => {
                tracing::warn!(%error, "can't take a connection");
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn turn_away(stream: TcpStream, peer: SocketAddr) {
    tracing::warn!(%peer, limit = limits::CONNECTIONS_MAX, "turning a connection away");
    connection::turn_away(stream).await;
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
        let address = taken.address().to_string();
        let cases = [
            (address.as_str(), "another process has this port"),
            ("192.0.2.1:0", "this machine has no such address"),
            ("nowhere", "expected HOST:PORT"),
        ];
        for (address, remedy) in cases {
            let text = Server::bind(address).await.expect_err(address).to_string();
            assert!(text.starts_with(&format!("can't listen on {address}: ")), "{text}");
            assert!(text.contains(remedy), "{text}");
        }
    }
}
