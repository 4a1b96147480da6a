//! Requests of one message, taken whole before anything is made of them.
//!
//! A client may send all but the last byte of many messages, and does not need a token for that:
//! they are bounded in bytes, all together, and in time.

use super::limits::{REQUEST_FREE_LEN, REQUEST_TIME_MAX};
use crate::Memory;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use std::error::Error;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tonic::Status;

/// The room for messages of all connections of a port. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Intake {
    free: Arc<Semaphore>,
    message_max: usize,
}

/// A body that is whole, with the room that it takes.
#[derive(Debug)]
pub struct Taken {
    pub bytes: Bytes,
    /// Given back when what the bytes became is dropped with it.
    pub room: Option<OwnedSemaphorePermit>,
}

impl Intake {
    /// Room for messages of at most `message_max` bytes.
    pub fn new(memory: Memory, message_max: usize) -> Self {
        let room = usize::try_from(memory.requests()).unwrap_or(usize::MAX).max(message_max);
        let room = room.min(Semaphore::MAX_PERMITS);
        Intake { free: Arc::new(Semaphore::new(room)), message_max }
    }

    /// Takes a body to its end. The first kilobytes of each are free, so that small requests are
    /// served while others hold all the room.
    pub async fn take<B>(&self, body: B) -> Result<Taken, Status>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Error,
    {
        let late = |_elapsed| Status::cancelled("the request's message does not come");
        timeout(REQUEST_TIME_MAX, self.collect(body)).await.map_err(late)?
    }

    async fn collect<B>(&self, mut body: B) -> Result<Taken, Status>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Error,
    {
        let mut bytes = BytesMut::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Status::cancelled(format!("the body: {error}")))?;
            let Ok(part) = frame.into_data() else { continue };
            if bytes.len() + part.len() > self.message_max {
                let text = format!("the request is over the limit of {} bytes", self.message_max);
                return Err(Status::out_of_range(text));
            }
            bytes.extend_from_slice(&part);
            let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let more = self.room((bytes.len() - held).saturating_sub(REQUEST_FREE_LEN))?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
        }
        Ok(Taken { bytes: bytes.freeze(), room })
    }

    /// Takes room without waiting: those who wait hold what they have.
    fn room(&self, len: usize) -> Result<OwnedSemaphorePermit, Status> {
        let len = u32::try_from(len).expect("a message is shorter than 4 GiB");
        let taken = self.free.clone().try_acquire_many_owned(len);
        taken.map_err(|_none_left| {
            let text = "too many bytes of unfinished requests; ask again later";
            Status::unavailable(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use std::convert::Infallible;
    use tonic::Code;

    fn body(len: usize) -> Full<Bytes> {
        Full::from(vec![7; len])
    }

    #[tokio::test]
    async fn bodies_are_taken_while_there_is_room() {
        let memory = Memory::of(0);
        let long = usize::try_from(memory.requests()).expect("fits") / 2 + REQUEST_FREE_LEN;
        let intake = Intake::new(memory, long);
        let first = intake.take(body(long)).await.expect("there is room");
        assert_eq!(first.bytes.len(), long);
        let second = intake.take(body(long)).await.expect("there is room");
        // Case: all room is taken, and small requests are served
        let refused = intake.take(body(long)).await.expect_err("none is left");
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        let small = intake.take(body(REQUEST_FREE_LEN)).await.expect("it needs none");
        assert_eq!(small.bytes, vec![7; REQUEST_FREE_LEN]);
        // Case: room is given back
        drop((first, second));
        intake.take(body(long)).await.expect("there is room again");
        // Case: one that is too long
        let refused = intake.take(body(long + 1)).await.expect_err("over the limit");
        assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_an_end_is_given_up() {
        let frames = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")))]);
        let endless = StreamBody::new(futures::StreamExt::chain(frames, stream::pending()));
        let refused =
            Intake::new(Memory::DEFAULT, 9).take(endless).await.expect_err("it has no end");
        assert_eq!(refused.code(), Code::Cancelled, "{refused}");
    }
}
