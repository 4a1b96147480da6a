//! Who was sent from one node of a journal to the other.
//!
//! An open that the passthrough node can't serve is answered `ESTALE` once. The kernel then looks
//! the name up again, twice, and opens what it finds; so the mark made here stays until that open.

use crate::limits::HANDOVERS_MAX;
use protocol::Life;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Marks by thread. A thread has one call under way, so one mark a thread and journal is enough.
#[derive(Debug, Default)]
pub(crate) struct Handover(Mutex<VecDeque<(u32, Life)>>);

impl Handover {
    /// This thread's next look-up of the journal finds the direct node.
    pub(crate) fn send(&self, thread: u32, life: Life) {
        let mut marks = self.marks();
        if marks.contains(&(thread, life)) {
            return;
        }
        if marks.len() == HANDOVERS_MAX {
            marks.pop_front();
        }
        marks.push_back((thread, life));
    }

    pub(crate) fn is_sent(&self, thread: u32, life: Life) -> bool {
        self.marks().contains(&(thread, life))
    }

    /// The thread has opened the direct node.
    pub(crate) fn arrived(&self, thread: u32, life: Life) {
        self.marks().retain(|mark| *mark != (thread, life));
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, VecDeque<(u32, Life)>> {
        self.0.lock().expect("no holder panics")
    }
}
