//! One connection, from its first byte to its last answer.

use super::caller::Stop;
use super::door::Doors;
use super::greeting::{Protocol, protocol_of};
use super::limits;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use std::error::Error;
use std::fmt::Display;
use std::pin::pin;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Serves requests until the client hangs up, or, once `stop` is told, until those in flight
/// are answered.
pub async fn serve(stream: TcpStream, doors: Doors, mut stop: Stop) {
    set_options(&stream);
    let greeted = tokio::select! {
        biased;
        () = stop.told() => return,
        greeted = protocol_of(&stream) => greeted,
    };
    let io = TokioIo::new(stream);
    match greeted {
        Some(Protocol::Http1) => drive(http1().serve_connection(io, doors), stop).await,
        Some(Protocol::Http2) => drive(http2().serve_connection(io, doors), stop).await,
        None => {}
    }
}

/// Tells a client for which there is no room, in words that an HTTP/1 client shows.
pub async fn turn_away(mut stream: TcpStream) {
    let text = format!("the broker has {} connections, its limit\n", limits::CONNECTIONS_MAX);
    let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length";
    let answer = format!("{head}: {}\r\n\r\n{text}", text.len());
    // The answer fits into the socket's buffer. Who does not take it gets nothing else either.
    let _ = stream.write_all(answer.as_bytes()).await;
}

fn set_options(stream: &TcpStream) {
    use rustix::net::sockopt;
    // Acknowledgements are small and wait for nothing.
    let no_delay = stream.set_nodelay(true);
    // An HTTP/1 reader at the head sends and gets nothing for hours: the kernel finds out whether
    // its machine is still there.
    let keep_alive = sockopt::set_socket_keepalive(stream, true);
    let idle = sockopt::set_tcp_keepidle(stream, limits::KEEP_ALIVE);
    let failed = no_delay.err().or(keep_alive.and(idle).err().map(Into::into));
    if let Some(error) = failed {
        tracing::debug!(%error, "a new connection takes no options");
    }
}

async fn drive<C>(connection: C, mut stop: Stop)
where
    C: GracefulConnection,
    C::Error: Error,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = stop.told() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %Causes(&error), "a connection ended");
    }
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_MAX)
        .max_header_size(limits::HEAD_LEN_MAX as usize);
    builder
}

fn http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::KEEP_ALIVE)
        .keep_alive_timeout(limits::KEEP_ALIVE_ANSWER_MAX)
        .max_header_list_size(limits::HEAD_LEN_MAX)
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::CANCELLED_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_frame_size(limits::FRAME_LEN_MAX)
        .max_send_buf_size(limits::SEND_BUFFER);
    builder
}

/// An error with what caused it: hyper's own text says only in which part it happened.
struct Causes<'a>(&'a dyn Error);

impl Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
