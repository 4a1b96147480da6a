//! Callers of poll(2) and epoll that wait for a journal of the follow view to grow.

use fs::{HandleId, Wait};
use fuser::PollNotifier;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tokio::task::{AbortHandle, JoinHandle};

/// One task for each handle that is polled and not readable. The kernel has one poll handle for
/// each open file, so one notification serves all who poll it.
#[derive(Debug, Default)]
pub struct Polls(Mutex<BTreeMap<HandleId, AbortHandle>>);

impl Polls {
    /// Starts waiting for a handle, unless something waits for it already.
    pub fn wait(&self, handle: HandleId, start: impl FnOnce() -> JoinHandle<()>) {
        let mut waits = self.0.lock().expect("no holder panics");
        if waits.get(&handle).is_none_or(AbortHandle::is_finished) {
            waits.insert(handle, start().abort_handle());
        }
    }

    /// The handle is released: nobody polls it any more.
    pub fn release(&self, handle: HandleId) {
        if let Some(wait) = self.0.lock().expect("no holder panics").remove(&handle) {
            wait.abort();
        }
    }
}

/// Tells the kernel once the handle is readable, or never will be: the read then says why.
pub async fn notify(growing: Wait<()>, notifier: PollNotifier) {
    let _readable_or_failed = growing.await;
    if let Err(error) = notifier.notify() {
        tracing::debug!(%error, "nobody polls any more");
    }
}
