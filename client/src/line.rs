//! The connection to a broker, watched: whether the broker is there, and an end to one that says
//! nothing.
//!
//! A broker that is stopped, or behind a network that drops what is sent, leaves its connection
//! open: the kernel notices nothing for minutes, and requests wait on it though a new connection
//! would be answered. So what comes over it is noted, and a connection on which nothing comes
//! though something was asked is cut: all that waits on it fails at once, and is asked again over
//! another one.

use crate::dial::{Dial, Stream};
use futures::future::BoxFuture;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// Since when a broker has been away, and what tells so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Away {
    pub since: Instant,
    pub why: String,
}

impl Away {
    /// For how long, until this moment.
    pub fn lasts(&self) -> Duration {
        self.since.elapsed()
    }
}

/// What is known of a broker by its connections; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    state: Arc<Mutex<State>>,
    away: watch::Sender<Option<Away>>,
    /// The number of the last connection; 0 before the first.
    made: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// When anything came, over whichever connection.
    heard: Instant,
    /// Of the connections that are there: dropped, or told, they end.
    cuts: Vec<oneshot::Sender<()>>,
}

impl Line {
    pub fn new() -> Self {
        let state = State { heard: Instant::now(), cuts: Vec::new() };
        Line {
            state: Arc::new(Mutex::new(state)),
            away: watch::Sender::new(None),
            made: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Whether the broker is away, as far as anybody has asked it.
    pub fn away(&self) -> watch::Receiver<Option<Away>> {
        self.away.subscribe()
    }

    /// The number of the last connection that was made. Who is at its other end is another process
    /// with each.
    pub fn number(&self) -> u64 {
        *self.made.borrow()
    }

    /// Waits until there is a connection.
    pub async fn connected(&self) {
        let mut made = self.made.subscribe();
        loop {
            made.borrow_and_update();
            if self.is_there() {
                return;
            }
            // The sender is ours.
            let _there = made.changed().await;
        }
    }

    fn is_there(&self) -> bool {
        let mut state = self.state();
        state.cuts.retain(|cut| !cut.is_closed());
        !state.cuts.is_empty()
    }

    /// How long nothing has come.
    pub fn silence(&self) -> Duration {
        self.state().heard.elapsed()
    }

    /// Something came: the broker is there.
    fn hear(&self) {
        self.state().heard = Instant::now();
        if self.away.borrow().is_some() {
            self.away.send_replace(None);
        }
    }

    /// The broker is away, and has been `since` then. What was said first stands.
    fn miss(&self, since: Instant, why: &str) {
        self.away.send_if_modified(|away| {
            let is_news = away.is_none();
            if is_news {
                *away = Some(Away { since, why: why.to_owned() });
            }
            is_news
        });
    }

    /// Nothing comes though something was asked: all connections end, and others are made.
    pub fn cut(&self) {
        let (heard, cuts) = {
            let mut state = self.state();
            (state.heard, std::mem::take(&mut state.cuts))
        };
        self.miss(heard, SILENT);
        drop(cuts);
    }

    fn begin(&self, stream: Box<dyn Stream>) -> Watched {
        let (cut, is_cut) = oneshot::channel();
        let mut state = self.state();
        state.cuts.retain(|cut| !cut.is_closed());
        state.cuts.push(cut);
        drop(state);
        self.made.send_modify(|number| *number += 1);
        Watched { stream, line: self.clone(), is_cut, was_heard: false }
    }
}

/// Why a connection was cut.
const SILENT: &str = "it does not answer";

/// Connections that are watched.
#[derive(Debug, Clone)]
pub(crate) struct Watching {
    dial: Arc<dyn Dial>,
    line: Line,
}

impl Watching {
    pub fn new(dial: Arc<dyn Dial>, line: Line) -> Self {
        Watching { dial, line }
    }

    pub fn dial(&self) -> BoxFuture<'static, io::Result<Watched>> {
        let (dialing, line) = (self.dial.dial(), self.line.clone());
        // Whoever waits for it may give up before it fails.
        let attempt = Attempt { line: Some(line.clone()), began: Instant::now() };
        Box::pin(async move {
            let dialed = dialing.await;
            attempt.over();
            match dialed {
                Ok(stream) => Ok(line.begin(stream)),
                Err(error) => {
                    line.miss(Instant::now(), &crate::remote::cause(&error));
                    Err(error)
                }
            }
        })
    }
}

/// An attempt to connect that is given up when it takes too long.
struct Attempt {
    line: Option<Line>,
    began: Instant,
}

impl Attempt {
    fn over(mut self) {
        self.line = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(line) = self.line.take()
            && self.began.elapsed() >= crate::limits::CONNECT_MAX
        {
            line.miss(self.began, "it takes no connection");
        }
    }
}

/// A connection whose bytes are noted as they come.
pub(crate) struct Watched {
    stream: Box<dyn Stream>,
    line: Line,
    is_cut: oneshot::Receiver<()>,
    was_heard: bool,
}

impl Watched {
    /// It has ended. One that never said anything tells that nobody is there: a proxy in front of
    /// a broker takes connections that it can't pass on.
    fn end(&self, why: &str) {
        if !self.was_heard {
            self.line.miss(Instant::now(), why);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if Pin::new(&mut self.is_cut).poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, SILENT)));
        }
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        match &read {
            Ok(()) if buffer.filled().len() > before => {
                self.was_heard = true;
                self.line.hear();
            }
            Ok(()) => self.end("it ends each connection"),
            Err(error) => self.end(&error.to_string()),
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
