//! Appending with retries, each applied once.

use crate::retry::{Pauses, patiently};
use crate::session::Session;
use crate::{Append, Appended, Error, Journals, Receipt, Remote, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// A writer: it numbers its appends, so that a broker knows one that is asked for again.
///
/// Small appends go over a session where the broker has them: those to one journal that come
/// together go together, and several such groups are under way. Appends to one journal are made in
/// the order in which they were pushed.
///
/// A Gazette broker does not know an append that is asked for again; there one whose answer was
/// lost is [`Error::Unknown`], and is not asked for again.
pub struct Appender {
    remote: Arc<Remote>,
    id: [u8; 16],
    sequence: AtomicU64,
    patience: Duration,
    session: Session,
    /// Held by the one append that goes by itself.
    alone: Mutex<()>,
}

impl Appender {
    /// `id` is 16 bytes that no other writer has; `patience` is how long an append may take.
    pub fn new(remote: Arc<Remote>, id: [u8; 16], patience: Duration) -> Self {
        let session = Session::new(remote.clone(), id, patience);
        let (sequence, alone) = (AtomicU64::new(0), Mutex::new(()));
        Appender { remote, id, sequence, patience, session, alone }
    }

    /// The name of the next append that goes by itself.
    pub fn next_writer(&self) -> Writer {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        Writer { id: self.id, sequence }
    }

    /// Takes an append, which is made once, however often that takes. Waits while too much is
    /// unanswered: of this journal, or of all. What is long, or depends on where the journal ends
    /// or on its registers, goes by itself, and this waits for its answer.
    ///
    /// After an append was refused, those to the same journal are too, so that none overtakes it,
    /// until [`flush`](Self::flush) has told of it.
    pub async fn push(&self, append: Append) -> Receipt {
        if Session::takes(&append)
            && let Some(receipt) = self.session.push(&append).await
        {
            return receipt;
        }
        let settled = self.session.settled(&append.journal).await;
        Receipt::known(match settled {
            Ok(()) => self.append_alone(append).await,
            Err(refused) => Err(refused),
        })
    }

    /// Waits until all that was pushed is answered, and takes appends to all journals again. Fails
    /// with a refusal, if there was one since the last time.
    pub async fn flush(&self) -> Result<(), Error> {
        self.session.flush().await
    }

    /// Appends once, however often that takes, and waits for it.
    pub async fn append(&self, append: Append) -> Result<Appended, Error> {
        let journal = append.journal.clone();
        let appended = self.push(append).await.appended().await;
        if appended.is_err() {
            self.session.forgive(&journal);
        }
        appended
    }

    /// Of two appends under way the later could be made first, and the earlier then be refused: so
    /// they do not overlap.
    async fn append_alone(&self, append: Append) -> Result<Appended, Error> {
        let _only = self.alone.lock().await;
        let append = Append { writer: Some(self.next_writer()), ..append };
        let ask = || self.remote.append(append.clone());
        patiently(self.patience, self.pauses(), ask).await
    }

    /// Pauses that differ between writers.
    fn pauses(&self) -> Pauses {
        let half = self.id.first_chunk::<8>().expect("an id has 16 bytes");
        Pauses::new(u64::from_le_bytes(*half))
    }
}
