//! What becomes of an append that was pushed.

use crate::{Appended, Error};
use futures::future::{FutureExt, Shared};
use protocol::{Life, Offset, Span};
use tokio::sync::oneshot;

/// Where a group lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Landed {
    pub begin: Offset,
    pub life: Life,
    pub repeated: bool,
}

pub(super) type Outcome = Result<Landed, Error>;

/// What becomes of a group, for each of its appends.
pub(super) type Done = Shared<oneshot::Receiver<Outcome>>;

/// The two ends of a group's outcome.
pub(super) fn outcome() -> (oneshot::Sender<Outcome>, Done) {
    let (sender, receiver) = oneshot::channel();
    (sender, receiver.shared())
}

/// An append that was pushed. Nothing has to be done with it: the append is made all the same.
#[derive(Debug)]
pub struct Receipt(State);

#[derive(Debug)]
enum State {
    /// It is `len` bytes, `at` bytes behind the begin of its group.
    InGroup {
        done: Done,
        at: u32,
        len: u32,
    },
    Known(Box<Result<Appended, Error>>),
}

impl Receipt {
    pub(super) fn in_group(done: Done, at: u32, len: u32) -> Self {
        Receipt(State::InGroup { done, at, len })
    }

    /// That of an append whose answer is there.
    pub fn known(answer: Result<Appended, Error>) -> Self {
        Receipt(State::Known(Box::new(answer)))
    }

    /// Waits until the append is acknowledged, or was refused.
    pub async fn appended(self) -> Result<Appended, Error> {
        match self.0 {
            State::Known(answer) => *answer,
            State::InGroup { done, at, len } => {
                // Without an answer, whoever pushed is gone with the session.
                let landed = done.await.map_err(|_| Error::Unknown)??;
                let Landed { begin, life, repeated } = landed;
                let span = Span::at(begin.plus(at.into()), len.into());
                Ok(Appended { span, life, repeated })
            }
        }
    }
}
