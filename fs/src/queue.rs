//! `--async`: writes that are answered when they are queued, and ride together to the broker.

use crate::limits::{QUEUED_MAX, QUEUED_MIN, RIDE_MAX};
use crate::patience::in_time;
use crate::pending::Going;
use crate::shown::Shown;
use crate::{Error, Filesystem};
use bytes::{Bytes, BytesMut};
use protocol::Offset;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Why the writes of a handle fail, once one has.
pub(crate) type Failed = Arc<OnceLock<Error>>;

/// The queued writes of one journal, in the order in which they are appended.
#[derive(Debug)]
pub(crate) struct Queue {
    line: Mutex<Line>,
    /// How many writes were appended or given up.
    over: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Line {
    writes: VecDeque<Queued>,
    queued: u64,
    /// Whether a task takes from it.
    is_served: bool,
}

/// A write that was answered.
#[derive(Debug)]
struct Queued {
    content: Bytes,
    offset: Option<Offset>,
    failed: Failed,
    _room: OwnedSemaphorePermit,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { line: Mutex::default(), over: watch::Sender::new(0) }
    }
}

/// The room of all queues of a mount, in bytes.
pub(crate) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(QUEUED_MAX))
}

impl Queue {
    /// Whether somebody has to be told to serve it.
    fn push(&self, write: Queued) -> bool {
        let mut line = self.line.lock().expect("no holder panics");
        line.writes.push_back(write);
        line.queued += 1;
        !std::mem::replace(&mut line.is_served, true)
    }

    /// Waits until all that is queued at this moment is appended or given up.
    async fn drained(&self) {
        let queued = self.line.lock().expect("no holder panics").queued;
        let mut over = self.over.subscribe();
        // The sender is ours.
        let _there = over.wait_for(|over| *over >= queued).await;
    }

    /// The writes that become the next append; `None` ends the service.
    fn next(&self) -> Option<Vec<Queued>> {
        let mut line = self.line.lock().expect("no holder panics");
        let mut riders = vec![line.next_alive(&self.over)?];
        let mut len = riders[0].content.len();
        while let Some(next) = line.writes.front()
            && next.rides_behind(&riders, len)
        {
            len += next.content.len();
            riders.extend(line.writes.pop_front());
        }
        Some(riders)
    }

    fn over(&self, writes: usize) {
        self.over.send_modify(|over| *over += writes as u64);
    }
}

impl Line {
    /// The next write whose handle did not fail: what comes after a failure is not written, since
    /// it would leave a gap.
    fn next_alive(&mut self, over: &watch::Sender<u64>) -> Option<Queued> {
        loop {
            let Some(next) = self.writes.pop_front() else {
                self.is_served = false;
                return None;
            };
            if next.failed.get().is_none() {
                return Some(next);
            }
            over.send_modify(|over| *over += 1);
        }
    }
}

impl Queued {
    /// Whether it can be of the same append, which has `len` bytes so far.
    fn rides_behind(&self, riders: &[Queued], len: usize) -> bool {
        let continues = match (riders[0].offset, self.offset) {
            (None, None) => true,
            (Some(begin), Some(offset)) => offset == begin.plus(len as u64),
            _ => false,
        };
        continues && len + self.content.len() <= RIDE_MAX && self.failed.get().is_none()
    }
}

impl Filesystem {
    /// Queues a write. It waits for room, as long as any write does.
    pub(crate) async fn enqueue(
        self: &Arc<Self>,
        shown: Arc<Shown>,
        content: Bytes,
        offset: Option<Offset>,
        failed: Failed,
    ) -> Result<usize, Error> {
        told(&failed)?;
        let len = content.len();
        let cost = u32::try_from(len.max(QUEUED_MIN)).expect("a write has some pages");
        let room = self.room.clone().acquire_many_owned(cost);
        let room = in_time(self.options.write_timeout, room).await;
        let room = room
            .ok_or_else(|| client::Error::Later("the queue of writes is full".to_owned()))?
            .expect("the semaphore is never closed");
        told(&failed)?;
        let write = Queued { content, offset, failed, _room: room };
        if shown.queue.push(write) {
            let (fs, going) = (self.clone(), self.pending.begin());
            tokio::spawn(async move { fs.serve(&shown, going).await });
        }
        Ok(len)
    }

    /// Waits for what is queued, and tells the first failure of the handle. Past the time that
    /// anything is waited for that is one: what of the handle is still queued is not written then.
    pub(crate) async fn drain(&self, shown: &Shown, failed: &Failed) -> Result<(), Error> {
        if in_time(self.options.write_timeout, shown.queue.drained()).await.is_none() {
            let away = "the broker has not taken what is queued, and the rest of it is dropped";
            let _first_stays = failed.set(client::Error::Later(away.to_owned()).into());
        }
        told(failed)
    }

    /// Appends what is queued for a journal until nothing is.
    async fn serve(&self, shown: &Shown, _going: Going) {
        while let Some(riders) = shown.queue.next() {
            let mut content = BytesMut::new();
            riders.iter().for_each(|rider| content.extend_from_slice(&rider.content));
            let durability = self.options.durability;
            let appended = self.append(shown, content.freeze(), riders[0].offset, durability).await;
            if let Err(error) = appended {
                tracing::warn!(%error, journal = %shown.journal(), "queued writes failed");
                for rider in &riders {
                    let _first_stays = rider.failed.set(error.clone());
                }
            }
            shown.queue.over(riders.len());
        }
    }
}

/// The failure that sticks to a handle.
pub(crate) fn told(failed: &Failed) -> Result<(), Error> {
    failed.get().cloned().map_or(Ok(()), Err)
}
