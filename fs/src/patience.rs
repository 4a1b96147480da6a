//! How long an operation waits for what passes by itself: one limit for all that it asks for on its
//! way, and asking again until then.

use client::{Appended, Error};
use protocol::Remedy;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The first pause before something is asked again, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

tokio::task_local! {
    /// When the operation that asks here gives up. It is of the task and not an argument, since an
    /// operation asks from as deep as the role of its node.
    static UNTIL: Instant;
}

/// Has the whole of `work` give up after `limit`, however many waits it is made of. The limit of
/// work around it comes first.
pub(crate) async fn within<W: Future>(limit: Duration, work: W) -> W::Output {
    UNTIL.scope(until(limit), work).await
}

/// When who asks here gives up: with the operation that it is part of, else after `limit`.
fn until(limit: Duration) -> Instant {
    let own = Instant::now() + limit;
    UNTIL.try_with(|until| own.min(*until)).unwrap_or(own)
}

/// What is left of `limit`.
pub(crate) fn left(limit: Duration) -> Duration {
    until(limit).saturating_duration_since(Instant::now())
}

/// Asks until the answer is not `Later`, or the time is over (`limit`, or that of the operation);
/// then the last such answer stands, or `Unknown` when there was none. What is asked must bear
/// being asked twice. It is asked once though no time is left: what needs no waiting is answered.
pub(crate) async fn patiently<T, W>(limit: Duration, ask: impl Fn() -> W) -> Result<T, Error>
where
    W: Future<Output = Result<T, Error>>,
{
    let mut last = Error::Unknown;
    let asking = outlast(ask, |error| last = error);
    match timeout_at(until(limit), asking).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(last),
    }
}

/// Asks for an append, which is applied once, as [`patiently`] does. Where a request before the
/// last one, or one before all of them (`is_doubtful`), had no answer, a refusal is `Unknown`: by
/// that request it may have been made all the same.
pub(crate) async fn appending<W>(
    limit: Duration,
    is_doubtful: bool,
    ask: impl Fn() -> W,
) -> Result<Appended, Error>
where
    W: Future<Output = Result<Appended, Error>>,
{
    let is_doubtful = AtomicBool::new(is_doubtful);
    let answer = patiently(limit, || async {
        let answer = ask().await;
        if answer.as_ref().is_err_and(may_have_happened) {
            is_doubtful.store(true, Ordering::Relaxed);
        }
        answer
    });
    match answer.await {
        Err(refusal) if is_doubtful.into_inner() && !settles(&refusal) => {
            tracing::warn!(%refusal, "an append was refused that may have been made before");
            Err(Error::Unknown)
        }
        answer => answer,
    }
}

/// Whether an append that ended so may have been made.
pub(crate) fn may_have_happened(error: &Error) -> bool {
    matches!(
        error,
        Error::Later(_)
            | Error::Unreachable(_)
            | Error::Unknown
            | Error::Io(_)
            | Error::Protocol(_)
    )
}

/// Whether a refusal says what became of every earlier request for the same append: it was not
/// made, and will not be; or nobody can see it; or it was made, and another one after it.
fn settles(refusal: &Error) -> bool {
    matches!(
        refusal,
        Error::WrongOffset { .. }
            | Error::Deleted(_)
            | Error::NotFound(_)
            | Error::StaleSequence(..)
    ) || may_have_happened(refusal)
}

/// Asks until the answer is not `Later`, however long that takes; `note` hears of each that is.
pub(crate) async fn outlast<T, W>(
    ask: impl Fn() -> W,
    mut note: impl FnMut(Error),
) -> Result<T, Error>
where
    W: Future<Output = Result<T, Error>>,
{
    let mut pause = PAUSE_FIRST;
    loop {
        match ask().await {
            Err(error) if error.remedy() == Remedy::Later => note(error),
            answer => return answer,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Waits for the turn that others on this mount have, as long as anything is waited for.
pub(crate) async fn in_turn<W: Future>(limit: Duration, turn: W) -> Result<W::Output, Error> {
    let waits = || Error::Later("an earlier write to the file still waits".to_owned());
    in_time(limit, turn).await.ok_or_else(waits)
}

/// What `work` comes to; `None` where that takes longer than anything is waited for.
pub(crate) async fn in_time<W: Future>(limit: Duration, work: W) -> Option<W::Output> {
    timeout_at(until(limit), work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    async fn ask_in_vain() -> Error {
        let later = || std::future::ready(Err::<(), _>(Error::Later("away".to_owned())));
        patiently(LIMIT, later).await.unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn all_waits_of_an_operation_share_its_limit() {
        // Case: the limit of the operation, how long three waits of 30 s take in it
        for (limit, expected) in [(30, 30), (2, 2), (0, 0), (100, 90)] {
            let began = Instant::now();
            let work = async {
                for _ in 0..3 {
                    assert!(matches!(ask_in_vain().await, Error::Later(_)));
                }
            };
            within(Duration::from_secs(limit), work).await;
            assert_eq!(began.elapsed().as_secs(), expected, "{limit} s");
        }
        // Case: by themselves, each has its own
        let began = Instant::now();
        ask_in_vain().await;
        ask_in_vain().await;
        assert_eq!(began.elapsed(), 2 * LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_inner_limit_never_adds_to_the_outer_one() {
        let began = Instant::now();
        let inner = within(Duration::from_secs(60), ask_in_vain());
        within(Duration::from_secs(5), inner).await;
        assert_eq!(began.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn what_needs_no_waiting_is_answered_when_no_time_is_left() {
        let asking = patiently(LIMIT, || std::future::ready(Ok(7)));
        assert_eq!(within(Duration::ZERO, asking).await.unwrap(), 7);
        let turn = within(Duration::ZERO, in_turn(LIMIT, std::future::ready(8)));
        assert_eq!(turn.await.unwrap(), 8);
        let error = in_turn(LIMIT, std::future::pending::<()>()).await.unwrap_err();
        assert!(error.to_string().contains("an earlier write"), "{error}");
    }
}
