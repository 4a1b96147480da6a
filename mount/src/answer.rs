//! Answering at once where nothing has to be waited for, and later from a task where it has.

use crate::calls::{Calls, End, Part};
use crate::hold::Holds;
use crate::watch::{Until, Watches};
use fs::{Error, Filesystem, Wait};
use fuser::Request;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// How long an operation waits before its caller is watched. Most are over by then.
const WATCHED_AFTER: Duration = Duration::from_millis(100);

/// Where the operations of a mount run when they wait.
pub struct Answers {
    runtime: Handle,
    watches: Arc<Watches>,
    fs: Arc<Filesystem>,
    holds: Arc<Holds>,
    calls: Arc<Calls>,
}

impl Answers {
    pub fn new(
        runtime: Handle,
        watches: Arc<Watches>,
        fs: Arc<Filesystem>,
        holds: Arc<Holds>,
    ) -> Self {
        Answers { runtime, watches, fs, holds, calls: Arc::default() }
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Answers a request that is a part of a system call, which waits no longer in all than one
    /// may.
    pub fn answer<T: Send + 'static>(
        &self,
        request: &Request,
        part: Part,
        wait: Wait<T>,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        self.answer_waiting(request, self.timed(request, part, wait), reply);
    }

    /// The same for what a follower may ask for: it waits for a broker that is away.
    pub fn answer_outlasting<T: Send + 'static>(
        &self,
        request: &Request,
        part: Part,
        ask: impl Fn() -> Wait<T> + Send + Sync + 'static,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        self.answer_waiting(request, self.outlasting(request, part, ask), reply);
    }

    /// As the operation of [`answer`](Self::answer).
    fn timed<T: Send + 'static>(&self, request: &Request, part: Part, wait: Wait<T>) -> Wait<T> {
        let (thread, calls) = (request.pid(), self.calls.clone());
        let began = Instant::now();
        let before = calls.spent(thread, part, began);
        let wait = self.fs.within(before, wait);
        Box::pin(async move {
            let answer = wait.await;
            let now = Instant::now();
            let spent = now - began;
            // One that goes on is noted though it was answered at once.
            let goes_on = !before.is_zero() && matches!(part, Part::Lookup(_));
            if spent >= WATCHED_AFTER || goes_on {
                let end = match &answer {
                    Ok(_) => End::Done,
                    Err(_) => End::Failed { is_again: !before.is_zero() },
                };
                calls.answered(thread, part, now, before + spent, end);
            }
            answer
        })
    }

    /// As the operation of [`answer_outlasting`](Self::answer_outlasting).
    pub fn outlasting<T: Send + 'static>(
        &self,
        request: &Request,
        part: Part,
        ask: impl Fn() -> Wait<T> + Send + Sync + 'static,
    ) -> Wait<T> {
        let (thread, holds) = (request.pid(), self.holds.clone());
        let first = self.timed(request, part, ask());
        Box::pin(async move { holds.outlast(thread, first, ask).await })
    }

    /// Polls the operation once on this thread; only one that waits becomes a task, which ends with
    /// its caller. A reply that is dropped unsent, as by a panic, answers `EIO` by itself.
    pub fn answer_waiting<T: Send + 'static>(
        &self,
        request: &Request,
        wait: Wait<T>,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        let (thread, watches) = (request.pid(), self.watches.clone());
        self.begin(wait, reply, move |wait| outwait(thread, wait, watches));
    }

    /// The same for an operation that watches its caller itself.
    pub fn answer_held<T: Send + 'static>(
        &self,
        wait: Wait<T>,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        self.begin(wait, reply, |wait| wait);
    }

    fn begin<T: Send + 'static, W>(
        &self,
        mut wait: Wait<T>,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
        later: impl FnOnce(Wait<T>) -> W,
    ) where
        W: Future<Output = Result<T, Error>> + Send + 'static,
    {
        match self.first_poll(&mut wait) {
            Some(Poll::Ready(answer)) => reply(answer),
            Some(Poll::Pending) => {
                let answer = later(wait);
                self.runtime.spawn(async move { reply(answer.await) });
            }
            None => {}
        }
    }

    /// The answer if it is there already. `None` after a panic, which must not end a FUSE thread:
    /// the others would go on while fuser has given the session up.
    fn first_poll<T>(&self, wait: &mut Wait<T>) -> Option<Poll<Result<T, Error>>> {
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        catch_unwind(AssertUnwindSafe(|| wait.as_mut().poll(&mut context)))
            .inspect_err(|_| tracing::error!("an operation panicked; its caller is told EIO"))
            .ok()
    }
}

/// Waits for the answer, or for the death of its caller: one that is killed stays until it is
/// answered.
async fn outwait<T>(thread: u32, mut wait: Wait<T>, watches: Arc<Watches>) -> Result<T, Error> {
    let early = tokio::time::timeout(WATCHED_AFTER, &mut wait).await;
    match early {
        Ok(answer) => return answer,
        // A caller without a thread id can't be watched.
        Err(_elapsed) if thread == 0 => return wait.await,
        Err(_elapsed) => {}
    }
    let mut watched = watches.watch(thread, Until::Dying);
    tokio::select! {
        biased;
        answer = wait => answer,
        () = watched.signalled() => Err(Error::Interrupted),
    }
}
