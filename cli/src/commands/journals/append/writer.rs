//! A writer whose appends happen once, whichever broker it writes to.

use crate::{Error, output, random};
use bytes::Bytes;
use client::{Anchored, Append, Appender, Receipt, Remote};
use protocol::Journal;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an append may take that can be made again: longer than a broker takes to come back.
const PATIENCE: Duration = Duration::from_secs(120);

/// When whoever waits is told that there is something to wait for.
const NOTE_AFTER: Duration = Duration::from_secs(10);

/// Appends, each of them once.
pub struct Writer {
    kind: Kind,
    late: Late,
}

enum Kind {
    /// By the writer's id and a sequence, which our brokers remember.
    Numbered(Box<Appender>),
    /// By the offset that each append is to have, on a Gazette broker.
    Anchored(Box<Anchored>),
}

impl Writer {
    pub async fn new(remote: &Arc<Remote>) -> Result<Self, Error> {
        let kind = match remote.knows_writers().await? {
            true => {
                let appender = Appender::new(remote.clone(), random::bytes()?, PATIENCE);
                Kind::Numbered(Box::new(appender))
            }
            false => {
                let anchored = Anchored::new(remote.clone(), PATIENCE, random::number()?);
                Kind::Anchored(Box::new(anchored))
            }
        };
        Ok(Writer { kind, late: Late::default() })
    }

    /// Appends, and waits for it.
    pub async fn append(&mut self, append: Append) -> Result<(), Error> {
        self.begin(append).await?.done().await.map(drop)
    }

    /// Begins to append records to a journal, one behind the other: those behind one that is
    /// refused are refused too. `None` where there are no records.
    pub async fn begin_all(
        &mut self,
        records: Vec<Bytes>,
        request: impl Fn(Bytes) -> Append,
    ) -> Result<Option<Begun>, Error> {
        let records = match &self.kind {
            Kind::Numbered(_) => records,
            // Here each append takes a turn of its own.
            Kind::Anchored(_) => vec![records.concat().into()],
        };
        let mut all: Option<Begun> = None;
        for record in records {
            let next = self.begin(request(record)).await?;
            let before = all.map_or(0, |all| all.len);
            all = Some(Begun { len: before + next.len, ..next });
        }
        Ok(all)
    }

    async fn begin(&mut self, append: Append) -> Result<Begun, Error> {
        let (journal, len) = (append.journal.clone(), append.content.len() as u64);
        let late = self.late.clone();
        let receipt = late.told(&journal, self.push(append)).await?;
        Ok(Begun { journal, len, receipt, late })
    }

    async fn push(&mut self, append: Append) -> Result<Receipt, client::Error> {
        match &mut self.kind {
            Kind::Numbered(appender) => Ok(appender.push(append).await),
            Kind::Anchored(anchored) => anchored.append(append).await.map(Ok).map(Receipt::known),
        }
    }

    /// What an append says that is sent as it comes, and can't be sent again.
    pub fn of_stream(&self, append: Append) -> Append {
        match &self.kind {
            Kind::Numbered(appender) => Append { writer: Some(appender.next_writer()), ..append },
            Kind::Anchored(_) => append,
        }
    }
}

/// An append that is under way.
pub struct Begun {
    journal: Journal,
    /// Bytes of it, and of those before it that end with it.
    len: u64,
    receipt: Receipt,
    late: Late,
}

impl Begun {
    /// Waits until it is acknowledged; its bytes.
    pub async fn done(self) -> Result<u64, Error> {
        self.late.told(&self.journal, self.receipt.appended()).await?;
        self.late.is_told.store(false, Ordering::Relaxed);
        Ok(self.len)
    }
}

/// Whether it was told that something is late, until something is answered. Cheap to clone.
#[derive(Clone, Default)]
struct Late {
    is_told: Arc<AtomicBool>,
}

impl Late {
    /// Waits, and tells once that an append is not answered yet. An operator would take a silent
    /// command for one that hangs, as while the broker is refused by its store.
    async fn told<T>(&self, journal: &Journal, waiting: impl Future<Output = T>) -> T {
        let note = async {
            tokio::time::sleep(NOTE_AFTER).await;
            if !self.is_told.swap(true, Ordering::Relaxed) {
                output::note(&format!(
                    "{journal}: not appended yet, and asked again for up to {} s (--log-level \
                     debug says why)",
                    PATIENCE.as_secs()
                ));
            }
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            done = waiting => done,
            never = note => match never {},
        }
    }
}
