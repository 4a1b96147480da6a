//! Callers of poll(2) and epoll that wait for a journal of the follow view to grow.

use fs::{HandleId, Wait};
use fuser::PollNotifier;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// One task for each handle that was polled since it was last told to have grown. The kernel has
/// one poll handle for each open file, so one notification serves all who poll it.
#[derive(Debug, Default)]
pub struct Polls(Mutex<BTreeMap<HandleId, AbortHandle>>);

impl Polls {
    /// Tells the kernel once the handle has `grown`, or never will: the read then says why. One for
    /// which something waits already is told by that, which began no later.
    pub fn wait(
        self: &Arc<Self>,
        handle: HandleId,
        runtime: &Handle,
        grown: Wait<()>,
        notifier: PollNotifier,
    ) {
        let mut waits = self.0.lock().expect("no holder panics");
        waits.entry(handle).or_insert_with(|| {
            let polls = self.clone();
            let told = async move {
                let _grown_or_failed = grown.await;
                // Before it is told: whoever polls after that waits anew.
                polls.0.lock().expect("no holder panics").remove(&handle);
                if let Err(error) = notifier.notify() {
                    tracing::debug!(%error, "nobody polls any more");
                }
            };
            runtime.spawn(told).abort_handle()
        });
    }

    /// The handle is released: nobody polls it any more.
    pub fn release(&self, handle: HandleId) {
        if let Some(wait) = self.0.lock().expect("no holder panics").remove(&handle) {
            wait.abort();
        }
    }
}
