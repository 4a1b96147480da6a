//! How much of a journal a read takes at a time, so that all reads together stay bounded.
//!
//! A client that opens many reads and takes nothing of their answers makes each of them wait with
//! one chunk in memory. A budget that reads wait for would stop those who take their answers in an
//! order of their own; smaller chunks stop nobody.

use crate::limits::{BATCH, CHUNK, CHUNK_MIN, READ_CHUNKS_MAX};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The reads that are under way.
#[derive(Debug, Default)]
pub(crate) struct Readers(Arc<AtomicUsize>);

impl Readers {
    /// One more, until what is returned is dropped.
    pub fn begin(&self) -> Share {
        self.0.fetch_add(1, Ordering::Relaxed);
        Share(self.0.clone())
    }
}

/// What one read may hold of the memory for all of them.
#[derive(Debug)]
pub(crate) struct Share(Arc<AtomicUsize>);

impl Share {
    /// The longest chunk, in bytes: smaller the more reads there are, and at least [`CHUNK_MIN`].
    pub fn chunk_len(&self) -> usize {
        let readers = self.0.load(Ordering::Relaxed).max(1);
        (READ_CHUNKS_MAX / readers).clamp(CHUNK_MIN, CHUNK)
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
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_smaller_the_more_reads_there_are() {
        let readers = Readers::default();
        // Case: the reads at a time, and the chunk of each
        let cases = [
            (1, CHUNK),
            (READ_CHUNKS_MAX / CHUNK, CHUNK),
            (2 * READ_CHUNKS_MAX / CHUNK, CHUNK / 2),
            (2 * READ_CHUNKS_MAX / CHUNK_MIN, CHUNK_MIN),
        ];
        for (count, expected) in cases {
            let shares: Vec<Share> = (0..count).map(|_| readers.begin()).collect();
            assert_eq!(shares[0].chunk_len(), expected, "{count}");
        }
        // Case: those that ended count no longer
        assert_eq!(readers.begin().chunk_len(), CHUNK);
    }
}
