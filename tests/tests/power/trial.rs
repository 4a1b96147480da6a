//! What a journal must have after cuts of the power, and what it may have lost.

use ::tests::model::{self, Record};
use protocol::wire::gazette::ReadRequest;
use protocol::wire::gazette::journal_client::JournalClient;
use std::collections::{BTreeMap, BTreeSet};
use tokio::runtime::Runtime;

/// Bytes that lie together, by their offset.
pub type Runs = BTreeMap<u64, Vec<u8>>;

/// All readable bytes of a journal.
pub fn read(url: &str, journal: &str) -> Runs {
    let request = ReadRequest { journal: journal.to_owned(), ..ReadRequest::default() };
    let all = async {
        let mut client = JournalClient::connect(url.to_owned()).await.expect("it serves");
        let mut responses = client.read(request).await.expect("it is read").into_inner();
        let mut runs = Runs::new();
        let mut at = 0;
        while let Some(response) = responses.message().await.expect("it goes on") {
            if response.content.is_empty() {
                // A gap is passed over: the metadata says where it goes on.
                at = u64::try_from(response.offset).expect("offsets are not negative");
                continue;
            }
            let len = response.content.len() as u64;
            match runs.last_entry() {
                Some(mut last) if last.key() + last.get().len() as u64 == at => {
                    last.get_mut().extend_from_slice(&response.content);
                }
                _ => drop(runs.insert(at, response.content.to_vec())),
            }
            at += len;
        }
        runs
    };
    Runtime::new().expect("threads can be had").block_on(all)
}

pub fn end(runs: &Runs) -> u64 {
    runs.last_key_value().map_or(0, |(begin, run)| begin + run.len() as u64)
}

/// How far an append is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    Disk,
    Memory,
}

/// What writers were told of one journal.
#[derive(Debug, Default)]
pub struct Trial {
    /// Must be there: synced, or found after a cut.
    kept: BTreeMap<u32, BTreeSet<u64>>,
    /// Acknowledged at memory since the last cut: the last of them may be gone.
    open: BTreeMap<u32, BTreeSet<u64>>,
    /// Without an answer: each may be there, and whenever.
    unanswered: BTreeSet<(u32, u64)>,
    /// What was read when all was as it must stay.
    settled: Runs,
    /// Appends that a cut took.
    pub lost: usize,
    pub found: usize,
}

impl Trial {
    pub fn acknowledge(&mut self, writer: u32, number: u64, promise: Promise) {
        let of = match promise {
            Promise::Disk => &mut self.kept,
            Promise::Memory => &mut self.open,
        };
        of.entry(writer).or_default().insert(number);
    }

    /// Somebody waits for its answer, who was ended.
    pub fn interrupt(&mut self, writer: u32, number: u64) {
        self.unanswered.insert((writer, number));
    }

    /// Checks what is there after a cut. `seen` was read before it, when all below `synced` was
    /// told to be durable.
    pub fn check(&mut self, seen: &Runs, synced: u64, runs: &Runs) -> Result<(), String> {
        let found = self.records(runs)?;
        for (writer, kept) in &self.kept {
            let there = found.get(writer).cloned().unwrap_or_default();
            let missing: Vec<&u64> = kept.difference(&there).collect();
            if !missing.is_empty() {
                return Err(format!("writer {writer}: {missing:?} were durable, and are gone"));
            }
        }
        for (writer, there) in &found {
            let open = self.open.remove(writer).unwrap_or_default();
            let kept = self.kept.entry(*writer).or_default();
            let unknown: Vec<u64> = there
                .iter()
                .copied()
                .filter(|number| !open.contains(number) && !kept.contains(number))
                .filter(|number| !self.unanswered.contains(&(*writer, *number)))
                .collect();
            if !unknown.is_empty() {
                return Err(format!(
                    "writer {writer}: {unknown:?} are there, and were never tried"
                ));
            }
            // A writer has one append at a time, so that a later one found tells of those before.
            let last = open.intersection(there).last().copied();
            let holes: Vec<u64> = open
                .difference(there)
                .filter(|number| last.is_some_and(|last| **number < last))
                .copied()
                .collect();
            if !holes.is_empty() {
                return Err(format!("writer {writer}: {holes:?} are gone, and {last:?} is there"));
            }
            self.lost += open.difference(there).count();
            self.found += open.intersection(there).count();
            kept.extend(there);
        }
        // Of writers of whom nothing is there at all.
        self.lost += std::mem::take(&mut self.open).values().map(BTreeSet::len).sum::<usize>();
        same(&self.settled, runs, u64::MAX)?;
        same(seen, runs, synced)?;
        self.settled.clone_from(runs);
        Ok(())
    }

    /// The records of all runs, by their writers: each once, and in its writer's order.
    fn records(&self, runs: &Runs) -> Result<BTreeMap<u32, BTreeSet<u64>>, String> {
        let mut found: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        for (begin, run) in runs {
            let records =
                model::records(run).map_err(|wrong| format!("run at {begin}: {wrong}"))?;
            for Record { writer, number, .. } in records {
                let numbers = found.entry(writer).or_default();
                let is_answered = !self.unanswered.contains(&(writer, number));
                let is_late = is_answered && numbers.last().is_some_and(|last| *last > number);
                if is_late || !numbers.insert(number) {
                    return Err(format!("writer {writer}: {number} comes late, or twice"));
                }
            }
        }
        Ok(found)
    }
}

/// Whatever `before` has, `after` has the same at its offset; it lacks nothing below `durable`.
fn same(before: &Runs, after: &Runs, durable: u64) -> Result<(), String> {
    for (begin, run) in before {
        let (mut at, mut left) = (*begin, run.as_slice());
        while !left.is_empty() {
            let found = covering(after, at);
            let len = found.len().min(left.len());
            if len == 0 {
                if at < durable {
                    return Err(format!("offset {at} was durable, and is gone"));
                }
                // Up to where there is something again.
                let next = after.range(at..).next().map_or(u64::MAX, |(next, _)| *next);
                let skipped = usize::try_from(next - at).unwrap_or(usize::MAX).min(left.len());
                (at, left) = (at + skipped as u64, &left[skipped..]);
                continue;
            }
            if found[..len] != left[..len] {
                return Err(format!("of {len} bytes at {at} some are others than before"));
            }
            (at, left) = (at + len as u64, &left[len..]);
        }
    }
    Ok(())
}

/// The bytes from an offset on that lie together.
fn covering(runs: &Runs, at: u64) -> &[u8] {
    let Some((begin, run)) = runs.range(..=at).next_back() else { return &[] };
    usize::try_from(at - begin).ok().and_then(|skip| run.get(skip..)).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told() {
        let runs = |all: &[(u64, &str)]| -> Runs {
            all.iter().map(|(begin, run)| (*begin, run.as_bytes().to_vec())).collect()
        };
        let before = runs(&[(0, "abc"), (10, "xyz")]);
        // Case: what is there afterwards, below what all is durable, and whether it is as before
        let cases = [
            (runs(&[(0, "abc"), (10, "xyz")]), 13, true),
            (runs(&[(0, "abc----------")]), 13, false),
            (runs(&[(0, "ab"), (2, "c"), (10, "xyzz")]), 13, true),
            (runs(&[(0, "abc")]), 10, true),
            (runs(&[(0, "abc")]), 11, false),
            (runs(&[(0, "abc"), (11, "yz")]), 10, true),
            (runs(&[(0, "abc"), (11, "y!")]), 10, false),
            (runs(&[]), 0, true),
        ];
        for (after, durable, expected) in cases {
            assert_eq!(same(&before, &after, durable).is_ok(), expected, "{after:?} {durable}");
        }
    }
}
