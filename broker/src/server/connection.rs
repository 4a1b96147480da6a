//! One connection, from its first byte to its last answer.

use super::caller::Stop;
use super::door::Doors;
use super::greeting::{Protocol, is_tls, protocol_of};
use super::limits;
use super::listener::Socket;
use super::tls::{Tls, is_http2};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use std::error::Error;
use std::fmt::Display;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// Serves requests until the client hangs up, or, once `stop` is told, until those in flight
/// are answered.
///
/// `window` bytes may be in flight towards all its requests.
pub async fn serve(socket: Socket, tls: Option<Tls>, doors: Doors, stop: Stop, window: u32) {
    set_options(&socket);
    let opened = tokio::select! {
        biased;
        () = stop.told() => return,
        opened = open(socket, tls) => opened,
    };
    match opened {
        Some(Opened::Tcp(stream, protocol)) => speak(stream, protocol, doors, stop, window).await,
        Some(Opened::Unix(stream, protocol)) => speak(stream, protocol, doors, stop, window).await,
        Some(Opened::Tls(stream, protocol)) => speak(*stream, protocol, doors, stop, window).await,
        None => {}
    }
}

/// A connection of which it is known what it carries.
enum Opened {
    Tcp(TcpStream, Protocol),
    Unix(UnixStream, Protocol),
    Tls(Box<TlsStream<TcpStream>>, Protocol),
}

/// Learns what a connection carries: by its first bytes, or by what TLS agreed on. `None`: it hung
/// up, or said nothing for too long. A unix socket has no TLS (gazette-spec 1.1).
async fn open(socket: Socket, tls: Option<Tls>) -> Option<Opened> {
    match (socket, tls) {
        (socket @ Socket::Tcp(_), Some(_)) if !is_tls(&socket).await? => {
            refuse_plain(socket).await;
            None
        }
        (Socket::Tcp(stream), Some(tls)) => {
            let greeted = tokio::time::timeout(limits::GREETING_MAX, tls.accept(stream)).await;
            let stream = greeted.ok()?.inspect_err(refused_handshake).ok()?;
            let protocol = if is_http2(&stream) { Protocol::Http2 } else { Protocol::Http1 };
            Some(Opened::Tls(Box::new(stream), protocol))
        }
        (socket, _) => {
            let protocol = protocol_of(&socket).await?;
            Some(match socket {
                Socket::Tcp(stream) => Opened::Tcp(stream, protocol),
                Socket::Unix(stream) => Opened::Unix(stream, protocol),
            })
        }
    }
}

fn refused_handshake(error: &std::io::Error) {
    tracing::debug!(%error, "a TLS handshake failed");
}

async fn speak<S>(stream: S, protocol: Protocol, doors: Doors, stop: Stop, window: u32)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    match protocol {
        Protocol::Http1 => drive(http1().serve_connection(io, doors), stop).await,
        Protocol::Http2 => drive(http2(window).serve_connection(io, doors), stop).await,
    }
}

/// Serves the requests of a connection that was handed in and carries HTTP/2. No answer tells the
/// date, which is the system's: they are the same at any time.
pub async fn speak_undated<S>(stream: S, doors: Doors, stop: Stop, window: u32)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http2(window);
    builder.auto_date_header(false);
    drive(builder.serve_connection(TokioIo::new(stream), doors), stop).await;
}

/// Tells a client for which there is no room, in words that an HTTP/1 client shows.
pub async fn turn_away(socket: Socket) {
    let text = format!("the broker has {} connections, its limit\n", limits::CONNECTIONS_MAX);
    hang_up(socket, "503 Service Unavailable", &text).await;
}

/// Tells a client that speaks no TLS where there must be some, as Go's servers do.
async fn refuse_plain(socket: Socket) {
    let text = "this port speaks TLS: use https://\n";
    hang_up(socket, "400 Bad Request", text).await;
}

/// Answers without reading what was asked.
async fn hang_up(socket: Socket, status: &str, text: &str) {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: text/plain");
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    // What is there unread would break the connection off before the answer is read.
    let mut asked = [0; 4096];
    let _ = match &socket {
        Socket::Tcp(stream) => stream.try_read(&mut asked),
        Socket::Unix(stream) => stream.try_read(&mut asked),
    };
    // The answer fits into the socket's buffer. Who does not take it gets nothing else either.
    let _ = match socket {
        Socket::Tcp(mut stream) => stream.write_all(answer.as_bytes()).await,
        Socket::Unix(mut stream) => stream.write_all(answer.as_bytes()).await,
    };
}

fn set_options(socket: &Socket) {
    use rustix::net::sockopt;
    let Socket::Tcp(stream) = socket else { return };
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

async fn drive<C>(connection: C, stop: Stop)
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

/// The settings of an HTTP/2 connection to a broker: also for servers that are measured beside one.
pub fn http2_builder() -> http2::Builder<TokioExecutor> {
    http2(limits::CONNECTION_WINDOW)
}

fn http2(window: u32) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::KEEP_ALIVE)
        .keep_alive_timeout(limits::KEEP_ALIVE_ANSWER_MAX)
        .max_header_list_size(limits::HEAD_LEN_MAX)
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::CANCELLED_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW.min(window))
        .initial_connection_window_size(window)
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
