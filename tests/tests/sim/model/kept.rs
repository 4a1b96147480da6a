//! Retention: what may be trimmed of a journal, and what was told to be.

use super::{Book, Found, Model};
use crate::plan::Retention;
use protocol::{Journal, Offset};
use std::time::Duration;
use tokio::time::Instant;

/// Stored fragments have times of whole seconds.
const SECOND: Duration = Duration::from_secs(1);

/// What a journal keeps, and how old its bytes are.
#[derive(Debug, Default)]
pub(super) struct Kept {
    retention: Option<Retention>,
    /// When appends were begun that were answered, and where they lie.
    answered: Vec<(Instant, Offset)>,
    /// Below, bytes were told as trimmed.
    first: Offset,
}

impl Kept {
    /// An append was answered to begin there.
    pub fn note(&mut self, begun: Instant, begin: Offset) {
        if self.retention.is_some() {
            self.answered.push((begun, begin));
        }
    }

    /// The offset below which a journal that ends at `head` may be trimmed.
    fn below(&self, head: Offset) -> Offset {
        let Some(Retention { bytes, age }) = self.retention else { return Offset::ZERO };
        let far = bytes.map(|bytes| Offset::ZERO.plus(head.as_u64().saturating_sub(bytes)));
        // What was stored is not older than the append that it is of.
        let old = age.map(|age| {
            let is_young = |(begun, _): &&(Instant, Offset)| begun.elapsed() + SECOND < age;
            let young = self.answered.iter().filter(is_young);
            young.map(|(_, begin)| *begin).min().unwrap_or(head)
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
