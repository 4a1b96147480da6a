//! A writer whose appends happen once, whichever broker it writes to.

use crate::{Error, random};
use client::{Anchored, Append, Appended, Appender, Remote};
use std::sync::Arc;
use std::time::Duration;

/// How long an append may take that can be made again: longer than a broker takes to come back.
const PATIENCE: Duration = Duration::from_secs(120);

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
        Ok(match self {
            Writer::Numbered(appender) => appender.append(append).await?,
            Writer::Anchored(anchored) => anchored.append(append).await?,
        })
    }

    /// What an append says that is sent as it comes, and can't be sent again.
    pub fn of_stream(&self, append: Append) -> Append {
        match self {
            Writer::Numbered(appender) => Append { writer: Some(appender.next_writer()), ..append },
            Writer::Anchored(_) => append,
        }
    }
}
