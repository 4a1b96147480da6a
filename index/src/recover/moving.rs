//! Content on its way into mirrors again: what follows on itself in a mirror is written at once.
//!
//! A log of a million small appends would else cost as many writes, which were two thirds of the
//! time that its recovery took.

use super::healed::Healed;
use crate::Error;
use crate::ledger::Ledger;
use crate::mirror::Mirror;
use protocol::{Life, Offset};
use std::collections::BTreeMap;

/// Bytes of one journal past which they are written, and bytes of all journals together.
const RUN_MAX: usize = 1 << 20;
const HELD_MAX: usize = 16 << 20;

/// Content that mirrors do not have yet. Invariant: no run is empty.
#[derive(Debug, Default)]
pub(super) struct Moving {
    runs: BTreeMap<Life, Run>,
    held: usize,
    /// What was wrong where it was written.
    pub healed: Healed,
}

#[derive(Debug)]
struct Run {
    begin: Offset,
    content: Vec<u8>,
}

impl Run {
    fn end(&self) -> Offset {
        self.begin.plus(self.content.len() as u64)
    }
}

impl Moving {
    /// Has `content` written into a journal's mirror, now or by the next [`Moving::settle`]. After
    /// an error it may be put again.
    pub fn put(
        &mut self,
        ledger: &Ledger,
        mirror: &Mirror,
        begin: Offset,
        content: &[u8],
    ) -> Result<(), Error> {
        let life = ledger.life;
        let goes_on = self
            .runs
            .get(&life)
            .is_some_and(|run| run.end() == begin && run.content.len() + content.len() <= RUN_MAX);
        if !goes_on {
            self.settle(ledger, mirror)?;
        }
        if content.len() >= RUN_MAX {
            return self.healed.write(&ledger.name, mirror, begin, content);
        }
        if content.is_empty() {
            return Ok(());
        }
        let run = self.runs.entry(life).or_insert_with(|| Run { begin, content: Vec::new() });
        run.content.extend_from_slice(content);
        self.held += content.len();
        Ok(())
    }

    /// Writes what is held for a journal: its mirror has all that was put. After an error it is
    /// held on.
    pub fn settle(&mut self, ledger: &Ledger, mirror: &Mirror) -> Result<(), Error> {
        let Some(run) = self.runs.get(&ledger.life) else { return Ok(()) };
        self.healed.write(&ledger.name, mirror, run.begin, &run.content)?;
        self.forget(ledger.life);
        Ok(())
    }

    /// Forgets what is held for a journal.
    pub fn forget(&mut self, life: Life) {
        if let Some(run) = self.runs.remove(&life) {
            self.held -= run.content.len();
        }
    }

    /// Whether so much is held that all of it should be written.
    pub fn is_full(&self) -> bool {
        self.held >= HELD_MAX
    }

    /// The journals for which content is held.
    pub fn lives(&self) -> Vec<Life> {
        self.runs.keys().copied().collect()
    }
}
