//! Work that goes on after its program was answered, and that a mount waits for before it ends.

use std::sync::Arc;
use tokio::sync::watch;

/// How much of it there is.
#[derive(Debug, Clone)]
pub(crate) struct Pending(Arc<watch::Sender<usize>>);

/// One piece of work, until this is dropped.
pub(crate) struct Going(Pending);

impl Pending {
    pub fn none() -> Pending {
        Pending(Arc::new(watch::Sender::new(0)))
    }

    pub fn begin(&self) -> Going {
        self.0.send_modify(|count| *count += 1);
        Going(self.clone())
    }

    /// Changes whenever work begins or ends, to how much of it there is.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }

    /// Waits for a moment without any.
    pub async fn over(&self) {
        let mut count = self.0.subscribe();
        // The sender is ours.
        let _there = count.wait_for(|count| *count == 0).await;
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
