//! Retention: what may be trimmed of a journal, and what was told to be.

use super::{Book, Found, Model};
use crate::plan::Retention;
use protocol::{Journal, Offset};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Stored fragments have times of whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// What a journal keeps, and since when its bytes are there.
#[derive(Debug, Default)]
pub(super) struct Kept {
    retention: Option<Retention>,
    /// When appends were answered, and their ends.
    answered: VecDeque<(Instant, Offset)>,
    /// Below, bytes were told as trimmed.
    first: Offset,
}

impl Kept {
    /// An append that ends there was answered.
    pub fn note(&mut self, end: Offset) {
        if self.retention.is_some() {
            self.answered.push_back((Instant::now(), end));
        }
    }

    /// The offset below which a journal that ends at `head` may be trimmed.
    fn below(&self, head: Offset) -> Offset {
        let Some(Retention { bytes, age }) = self.retention else { return Offset::ZERO };
        let far = bytes.map(|bytes| Offset::ZERO.plus(head.as_u64().saturating_sub(bytes)));
        let old = age.and_then(|age| {
            let is_old = |(at, _): &&(Instant, Offset)| at.elapsed() + SECOND > age;
            self.answered.iter().filter(is_old).map(|(_, end)| *end).max()
        });
        far.max(old).unwrap_or_default()
    }
}

impl Model {
    /// The journal does not keep everything.
    pub fn retain(&self, name: &Journal, retention: Retention) {
        self.with(name, |book| {
            book.kept.retention = Some(retention);
            Ok(())
        });
    }

    /// A read was told that everything below is trimmed. Whether it may be is asked when it is
    /// known where the journal ends.
    pub fn saw_trimmed(&self, name: &Journal, below: Offset) {
        self.with(name, |book| {
            book.kept.first = book.kept.first.max(below);
            Ok(())
        });
    }
}

impl Book {
    /// What is trimmed is old enough or far enough below the head, and does not come back.
    pub(super) fn keep(&mut self, found: &Found) -> Result<(), String> {
        let Found { first, head, .. } = *found;
        if first < self.kept.first {
            return Err(format!("it begins at {first}, and was trimmed to {}", self.kept.first));
        }
        let below = self.kept.below(head);
        if first > below {
            return Err(format!("it is trimmed to {first}, and may be to {below}"));
        }
        self.kept.first = first;
        Ok(())
    }
}
