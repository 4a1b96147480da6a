//! Where work that waits for a disk or computes for long runs.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` on a thread that may block, where the runtime has many threads. On a runtime of one
/// thread it runs inline: there it is a test or a simulation, whose order of events has to be that
/// of its seed, and other threads would spoil it.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let runtime = match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() == RuntimeFlavor::MultiThread => runtime,
        _ => return work(),
    };
    match runtime.spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops the task that waits here.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}
