//! What waits, open, for the read that goes on where it stopped.

use crate::limits::STREAM_IDLE;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::time::Instant;

/// Bounded by number and by time: the one that waits longest goes first.
pub(crate) struct Shelf<T> {
    places: usize,
    rows: Arc<Mutex<Rows<T>>>,
}

struct Rows<T> {
    /// The longest waiting first.
    waiting: Vec<(Instant, T)>,
    /// A task takes out those that waited too long.
    is_swept: bool,
}

impl<T: Send + 'static> Shelf<T> {
    pub fn new(places: usize) -> Self {
        let rows = Rows { waiting: Vec::new(), is_swept: false };
        Shelf { places, rows: Arc::new(Mutex::new(rows)) }
    }

    /// Takes out the last one kept that fits.
    pub fn take(&self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut rows = locked(&self.rows);
        let at = rows.waiting.iter().rposition(|(_, open)| fits(open))?;
        Some(rows.waiting.remove(at).1)
    }

    /// Needs a tokio runtime around it.
    pub fn keep(&self, open: T) {
        let mut rows = locked(&self.rows);
        if rows.waiting.len() >= self.places {
            rows.waiting.remove(0);
        }
        rows.waiting.push((Instant::now(), open));
        if !std::mem::replace(&mut rows.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.rows)));
        }
    }
}

fn locked<T>(rows: &Mutex<Rows<T>>) -> MutexGuard<'_, Rows<T>> {
    rows.lock().expect("no holder panics")
}

/// Takes out what nobody came back for, until there is nothing.
async fn sweep<T>(rows: Weak<Mutex<Rows<T>>>) {
    loop {
        tokio::time::sleep(STREAM_IDLE).await;
        let Some(rows) = rows.upgrade() else { return };
        let mut rows = locked(&rows);
        rows.waiting.retain(|(since, _)| since.elapsed() < STREAM_IDLE);
        if rows.waiting.is_empty() {
            rows.is_swept = false;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_bounded_by_number_and_time() {
        let shelf = Shelf::new(2);
        for number in 1..=3 {
            shelf.keep(number);
        }
        assert_eq!(shelf.take(|open| *open == 1), None, "the first had to go");
        assert_eq!(shelf.take(|_| true), Some(3), "the last one kept comes first");
        tokio::time::sleep(STREAM_IDLE * 3).await;
        assert_eq!(shelf.take(|_| true), None, "nobody came back for it");
    }
}
