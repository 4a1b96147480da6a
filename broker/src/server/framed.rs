//! The messages of a gRPC body, counted as its bytes go by.

use super::limits::REQUEST_FREE_LEN;
use crate::append::Share;
use crate::gazette::call_error;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use prometheus::IntCounter;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tonic::Status;

/// Bytes before each message: a flag, and four of its length.
pub const FRAMING: usize = 5;

/// How far a stream of framed messages has come.
#[derive(Debug, Default)]
pub struct Frames {
    /// The begin of a message, of which `filled` bytes are there.
    head: [u8; FRAMING],
    filled: usize,
    /// Bytes of a message that are still to come.
    left: usize,
}

impl Frames {
    /// Bytes of the message that is not whole.
    pub fn unfinished(&self) -> usize {
        if self.filled < FRAMING {
            return self.filled;
        }
        let [_flag, len @ ..] = self.head;
        FRAMING + u32::from_be_bytes(len) as usize - self.left
    }

    /// Takes the next bytes, and answers how many messages are whole by them.
    pub fn push(&mut self, mut bytes: &[u8]) -> u64 {
        let mut whole = 0;
        while !bytes.is_empty() {
            if self.filled < FRAMING {
                let len = bytes.len().min(FRAMING - self.filled);
                self.head[self.filled..self.filled + len].copy_from_slice(&bytes[..len]);
                self.filled += len;
                bytes = &bytes[len..];
                if self.filled < FRAMING {
                    return whole;
                }
                let [_flag, len @ ..] = self.head;
                self.left = u32::from_be_bytes(len) as usize;
            }
            let len = bytes.len().min(self.left);
            self.left -= len;
            bytes = &bytes[len..];
            if self.left == 0 {
                self.filled = 0;
                whole += 1;
            }
        }
        whole
    }
}

/// What a client sends, with its messages counted, and with a bound on what comes of a message
/// before it is whole: a client could send all but the last byte of it, in each of many requests.
#[derive(Debug)]
pub struct Framed<B> {
    body: B,
    frames: Frames,
    /// `None` where nobody counts.
    messages: Option<IntCounter>,
    /// What it takes of the room for all, and of its connection's, where that is bounded here.
    room: Option<[Share; 2]>,
}

/// A body that broke off.
#[derive(Debug, thiserror::Error)]
pub enum Broken<E: std::error::Error + 'static> {
    #[error("{0}")]
    Body(#[source] E),
    /// There is no room for what comes of it.
    #[error("{0}")]
    Full(#[source] Status),
}

impl<B> Framed<B> {
    pub fn new(body: B, messages: Option<IntCounter>, room: Option<[Share; 2]>) -> Self {
        Framed { body, frames: Frames::default(), messages, room }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Status> {
        let whole = self.frames.push(bytes);
        if let Some(messages) = &self.messages {
            messages.inc_by(whole);
        }
        let held = self.frames.unfinished().saturating_sub(REQUEST_FREE_LEN) as u64;
        let mut room = self.room.iter_mut().flatten();
        room.try_for_each(|room| room.resize(held)).map_err(call_error)
    }
}

impl<B> Body for Framed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    type Data = Bytes;
    type Error = Broken<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(polled) = polled else { return Poll::Ready(None) };
        let frame = polled.map_err(Broken::Body)?;
        if let Some(bytes) = frame.data_ref() {
            self.take(bytes).map_err(Broken::Full)?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        for len in [0_u32, 1, 300, 0, 70_000] {
            bytes.push(0);
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.resize(bytes.len() + len as usize, 7);
        }
        for piece in [1, 2, 5, 6, 7, 4096, bytes.len()] {
            let mut frames = Frames::default();
            let whole: u64 = bytes.chunks(piece).map(|piece| frames.push(piece)).sum();
            assert_eq!(whole, 5, "{piece}");
            // Case: one that is not whole.
            assert_eq!(frames.unfinished(), 0);
            assert_eq!(frames.push(&[0, 0, 0]), 0);
            assert_eq!(frames.unfinished(), 3);
            assert_eq!(frames.push(&[0, 2, 7]), 0);
            assert_eq!(frames.unfinished(), 6);
        }
    }
}
