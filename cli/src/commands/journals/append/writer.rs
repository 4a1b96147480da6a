//! A writer whose appends happen once, whichever broker it writes to.

use crate::{Error, output, random};
use client::{Anchored, Append, Appended, Appender, Remote};
use protocol::Journal;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How long an append may take that can be made again: longer than a broker takes to come back.
const PATIENCE: Duration = Duration::from_secs(120);

/// When whoever waits is told that there is something to wait for.
const NOTE_AFTER: Duration = Duration::from_secs(10);

/// Appends, each of them once.
pub enum Writer {
    /// By the writer's id and a sequence, which our brokers remember.
    Numbered(Appender),
    /// By the offset that each append is to have, on a Gazette broker.
    Anchored(Box<Anchored>),
}

impl Writer {
    pub async fn new(remote: &Arc<Remote>) -> Result<Self, Error> {
        Ok(match remote.knows_writers().await? {
            true => Writer::Numbered(Appender::new(remote.clone(), random::bytes()?, PATIENCE)),
            false => {
                let anchored = Anchored::new(remote.clone(), PATIENCE, random::number()?);
                Writer::Anchored(Box::new(anchored))
            }
        })
    }

    pub async fn append(&mut self, append: Append) -> Result<Appended, Error> {
        let journal = append.journal.clone();
        tokio::select! {
            biased;
            appended = self.asked(append) => Ok(appended?),
            never = note_late(&journal) => match never {},
        }
    }

    async fn asked(&mut self, append: Append) -> Result<Appended, client::Error> {
        match self {
            Writer::Numbered(appender) => appender.append(append).await,
            Writer::Anchored(anchored) => anchored.append(append).await,
        }
    }

    /// What an append says that is sent as it comes, and can't be sent again.
    pub fn of_stream(&self, append: Append) -> Append {
        match self {
            Writer::Numbered(appender) => Append { writer: Some(appender.next_writer()), ..append },
            Writer::Anchored(_) => append,
        }
    }
}

/// Tells once that an append is not answered yet. An operator would take a silent command for one
/// that hangs, as while the broker is refused by its store.
async fn note_late(journal: &Journal) -> Infallible {
    tokio::time::sleep(NOTE_AFTER).await;
    output::note(&format!(
        "{journal}: not appended yet, and asked again for up to {} s (--log-level debug says why)",
        PATIENCE.as_secs()
    ));
    std::future::pending().await
}
