//! The last things that were told, one line each.

use crate::limits::OUTCOMES_MAX;
use std::collections::VecDeque;
use std::sync::Mutex;

/// The last [`OUTCOMES_MAX`] lines: of more, the oldest go.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<String>>);

impl Recent {
    pub fn tell(&self, line: String) {
        let mut lines = self.0.lock().expect("no holder panics");
        if lines.len() == OUTCOMES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The oldest first.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("no holder panics").iter().cloned().collect()
    }
}
