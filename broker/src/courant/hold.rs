//! A hold on the data directory for who copies it, step by step (`Hold` in courant.proto).
//!
//! The files are the copier's to read; this keeps them from being freed, and takes the moment that
//! the copy is of. It ends with the stream, whoever ends that: the copier, its token, the port, or
//! a broker that needs the room.

use super::dialog;
use crate::evict::is_too_full;
use crate::gazette::call_error;
use crate::server::caller::Caller;
use crate::{Broker, Error, limits};
use bytes::Bytes;
use index::Hold;
use index::blocking::off_thread;
use protocol::wire::courant::{HoldRequest, HoldResponse, HoldStep};
use std::future::pending;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Status, Streaming};

/// The answers of a hold.
pub type Answers = dialog::Answers<HoldResponse>;

type Replies = dialog::Replies<HoldResponse>;

/// Begins a hold, unless there is one.
pub fn begin(caller: Caller, messages: Streaming<HoldRequest>) -> Result<Answers, Error> {
    let hold = Arc::new(caller.broker.data().hold()?);
    tracing::info!("a backup begins: nothing local is freed until it ends");
    Ok(dialog::begin(1, |replies| async move {
        let ended = tokio::select! {
            biased;
            () = replies.closed() => Ok(()),
            () = caller.ended() => Err(call_error(caller.grant.why_ended())),
            why = outlasted(&caller.broker, &hold) => Err(call_error(Error::HoldEnded(why))),
            ended = steps(&caller.broker, &hold, messages, &replies) => ended,
        };
        match &ended {
            Ok(()) => tracing::info!("the backup ended: local bytes can be freed again"),
            Err(status) => tracing::warn!(why = status.message(), "the backup was given up"),
        }
        // What was kept for it is removed, which blocks.
        off_thread(move || drop(hold)).await;
        ended
    }))
}

/// Returns when the broker can't hold any longer, with the reason.
async fn outlasted(broker: &Broker, hold: &Hold) -> &'static str {
    let begun = Instant::now();
    loop {
        sleep(limits::HOLD_LOOK).await;
        if begun.elapsed() > limits::HOLD_MAX {
            return "it takes longer than a day";
        }
        if hold.is_log_long() {
            return "the commit log grows faster than it is copied";
        }
        // A disk that can't be asked is the business of those who write to it.
        if is_too_full(broker).unwrap_or(false) {
            return "the disk of the data directory is nearly full, and what could be freed is held";
        }
    }
}

/// Takes the steps, each of which comes once, in order.
async fn steps(
    broker: &Broker,
    hold: &Arc<Hold>,
    mut messages: Streaming<HoldRequest>,
    replies: &Replies,
) -> Result<(), Status> {
    let shared = &broker.shared;
    next(&mut messages, HoldStep::HoldBegin).await?;
    answer(replies, of(HoldStep::HoldBegin)).await;
    next(&mut messages, HoldStep::HoldQuiet).await?;
    let quiet = async {
        let changing = shared.changing.lock().await;
        (changing, shared.storing.write().await)
    };
    let busy = |_elapsed| Error::HoldEnded("a store or a deletion keeps it waiting");
    let quiet = timeout(limits::QUIET_MAX, quiet).await.map_err(busy).map_err(call_error)?;
    answer(replies, of(HoldStep::HoldQuiet)).await;
    let slow = |_elapsed| Error::HoldEnded("what was stored meanwhile takes too long to copy");
    let asked = timeout(limits::QUIET_MAX, next(&mut messages, HoldStep::HoldMoment)).await;
    asked.map_err(slow).map_err(call_error)??;
    let (taken, image) = moment(broker, hold).await.map_err(call_error)?;
    drop(quiet);
    for response in parts(taken, image) {
        answer(replies, response).await;
    }
    next(&mut messages, HoldStep::HoldLogCopied).await?;
    hold.log_copied();
    answer(replies, of(HoldStep::HoldLogCopied)).await;
    next(&mut messages, HoldStep::HoldEnd).await?;
    answer(replies, of(HoldStep::HoldEnd)).await;
    Ok(())
}

/// Waits for a step. A copier that says no more ends the stream, and with it the wait.
async fn next(messages: &mut Streaming<HoldRequest>, expected: HoldStep) -> Result<(), Status> {
    match messages.message().await? {
        None => pending().await,
        Some(message) if message.step() == expected => Ok(()),
        Some(message) => {
            let found = message.step().as_str_name();
            let expected = expected.as_str_name();
            Err(Status::invalid_argument(format!("{found} where {expected} comes next")))
        }
    }
}

async fn answer(replies: &Replies, response: HoldResponse) {
    // One that went away ends all of it.
    let _ = replies.send(Ok(response)).await;
}

fn of(step: HoldStep) -> HoldResponse {
    HoldResponse { step: step.into(), ..HoldResponse::default() }
}

/// The state of this moment, of the log and of the key space. No journal begins or ends meanwhile.
async fn moment(broker: &Broker, hold: &Arc<Hold>) -> Result<(index::Moment, Bytes), Error> {
    let holding = hold.clone();
    let taken = off_thread(move || holding.moment()).await?;
    let image = broker.key_space().image().await?;
    Ok((taken, image.into()))
}

fn parts(taken: index::Moment, mut image: Bytes) -> Vec<HoldResponse> {
    let mut parts = Vec::new();
    loop {
        let key_space = image.split_to(image.len().min(limits::IMAGE_PART));
        parts.push(HoldResponse {
            step: HoldStep::HoldMoment.into(),
            log_start: taken.start.0,
            log_end: taken.end.0,
            checkpoint_crc: taken.checkpoint_crc,
            key_space,
            is_last: image.is_empty(),
        });
        if image.is_empty() {
            return parts;
        }
    }
}
