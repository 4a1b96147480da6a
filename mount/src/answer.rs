//! Answering at once where nothing has to be waited for, and later from a task where it has.

use fs::{Error, Wait};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// Where the operations of a mount run when they wait.
#[derive(Debug, Clone)]
pub struct Answers {
    runtime: Handle,
}

impl Answers {
    pub fn new(runtime: Handle) -> Self {
        Answers { runtime }
    }

    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Polls the operation once on this thread; only one that waits becomes a task. A reply that is
    /// dropped unsent, as by a panic, answers `EIO` by itself.
    pub fn answer<T: Send + 'static>(
        &self,
        mut wait: Wait<T>,
        reply: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) {
        match self.first_poll(&mut wait) {
            Some(Poll::Ready(answer)) => reply(answer),
            Some(Poll::Pending) => {
                self.runtime.spawn(async move { reply(wait.await) });
            }
            None => {}
        }
    }

    /// The answer if it is there already. `None` after a panic, which must not end a FUSE thread:
    /// the others would go on while fuser has given the session up.
    pub fn first_poll<T>(&self, wait: &mut Wait<T>) -> Option<Poll<Result<T, Error>>> {
        let _entered = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        catch_unwind(AssertUnwindSafe(|| wait.as_mut().poll(&mut context)))
            .inspect_err(|_| tracing::error!("an operation panicked; its caller is told EIO"))
            .ok()
    }
}
