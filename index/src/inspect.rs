//! A look at a data directory that changes nothing: what its log and its mirrors hold, with every
//! checksum verified.
//!
//! Recovery runs on a disk that keeps all changes in memory, so that what is shown is what the next
//! start would find. Then the mirrors are read: closed spans against the checksum of their roll,
//! the spool against its own.

use crate::Error;
use crate::clock::Clock;
use crate::datadir::{DataDir, Options};
use crate::disk::{Disk, DryDisk};
use crate::ledger::Ledger;
use crate::recover::Recovered;
use crate::replica::Replica;
use crate::spans::SpanSet;
use protocol::{Offset, Span};
use std::sync::Arc;

/// What a directory holds.
#[derive(Debug)]
pub struct Report {
    pub recovered: Recovered,
    pub journals: Vec<JournalReport>,
}

impl Report {
    /// Whether every byte that should be here is, and is right.
    pub fn is_sound(&self) -> bool {
        !self.needs_repair() && !self.journals.iter().any(JournalReport::has_damage)
    }

    /// Whether something is wrong that nobody has named and taken out of the way.
    pub fn needs_repair(&self) -> bool {
        let found = &self.recovered;
        found.is_unmarked
            || !found.damaged_log.is_empty()
            || !found.found_damaged.is_empty()
            || !found.healed.is_empty()
            || self.journals.iter().any(|journal| !journal.wrong.is_empty())
    }
}

/// What one journal holds.
#[derive(Debug)]
pub struct JournalReport {
    pub ledger: Ledger,
    /// Bytes whose checksum was verified.
    pub verified_len: u64,
    /// Spans whose bytes are not what the log says.
    pub wrong: Vec<Span>,
}

impl JournalReport {
    pub fn has_damage(&self) -> bool {
        !self.ledger.damaged.is_empty()
    }

    /// Bytes in a store.
    pub fn persisted_len(&self) -> u64 {
        let stored = self.ledger.closed.iter().filter(|closed| closed.persisted.is_some());
        stored.map(|closed| closed.span.len()).sum()
    }
}

/// Looks at the directory under `disk`. `progress` hears of each verified span's length, of the
/// total given with it.
pub fn inspect(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Report, Error> {
    let dry: Arc<dyn Disk> = Arc::new(DryDisk::new(disk));
    let (data, recovered) = DataDir::open(dry, clock, Options::offline())?;
    let mut replicas = data.replicas();
    replicas.sort_by(|a, b| a.name().cmp(b.name()));
    let total = replicas.iter().map(|replica| replica.local_len()).sum();
    let journals = replicas
        .iter()
        .map(|replica| check(replica, |len| progress(len, total)))
        .collect::<Result<_, Error>>()?;
    Ok(Report { recovered, journals })
}

/// The whole local spans of a journal whose bytes do not match their sums, or can't be read.
pub(crate) fn wrong(replica: &Replica) -> Vec<Span> {
    let is_wrong =
        |(span, crc): &(Span, u32)| !replica.mirror().checksum(*span).is_ok_and(|sum| sum == *crc);
    sums(&replica.ledger()).into_iter().filter(is_wrong).map(|(span, _)| span).collect()
}

/// The spans that are local as a whole, and their sums.
fn sums(ledger: &Ledger) -> Vec<(Span, u32)> {
    let mut sums: Vec<(Span, u32)> =
        ledger.closed.iter().map(|closed| (closed.span, closed.crc)).collect();
    sums.push((Span::between(ledger.spool.begin, ledger.head), ledger.spool.crc));
    sums.retain(|(span, _)| !span.is_empty() && is_whole(&ledger.local, *span));
    sums
}

fn check(replica: &Replica, mut progress: impl FnMut(u64)) -> Result<JournalReport, Error> {
    let ledger = replica.ledger();
    let (mut verified_len, mut wrong) = (0, Vec::new());
    for (span, crc) in sums(&ledger) {
        match replica.mirror().checksum(span)? == crc {
            true => verified_len += span.len(),
            false => wrong.push(span),
        }
        progress(span.len());
    }
    Ok(JournalReport { ledger, verified_len, wrong })
}

fn is_whole(local: &SpanSet, span: Span) -> bool {
    span.end() > Offset::ZERO && local.covers(span)
}
