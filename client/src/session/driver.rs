//! The task that sees a session's appends through: connects, takes answers, connects again.

use super::lanes::OVER_A_SESSION;
use super::outgoing::Outgoing;
use super::{Shared, plain};
use crate::limits::ANSWER_MAX;
use crate::remote::About;
use crate::retry::{Pauses, is_worth_a_retry};
use crate::{Appended, Error};
use protocol::wire::courant::{AppendsResponse, GroupResult};
use protocol::{Life, Offset, Span};
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};
use tonic::{Code, Status, Streaming};

/// How a connection ended.
enum End {
    /// The broker has no sessions.
    NoSessions,
    /// It may be made again.
    Broke(Error),
    /// Nothing can be sent.
    Refused(Error),
}

/// Runs for as long as appends are pushed.
pub(super) async fn run(shared: Arc<Shared>) {
    tokio::join!(serve(&shared), keep_time(&shared));
}

/// Goes on with lanes that have rested, and gives up what is overdue.
async fn keep_time(shared: &Shared) {
    loop {
        let next = shared.lanes().next_turn(shared.patience);
        let turn = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = shared.turned.notified() => {}
            () = turn => {
                let (freed, is_cut) = shared.lanes().turn(Instant::now(), shared.patience);
                shared.freed(freed);
                if is_cut {
                    shared.cut.notify_one();
                }
            }
        }
    }
}

async fn serve(shared: &Arc<Shared>) {
    let half = shared.id.first_chunk::<8>().expect("an id has 16 bytes");
    let mut pauses = Pauses::new(u64::from_le_bytes(*half));
    let mut has_sessions = true;
    loop {
        while shared.lanes().is_idle() {
            shared.begun.notified().await;
        }
        let end = match has_sessions {
            true => session(shared, &mut pauses).await,
            false => End::Broke(plain::serve(shared).await),
        };
        let error = match end {
            End::NoSessions => {
                has_sessions = false;
                // What an earlier session sent is known there by names that Append has not.
                let freed = shared.lanes().fail(&Error::Unknown, |lane| lane.may_be_made());
                shared.freed(freed);
                continue;
            }
            End::Broke(error) => error,
            End::Refused(error) => {
                let freed = shared.lanes().fail(&error, |_| true);
                shared.freed(freed);
                error
            }
        };
        tracing::debug!(%error, "a session of appends has ended");
        shared.lanes().disconnect(&error);
        pauses.pause().await;
    }
}

/// One session, to its end.
async fn session(shared: &Arc<Shared>, pauses: &mut Pauses) -> End {
    let mut answers = match open(shared).await {
        Ok(answers) => answers,
        Err(end) => return end,
    };
    loop {
        let message = tokio::select! {
            biased;
            message = answers.message() => message,
            () = shared.cut.notified() => return End::Broke(Error::Unknown),
        };
        let taken = match message {
            Ok(Some(message)) => take(shared, message),
            Ok(None) => return End::Broke(shared.remote.door().ended()),
            // A token that has expired is told so when the next session begins.
            Err(status) if status.code() == Code::Unauthenticated => {
                return End::Broke(Error::Later(status.message().to_owned()));
            }
            Err(status) => return ended(shared, status),
        };
        if let Err(error) = taken {
            return End::Refused(error);
        }
        pauses.reset();
    }
}

async fn open(shared: &Arc<Shared>) -> Result<Streaming<AppendsResponse>, End> {
    let door = shared.remote.door();
    match door.is_courant().await {
        Ok(true) => {}
        Ok(false) => return Err(End::NoSessions),
        Err(error) if is_worth_a_retry(&error) => return Err(End::Broke(error)),
        Err(error) => return Err(End::Refused(error)),
    }
    let connection = shared.lanes().connect(OVER_A_SESSION);
    let outgoing = Outgoing::new(shared.clone(), connection);
    let mut client = door.courant();
    let opened = tokio::select! {
        biased;
        opened = timeout(ANSWER_MAX, client.appends(outgoing)) => opened,
        () = shared.cut.notified() => return Err(End::Broke(Error::Unknown)),
    };
    match opened {
        Ok(Ok(answers)) => Ok(answers.into_inner()),
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            // Unless an earlier broker had them, nothing was taken.
            let mut lanes = shared.lanes();
            if lanes.is_first() {
                lanes.unsent();
            }
            lanes.disconnect(&door.fault(status));
            Err(End::NoSessions)
        }
        Ok(Err(status)) => Err(ended(shared, status)),
        Err(_elapsed) => Err(End::Broke(door.silent())),
    }
}

fn ended(shared: &Shared, status: Status) -> End {
    let error = shared.remote.door().fault(status);
    match is_worth_a_retry(&error) {
        true => End::Broke(error),
        false => End::Refused(error),
    }
}

/// Takes the answers of a message.
fn take(shared: &Shared, message: AppendsResponse) -> Result<(), Error> {
    let now = Instant::now();
    let mut lanes = shared.lanes();
    let (mut freed, mut is_rest) = (0, false);
    for result in message.results {
        let (handle, sequence) = (result.handle, result.sequence);
        let lane = lanes.lane(handle);
        let lane = lane.ok_or_else(|| Error::Protocol(format!("there is no handle {handle}")))?;
        let answer = answer(&lane.journal, lane.terms.life, lane.len_of(sequence), result);
        is_rest |= answer.is_err();
        freed += lanes.answered(handle, sequence, answer, now)?;
    }
    drop(lanes);
    shared.freed(freed);
    if is_rest {
        shared.turned.notify_one();
    }
    Ok(())
}

fn answer(
    journal: &protocol::Journal,
    meant: Option<Life>,
    len: u64,
    result: GroupResult,
) -> Result<Appended, Error> {
    let GroupResult { sequence, limit, fault, detail, head, begin, end, repeated, .. } = result;
    About { len, sequence, limit, ..About::journal(journal) }.check(fault, detail, head)?;
    let broken = crate::remote::broken;
    let (begin, end) = (Offset::new(begin).map_err(broken)?, Offset::new(end).map_err(broken)?);
    let (span, life) = (Span::new(begin, end).map_err(broken)?, Life::new(result.life));
    if meant.is_some_and(|meant| meant != life) {
        return Err(Error::Deleted(journal.clone()));
    }
    Ok(Appended { span, life, repeated })
}
