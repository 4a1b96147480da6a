//! How much of a journal a read takes at a time, so that all reads together stay bounded.
//!
//! A client that opens many reads and takes nothing of their answers makes each of them wait with
//! one chunk in memory. A budget that reads wait for would stop those who take their answers in an
//! order of their own; smaller chunks stop nobody.

use crate::Memory;
use crate::limits::{BATCH, CHUNK, CHUNK_MIN};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The reads that are under way.
#[derive(Debug)]
pub(crate) struct Readers {
    count: Arc<AtomicUsize>,
    /// Bytes of all their chunks.
    chunks_max: usize,
}

impl Readers {
    pub fn new(memory: Memory) -> Self {
        let chunks_max = usize::try_from(memory.chunks()).unwrap_or(usize::MAX);
        Readers { count: Arc::default(), chunks_max }
    }

    /// One more, until what is returned is dropped.
    pub fn begin(&self) -> Share {
        self.count.fetch_add(1, Ordering::Relaxed);
        Share { count: self.count.clone(), chunks_max: self.chunks_max }
    }
}

/// What one read may hold of the memory for all of them.
#[derive(Debug)]
pub(crate) struct Share {
    count: Arc<AtomicUsize>,
    chunks_max: usize,
}

impl Share {
    /// The longest chunk, in bytes: smaller the more reads there are, and at least [`CHUNK_MIN`].
    pub fn chunk_len(&self) -> usize {
        let readers = self.count.load(Ordering::Relaxed).max(1);
        (self.chunks_max / readers).clamp(CHUNK_MIN, CHUNK)
    }

    /// Waits until what was read before is on its way. gRPC's encoder goes on until it has
    /// [`BATCH`] bytes or has to wait, whether or not anybody takes them.
    pub async fn part(&self) {
        if self.chunk_len() < BATCH {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_smaller_the_more_reads_there_are() {
        let readers = Readers::new(Memory::DEFAULT);
        let max = readers.chunks_max;
        // Case: the reads at a time, and the chunk of each
        let cases = [
            (1, CHUNK),
            (max / CHUNK, CHUNK),
            (2 * max / CHUNK, CHUNK / 2),
            (2 * max / CHUNK_MIN, CHUNK_MIN),
        ];
        for (count, expected) in cases {
            let shares: Vec<Share> = (0..count).map(|_| readers.begin()).collect();
            assert_eq!(shares[0].chunk_len(), expected, "{count}");
        }
        // Case: those that ended count no longer
        assert_eq!(readers.begin().chunk_len(), CHUNK);
    }
}
