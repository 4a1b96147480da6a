//! Appending with retries, each applied once.

use crate::retry::{Pauses, patiently};
use crate::{Append, Appended, Error, Journals, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A writer: it numbers its appends, so that a broker knows one that is asked for again.
///
/// A Gazette broker does not know; there an append whose answer was lost is [`Error::Unknown`], and
/// is not asked for again.
pub struct Appender {
    journals: Arc<dyn Journals>,
    id: [u8; 16],
    sequence: AtomicU64,
    patience: Duration,
}

impl Appender {
    /// `id` is 16 bytes that no other writer has; `patience` is how long an append may take.
    pub fn new(journals: Arc<dyn Journals>, id: [u8; 16], patience: Duration) -> Self {
        Appender { journals, id, sequence: AtomicU64::new(0), patience }
    }

    /// The name of the next append.
    pub fn next_writer(&self) -> Writer {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        Writer { id: self.id, sequence }
    }

    /// Appends once, however often that takes. Appends to one journal must not overlap: of two
    /// under way the later could be applied first, and the earlier then be refused.
    pub async fn append(&self, append: Append) -> Result<Appended, Error> {
        let append = Append { writer: Some(self.next_writer()), ..append };
        let ask = || self.journals.append(append.clone());
        patiently(self.patience, self.pauses(), ask).await
    }

    /// Pauses that differ between writers.
    fn pauses(&self) -> Pauses {
        let half = self.id.first_chunk::<8>().expect("an id has 16 bytes");
        Pauses::new(u64::from_le_bytes(*half))
    }
}
