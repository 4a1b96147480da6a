//! Asking a broker whether it is there, when nothing comes from it.
//!
//! A request that may wait for long (an append, a long poll, a read at the head) can't tell a
//! broker that has nothing to say from one that is gone. So after [`PULSE_AFTER`] of silence on a
//! connection one is made that is answered at once, and where nothing at all comes for
//! [`PULSE_MAX`] after it the connection is cut. What waited on it waits for no longer than both
//! together, whichever way the broker went.

use super::door::Door;
use crate::limits::{PAUSE_MAX, PULSE_AFTER, PULSE_MAX};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The task that asks, which ends with the set. Needs a tokio runtime around it.
pub(crate) fn start(door: Arc<Door>) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move { feel(&door).await });
    task
}

async fn feel(door: &Door) {
    loop {
        door.line().connected().await;
        let silence = door.line().silence();
        if silence < PULSE_AFTER {
            sleep(PULSE_AFTER - silence).await;
            continue;
        }
        let number = door.line().number();
        let is_silent = timeout(PULSE_MAX, door.say_anything()).await.is_err();
        if is_silent && door.line().silence() >= PULSE_MAX && door.line().number() == number {
            tracing::debug!(url = door.url(), "a connection is cut: nothing comes over it");
            door.line().cut();
        }
        if door.line().silence() >= PULSE_AFTER {
            // It failed without a word, such as for a connection that is being made.
            sleep(PAUSE_MAX).await;
        }
    }
}
