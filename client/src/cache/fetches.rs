//! Fetching ahead of readers: a task reads on from where a reader is, and readers take what came.
//!
//! Each task reads one span in order, so that the stream below it goes on from request to request;
//! a large object is fetched in parts below that. Readers at different places have tasks of their
//! own.

use super::kept::Kept;
use super::limits::{AHEAD, CHUNK_LEN, FETCHES_MAX, PIECE_MAX};
use super::shared::Shared;
use protocol::{Offset, Span};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// The tasks of a cache. They end when it goes.
pub(super) struct Fetches {
    places: Arc<Semaphore>,
    runtime: Handle,
    tasks: Mutex<JoinSet<()>>,
}

impl Fetches {
    /// Needs a tokio runtime around it.
    pub fn new() -> Self {
        Fetches {
            places: Arc::new(Semaphore::new(FETCHES_MAX)),
            runtime: Handle::current(),
            tasks: Mutex::default(),
        }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().expect("no holder panics");
        // Those that ended are let go, so that the set does not grow.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Ends all tasks.
    pub async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().expect("no holder panics"));
        tasks.shutdown().await;
    }

    /// Waits until bytes at `offset`, which lies below the head, are local or are not fetched.
    pub async fn want(&self, shared: &Arc<Shared>, kept: &Arc<Kept>, offset: Offset, max: usize) {
        let mut changes = kept.changes.subscribe();
        if !kept.is_fetched(offset) {
            let end = offset.as_u64().saturating_add(max as u64).next_multiple_of(CHUNK_LEN);
            self.begin(shared, kept, offset, end);
        }
        while kept.local_len(offset, 1) == 0 && kept.is_fetched(offset) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Notes a read that was answered, and reads ahead of it where it is one of a sequence.
    pub fn go_on(&self, shared: &Arc<Shared>, kept: &Arc<Kept>, read: Span) {
        if let Some(from) = kept.follows(read) {
            self.begin(shared, kept, from, read.end().as_u64().saturating_add(AHEAD));
        }
    }

    /// Begins to fetch from `begin`, up to `end` or the head, if there is a place for it.
    fn begin(&self, shared: &Arc<Shared>, kept: &Arc<Kept>, begin: Offset, end: u64) {
        let Ok(place) = self.places.clone().try_acquire_owned() else { return };
        let end = Offset::try_from(end).unwrap_or(Offset::MAX);
        let number = shared.mirrors.tick();
        let Some(fetch) = Fetch::begin(kept, number, Span::between(begin, end), place) else {
            return;
        };
        let shared = shared.clone();
        self.spawn(async move { fetch.run(&shared).await });
    }
}

/// A fetch under way. Readers wait for it for as long as it lives.
struct Fetch {
    kept: Arc<Kept>,
    number: u64,
    end: Offset,
    _place: OwnedSemaphorePermit,
}

impl Fetch {
    fn begin(
        kept: &Arc<Kept>,
        number: u64,
        span: Span,
        place: OwnedSemaphorePermit,
    ) -> Option<Fetch> {
        let mut state = kept.state();
        let span = Span::between(span.begin(), span.end().min(state.head));
        if span.is_empty() || state.is_gone {
            return None;
        }
        state.fetches.insert(number, span);
        drop(state);
        Some(Fetch { kept: kept.clone(), number, end: span.end(), _place: place })
    }

    /// Where the fetch is to go on; `None` at its end.
    fn next(&self) -> Option<Span> {
        let mut state = self.kept.state();
        let left = *state.fetches.get(&self.number)?;
        // What others brought meanwhile is not asked for.
        let begin = state.local.covering(left.begin()).map_or(left.begin(), Span::end);
        let left = Span::between(begin, self.end);
        state.fetches.insert(self.number, left);
        (!left.is_empty()).then_some(left)
    }

    async fn run(self, shared: &Arc<Shared>) {
        while let Some(left) = self.next() {
            let max = usize::try_from(left.len()).unwrap_or(usize::MAX).min(PIECE_MAX);
            match shared.fetch(&self.kept, left.begin(), max).await {
                Ok((_, true)) => {}
                Ok((_, false)) => return,
                // The reader asks by itself, and is told.
                Err(error) => {
                    tracing::debug!(%error, journal = %self.kept.journal, "a fetch ends");
                    return;
                }
            }
        }
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.kept.state().fetches.remove(&self.number);
        self.kept.tell();
    }
}

impl Kept {
    /// Whether a fetch is on its way to bytes at an offset.
    fn is_fetched(&self, offset: Offset) -> bool {
        self.state().fetches.values().any(|span| span.contains(offset))
    }

    /// Notes where a read ended. Where it is one of a sequence, and little of what comes next is
    /// here or on its way: where to fetch from.
    fn follows(&self, read: Span) -> Option<Offset> {
        let mut state = self.state();
        let goes_on = state.goes_on(read);
        state.read_to = read.end();
        if !goes_on {
            return None;
        }
        let from = state.local.covering(read.begin()).map_or(read.end(), Span::end);
        let is_near = from.since(read.end()) < AHEAD / 2;
        let is_fetched = state.fetches.values().any(|span| span.contains(from));
        (is_near && from < state.head && !is_fetched).then_some(from)
    }
}
