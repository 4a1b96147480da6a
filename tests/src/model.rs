//! Tagged appends, and what must be true of a journal that took them.
//!
//! A record tells its writer, its number and its length, and its filler is made of both, so that
//! whatever is torn, mixed, doubled, lost or zeroed in a journal shows. `programs/writer.py` makes
//! the same records in another process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One append: `<writer number length>`, the filler, a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub writer: u32,
    /// Each writer's own rise by one from append to append, acknowledged or not.
    pub number: u64,
    /// Of the filler.
    pub length: usize,
}

impl Record {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("<{} {} {}>", self.writer, self.number, self.length).into_bytes();
        bytes.resize(bytes.len() + self.length, self.filler());
        bytes.push(b'\n');
        bytes
    }

    fn filler(&self) -> u8 {
        let letter = (u64::from(self.writer) * 7 + self.number) % 26;
        b'a' + u8::try_from(letter).expect("it is below 26")
    }

    /// The record at the start of `bytes`, and what follows it.
    fn parse(bytes: &[u8]) -> Option<(Record, &[u8])> {
        let end = bytes.iter().take(64).position(|byte| *byte == b'>')?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix('<')?;
        let mut fields = head.split(' ');
        let record = Record {
            writer: fields.next()?.parse().ok()?,
            number: fields.next()?.parse().ok()?,
            length: fields.next()?.parse().ok()?,
        };
        let (filler, rest) = bytes[end + 1..].split_at_checked(record.length)?;
        let whole = filler.iter().all(|byte| *byte == record.filler());
        let rest = rest.strip_prefix(b"\n")?;
        whole.then_some((record, rest))
    }
}

/// What is wrong with a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// No whole record begins here.
    Torn { offset: usize, bytes: String },
    /// A writer's record comes at or after a later one of the same writer.
    Disorder { writer: u32, number: u64, after: u64 },
    /// Acknowledged, and not there.
    Lost { writer: u32, numbers: Vec<u64> },
    /// More records that nobody acknowledged than could be in flight.
    Unknown { writer: u32, numbers: Vec<u64>, at_most: usize },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// The records of a journal in their order, if it holds whole records and nothing else.
pub fn records(journal: &[u8]) -> Result<Vec<Record>, Wrong> {
    let mut records = Vec::new();
    let mut rest = journal;
    while !rest.is_empty() {
        let Some((record, after)) = Record::parse(rest) else {
            let bytes = String::from_utf8_lossy(&rest[..rest.len().min(80)]).into_owned();
            return Err(Wrong::Torn { offset: journal.len() - rest.len(), bytes });
        };
        records.push(record);
        rest = after;
    }
    Ok(records)
}

/// What writers were told of their appends to one journal.
#[derive(Debug, Clone, Default)]
pub struct History {
    acknowledged: BTreeMap<u32, BTreeSet<u64>>,
    /// How many appends of each writer ended without an answer: they may be there, whole.
    unanswered: BTreeMap<u32, usize>,
}

impl History {
    pub fn new() -> History {
        History::default()
    }

    /// The append returned with success.
    pub fn acknowledge(&mut self, writer: u32, number: u64) {
        self.acknowledged.entry(writer).or_default().insert(number);
    }

    /// The writer or its daemon died, or an append failed, with one append on its way.
    pub fn interrupt(&mut self, writer: u32) {
        *self.unanswered.entry(writer).or_default() += 1;
    }

    /// How many appends were acknowledged.
    pub fn acknowledgements(&self) -> usize {
        self.acknowledged.values().map(BTreeSet::len).sum()
    }

    /// Every acknowledged append is there once, whole and in its writer's order, and nothing else
    /// is but what was on its way when something died.
    pub fn check(&self, journal: &[u8]) -> Result<(), Wrong> {
        let mut seen: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for Record { writer, number, .. } in records(journal)? {
            let numbers = seen.entry(writer).or_default();
            if let Some(&after) = numbers.last().filter(|last| **last >= number) {
                return Err(Wrong::Disorder { writer, number, after });
            }
            numbers.insert(number);
        }
        let none = BTreeSet::new();
        for (&writer, acknowledged) in &self.acknowledged {
            let seen = seen.get(&writer).unwrap_or(&none);
            let numbers: Vec<u64> = acknowledged.difference(seen).copied().collect();
            if !numbers.is_empty() {
                return Err(Wrong::Lost { writer, numbers });
            }
        }
        for (writer, seen) in seen {
            let acknowledged = self.acknowledged.get(&writer).unwrap_or(&none);
            let numbers: Vec<u64> = seen.difference(acknowledged).copied().collect();
            let at_most = self.unanswered.get(&writer).copied().unwrap_or(0);
            if numbers.len() > at_most {
                return Err(Wrong::Unknown { writer, numbers, at_most });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
