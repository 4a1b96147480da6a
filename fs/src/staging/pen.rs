//! What an open file has waiting: its draft, and where its next write comes.

use super::{Draft, Manner, Staging};
use crate::Error;
use crate::limits::STAGED_PER_HANDLE_MAX;
use crate::write::must_be_at;
use bytes::Bytes;
use client::blocking::off_thread;
use protocol::Journal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

/// Content up to here is written by the thread that asks: it goes into the page cache, in some ten
/// microseconds.
const INLINE_MAX: usize = 64 << 10;

/// The writing side of a handle in line mode or of the whole view. Its lock is the order of what is
/// written through the handle, and is held until each write is answered.
#[derive(Debug)]
pub(crate) struct Pen {
    pub manner: Manner,
    staging: Arc<Staging>,
    mount: [u8; 16],
    draft: Option<Draft>,
    /// Why a write of a whole file failed: what there is of it is not all.
    pub spoiled: Option<Error>,
    /// Where the last write ended, as the kernel counts.
    pub position: Option<u64>,
}

/// A pen whose turn it is.
pub(crate) type Held = OwnedMutexGuard<Pen>;

impl Pen {
    /// `mount` is the writer id of the mount.
    pub fn new(staging: &Arc<Staging>, manner: Manner, mount: [u8; 16]) -> Pen {
        Pen { manner, staging: staging.clone(), mount, draft: None, spoiled: None, position: None }
    }

    /// What waits, if anything does.
    pub fn waiting(&mut self) -> Option<&mut Draft> {
        self.draft.as_mut().filter(|draft| !draft.is_empty())
    }

    pub fn take(&mut self) -> Option<Draft> {
        self.draft.take().filter(|draft| !draft.is_empty())
    }

    /// Whether a write that the kernel believes at `offset` goes on where the last one ended.
    pub fn goes_on_at(&self, offset: u64) -> Result<(), Error> {
        self.position.map_or(Ok(()), |position| must_be_at(offset, position))
    }

    /// Keeps room for content, for a journal that may not be there yet: for all of it, or none.
    /// While there is none it waits for what is on its way out, `patience` at most.
    async fn reserve(
        &mut self,
        journal: &Journal,
        more: u64,
        patience: Duration,
    ) -> Result<(), Error> {
        let len = self.draft.as_ref().map_or(0, Draft::len);
        if len.saturating_add(more) > STAGED_PER_HANDLE_MAX {
            let max = STAGED_PER_HANDLE_MAX;
            return Err(Error::StagingFull { what: "bytes of one open file", max });
        }
        let staging = self.staging.clone();
        let mut closing = staging.closing.changes();
        let until = Instant::now() + patience;
        loop {
            let is_last = *closing.borrow_and_update() == 0;
            match self.try_reserve(journal, more) {
                Err(Error::StagingFull { .. }) if !is_last => {}
                reserved => return reserved,
            }
            if timeout_at(until, closing.changed()).await.is_err() {
                return self.try_reserve(journal, more);
            }
        }
    }

    fn try_reserve(&mut self, journal: &Journal, more: u64) -> Result<(), Error> {
        let begin = || Draft::begin(&self.staging, self.manner, journal.clone(), self.mount);
        let draft = match &mut self.draft {
            Some(draft) => draft,
            none => none.insert(begin()?),
        };
        draft.reserve(more)
    }

    /// Has content wait that room is reserved for.
    fn push(&mut self, content: &[u8], is_disk: bool) -> Result<(), Error> {
        self.draft.as_mut().expect("room was reserved in it").push(content, is_disk)
    }

    /// What failed spoils a whole file.
    fn note<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        if let (Manner::Whole, Err(error)) = (self.manner, &done) {
            self.spoiled = Some(error.clone());
        }
        done
    }
}

/// Has content wait: all of it, or none. Where there is no room for it, it waits for what is on its
/// way out, `patience` at most. What takes long is done where it may block; it is finished, and the
/// pen held until then, though nobody waits for it.
pub(crate) async fn push(
    mut pen: Held,
    journal: Journal,
    content: Bytes,
    is_disk: bool,
    patience: Duration,
) -> Result<Held, Error> {
    let reserved = pen.reserve(&journal, content.len() as u64, patience).await;
    pen.note(reserved)?;
    let is_short = content.len() <= INLINE_MAX && !is_disk;
    let work = move || {
        let pushed = pen.push(&content, is_disk);
        pen.note(pushed).map(|()| pen)
    };
    if is_short {
        return work();
    }
    off_thread(work).await
}
