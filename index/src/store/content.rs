//! The decompressed and checked bytes of a stored fragment, as a stream.

use super::StoreError;
use crate::codec::{Decoder, Step};
use crate::name;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use protocol::{Fragment, Offset, Sum};
use sha1::{Digest, Sha1};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes of a fragment, in order and without gaps; an error is the last item.
///
/// Memory is bounded by one chunk of the store and one of ours. Nothing is fetched unless polled.
pub struct Content {
    chunks: BoxStream<'static, Result<Bytes, StoreError>>,
}

impl Content {
    /// What is read at a fragment's end.
    pub(super) fn nothing() -> Self {
        Content { chunks: stream::empty().boxed() }
    }

    /// The fragment's bytes from `from` on, out of those of its object as they lie in the store.
    /// `fetched` begins with the object, or, where that is not compressed, with the byte of offset
    /// `start`. What comes is checked as [`Store::open`](super::Store::open) says.
    pub fn of_object(
        fragment: Fragment,
        fetched: BoxStream<'static, Result<Bytes, StoreError>>,
        start: Offset,
        from: Offset,
    ) -> Self {
        let decoder = Decoder::new(fragment.codec);
        let sum = (start == fragment.span.begin()).then(Sha1::new);
        let reading = Reading { fragment, fetched, decoder, at: start, from, sum, last: None };
        let chunks = stream::unfold(Some(reading), |reading| async {
            let mut reading = reading?;
            match reading.next().await {
                Ok(Some(chunk)) => Some((Ok(chunk), Some(reading))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        Content { chunks: chunks.boxed() }
    }
}

impl Stream for Content {
    type Item = Result<Bytes, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(cx)
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}

/// A stored fragment while it is read.
struct Reading {
    fragment: Fragment,
    fetched: BoxStream<'static, Result<Bytes, StoreError>>,
    decoder: Decoder,
    /// The offset of the next decompressed byte.
    at: Offset,
    /// Bytes below are decompressed and dropped.
    from: Offset,
    /// Of all bytes so far, where all are read.
    sum: Option<Sha1>,
    /// The chunk that reaches the fragment's end: kept back until nothing comes after it and the
    /// sum is right, so that nobody takes damaged bytes for a whole fragment.
    last: Option<Bytes>,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            match self.decoder.step() {
                Ok(Step::Hungry) => self.fetch().await?,
                Ok(Step::Chunk(chunk)) => {
                    if let Some(chunk) = self.take(chunk)? {
                        return Ok(Some(chunk));
                    }
                    // Bytes that are skipped cost time all the same.
                    tokio::task::consume_budget().await;
                }
                Ok(Step::End) => return self.end(),
                Err(error) => return Err(self.damaged(error.to_string())),
            }
        }
    }

    async fn fetch(&mut self) -> Result<(), StoreError> {
        match self.fetched.next().await {
            Some(Ok(chunk)) => self.decoder.feed(chunk),
            Some(Err(error)) => return Err(error),
            None => self.decoder.finish(),
        }
        Ok(())
    }

    /// Counts a decompressed chunk and answers the part of it that was asked for and can be given.
    fn take(&mut self, mut chunk: Bytes) -> Result<Option<Bytes>, StoreError> {
        let begin = self.at;
        let end = self.fragment.span.end();
        if chunk.len() as u64 > end.since(begin) {
            self.at = end;
            return Err(self.damaged("it goes on after its end".to_owned()));
        }
        if let Some(sum) = &mut self.sum {
            sum.update(&chunk);
        }
        self.at = begin.plus(chunk.len() as u64);
        if self.at <= self.from {
            return Ok(None);
        }
        let skipped = self.from.since(begin);
        let wanted = chunk.split_off(usize::try_from(skipped).expect("less than a chunk"));
        if self.at == end {
            self.last = Some(wanted);
            return Ok(None);
        }
        Ok(Some(wanted))
    }

    /// Checks what was read when there is no more, and gives the chunk that was kept back.
    fn end(&mut self) -> Result<Option<Bytes>, StoreError> {
        if self.at < self.fragment.span.end() {
            return Err(self.damaged("it ends there".to_owned()));
        }
        if let Some(sum) = self.sum.take() {
            let found = Sum::new(sum.finalize().into());
            if found != self.fragment.sum {
                self.at = self.fragment.span.begin();
                return Err(self.damaged(format!("the sum of its bytes is {found}")));
            }
        }
        Ok(self.last.take())
    }

    fn damaged(&self, reason: String) -> StoreError {
        StoreError::Damaged { name: name::path(&self.fragment), offset: self.at, reason }
    }
}
