//! A hold on the data directory of a broker, for who copies it (`Hold` in courant.proto).

use super::{Door, Remote};
use crate::Error;
use protocol::wire::courant::{HoldRequest, HoldResponse, HoldStep};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// The moment that a copy is of, as its broker tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMoment {
    /// From where the log is needed, and up to where: segment << 32 | offset.
    pub log: (u64, u64),
    /// The CRC32C of the checkpoint's file.
    pub checkpoint_crc: u32,
    /// The content of the key space's file.
    pub key_space: Vec<u8>,
}

/// While it lives the broker frees nothing of its data directory; the steps are taken in their
/// order. It may be ended by the broker: the next step fails then, and the copy is worth nothing.
pub struct Holding {
    door: Arc<Door>,
    steps: mpsc::Sender<HoldRequest>,
    answers: Streaming<HoldResponse>,
}

impl Remote {
    /// Has the broker free nothing of its data directory.
    pub async fn hold(&self) -> Result<Holding, Error> {
        self.expect_courant("can't hold its data for a copy").await?;
        let door = self.door().clone();
        let (steps, outgoing) = mpsc::channel(1);
        let mut client = door.courant();
        let begin = HoldRequest { step: HoldStep::HoldBegin.into() };
        steps.try_send(begin).expect("an empty channel takes a message");
        let answers = door.ask(client.hold(ReceiverStream::new(outgoing))).await?;
        let mut holding = Holding { door, steps, answers };
        holding.answer(HoldStep::HoldBegin).await?;
        Ok(holding)
    }
}

impl Holding {
    /// Has nothing put into file stores or deleted from stores, and no journal created or deleted,
    /// until the moment is taken. That has to be within a minute.
    pub async fn quiet(&mut self) -> Result<(), Error> {
        self.step(HoldStep::HoldQuiet).await.map(drop)
    }

    /// Takes the moment: all that was acknowledged before is in it. Its checkpoint and its log stay
    /// until [`Holding::log_copied`].
    pub async fn moment(&mut self) -> Result<HeldMoment, Error> {
        let mut response = self.step(HoldStep::HoldMoment).await?;
        let mut key_space = Vec::new();
        loop {
            key_space.extend_from_slice(&response.key_space);
            if response.is_last {
                let log = (response.log_start, response.log_end);
                let checkpoint_crc = response.checkpoint_crc;
                return Ok(HeldMoment { log, checkpoint_crc, key_space });
            }
            response = self.answer(HoldStep::HoldMoment).await?;
        }
    }

    /// Checkpoint, log and staging were copied.
    pub async fn log_copied(&mut self) -> Result<(), Error> {
        self.step(HoldStep::HoldLogCopied).await.map(drop)
    }

    /// The mirrors were copied. Success says that the broker held everything until now.
    pub async fn end(mut self) -> Result<(), Error> {
        self.step(HoldStep::HoldEnd).await.map(drop)
    }

    async fn step(&mut self, step: HoldStep) -> Result<HoldResponse, Error> {
        // Where the stream has ended its answers say why.
        let _ = self.steps.send(HoldRequest { step: step.into() }).await;
        self.answer(step).await
    }

    async fn answer(&mut self, expected: HoldStep) -> Result<HoldResponse, Error> {
        let answer = self.answers.message().await.map_err(|status| self.door.fault(status))?;
        let answer = answer.ok_or_else(|| self.door.ended())?;
        match answer.step() == expected {
            true => Ok(answer),
            false => Err(Error::Protocol(format!(
                "the answer to {} where that to {} comes next",
                answer.step().as_str_name(),
                expected.as_str_name()
            ))),
        }
    }
}
