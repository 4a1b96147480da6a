//! One stored fragment that is read ahead: a task fetches and decompresses it into a bounded queue.

use crate::limits::{FLOW_PIECES, PIECE_LEN};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use index::store::{Content, StoreError};
use protocol::{Fragment, Offset};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// What is left of a fragment. Invariant: `rest` and what the task still sends begin at `position`.
#[derive(Debug)]
pub(crate) struct Flow {
    fragment: Fragment,
    position: Offset,
    rest: Bytes,
    pieces: mpsc::Receiver<Result<Bytes, StoreError>>,
    task: AbortHandle,
}

impl Flow {
    /// Begins to read `content`, which is that of the fragment from `from` on. Needs a tokio
    /// runtime around it. Not more than `FLOW_PIECES` pieces are read ahead.
    pub fn start(fragment: Fragment, content: Content, from: Offset) -> Self {
        let (sender, pieces) = mpsc::channel(FLOW_PIECES);
        let task = tokio::spawn(pump(content, sender)).abort_handle();
        Flow { fragment, position: from, rest: Bytes::new(), pieces, task }
    }

    pub fn fragment(&self) -> &Fragment {
        &self.fragment
    }

    /// Where the next byte is.
    pub fn position(&self) -> Offset {
        self.position
    }

    /// Bytes of the fragment that were not taken yet.
    pub fn left(&self) -> u64 {
        self.fragment.end().since(self.position)
    }

    /// Up to `max` bytes, as many of them as are there without waiting; `None` at the fragment's
    /// end. After an error there is nothing more. Dropping the future loses nothing.
    pub async fn next(&mut self, max: usize) -> Result<Option<Bytes>, StoreError> {
        while self.rest.is_empty() {
            match self.pieces.recv().await {
                Some(piece) => self.rest = piece?,
                None => return Ok(None),
            }
        }
        let first = self.take(max);
        if first.len() == max {
            return Ok(Some(first));
        }
        let mut bytes = BytesMut::from(first);
        while bytes.len() < max {
            let more = self.take(max - bytes.len());
            bytes.extend_from_slice(&more);
            if self.rest.is_empty() {
                // An error stays out of the queue's way: it is met again by the next call.
                match self.pieces.try_recv() {
                    Ok(Ok(piece)) => self.rest = piece,
                    Ok(Err(error)) => {
                        self.fail_later(error);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        Ok(Some(bytes.freeze()))
    }

    /// Passes over `len` bytes, which are not more than are left.
    pub async fn skip(&mut self, mut len: u64) -> Result<(), StoreError> {
        while len > 0 {
            let max = usize::try_from(len).unwrap_or(usize::MAX).min(PIECE_LEN);
            match self.next(max).await? {
                Some(skipped) => len -= skipped.len() as u64,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn take(&mut self, max: usize) -> Bytes {
        let bytes = self.rest.split_to(self.rest.len().min(max));
        self.position = self.position.plus(bytes.len() as u64);
        bytes
    }

    fn fail_later(&mut self, error: StoreError) {
        let (sender, pieces) = mpsc::channel(1);
        // The queue is new and takes one.
        let _ = sender.try_send(Err(error));
        self.pieces = pieces;
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends when nobody takes the pieces any more.
async fn pump(mut content: Content, sender: mpsc::Sender<Result<Bytes, StoreError>>) {
    while let Some(next) = content.next().await {
        let mut chunk = match next {
            Ok(chunk) => chunk,
            Err(error) => {
                let _gone = sender.send(Err(error)).await;
                return;
            }
        };
        while !chunk.is_empty() {
            let piece = chunk.split_to(chunk.len().min(PIECE_LEN));
            if sender.send(Ok(piece)).await.is_err() {
                return;
            }
        }
    }
}
