//! Where work that waits for a disk, or computes for long, runs.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinError, JoinHandle};

/// Work that was begun, and ends whether or not anybody waits for it.
pub enum Work<T> {
    Done(T),
    Running(JoinHandle<T>),
}

/// Begins `work` on a thread that may block. On a runtime of one thread it runs at once and inline:
/// there it is a test or a simulation, whose order of events has to be that of its seed.
pub fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
    match with_threads() {
        Some(runtime) => Work::Running(runtime.spawn_blocking(work)),
        None => Work::Done(work()),
    }
}

/// Whether threads of one's own may be started: not on a runtime of one thread, where what would
/// run on them is to be a task, for the same reason.
pub fn may_start_threads() -> bool {
    with_threads().is_some()
}

/// The runtime around, if it is one of several threads.
fn with_threads() -> Option<Handle> {
    let runtime = Handle::try_current().ok()?;
    (runtime.runtime_flavor() == RuntimeFlavor::MultiThread).then_some(runtime)
}

impl<T> Work<T> {
    pub async fn done(self) -> T {
        match self {
            Work::Done(done) => done,
            Work::Running(running) => joined(running.await).await,
        }
    }
}

/// What a task that nobody aborts came to. Its panic goes on here.
pub(crate) async fn joined<T>(ended: Result<T, JoinError>) -> T {
    match ended {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops the task that waits here.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

/// Runs `work` where it may block, and waits for it.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    begin(work).done().await
}
