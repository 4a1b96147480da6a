//! `courant inspect`: what a data directory holds, without a broker.

use super::places::is_data;
use crate::progress::Progress;
use crate::table::Table;
use crate::{Error, output, seams, size, time};
use broker::backing::{self, KEY_SPACE};
use index::disk::RealDisk;
use index::inspect::{JournalReport, Report};
use index::spans::SpanSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant inspect ./courant-data

Nothing is changed: what is shown is what the next start would find. LOCAL is what this directory
holds of a journal, STORED what went to its store, LOST what a power cut took before it was synced,
DAMAGED what is here and wrong. Exit code 1 when damage is found.";

/// Show what a data directory holds, and verify its sums. No broker may run on it.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Inspect {
    /// The data directory.
    data: PathBuf,
}

impl Inspect {
    pub fn run(self) -> Result<(), Error> {
        let disk = RealDisk::new(existing(&self.data)?);
        let disk = Arc::new(disk.map_err(Error::io(format!("open {}", self.data.display())))?);
        let mut progress = None;
        let report = index::inspect::inspect(disk.clone(), seams::clock(), |len, total| {
            progress
                .get_or_insert_with(|| Progress::bytes("verifying", Some(total), true))
                .advance(len);
        });
        let report = report.map_err(Error::data(&self.data))?;
        drop(progress);
        output::print(&format!("{}\n{}", journals(&report).shown(), findings(&report)))?;
        let keys = key_space(disk, !report.journals.is_empty());
        if let Some(why) = &keys {
            output::print(&format!("damaged: {KEY_SPACE}: {why}\n"))?;
        }
        match report.is_sound() && keys.is_none() {
            true => Ok(()),
            false => Err(Error::Damage(self.data.display().to_string())),
        }
    }
}

/// What is wrong with the key space. Nobody else has it open: its directory was just inspected.
fn key_space(disk: Arc<RealDisk>, has_journals: bool) -> Option<String> {
    match backing::names(disk) {
        Ok(None) if has_journals => Some(broker::KeySpaceError::Gone.to_string()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Opening a disk makes its directory, so one that is not there is told before.
pub(super) fn existing(data: &Path) -> Result<&Path, Error> {
    let is_dir = std::fs::metadata(data).map_err(Error::reading(data))?.is_dir();
    match is_dir && is_data(data)? {
        true => Ok(data),
        false => Err(Error::NoData(data.display().to_string())),
    }
}

fn journals(report: &Report) -> Table {
    let mut table = Table::new([
        "JOURNAL",
        "ID",
        "#FIRST",
        "#HEAD",
        "#CEILING",
        "#LOCAL",
        "#STORED",
        "#LOST",
        "#DAMAGED",
        "#VERIFIED",
        "LAST APPEND",
    ]);
    for journal in &report.journals {
        table.row(row(journal));
    }
    table
}

fn row(journal: &JournalReport) -> Vec<String> {
    let ledger = &journal.ledger;
    let len = |spans: &SpanSet| size::format(spans.len());
    let modified = i64::try_from(ledger.modified_us / 1_000_000).unwrap_or(i64::MAX);
    vec![
        ledger.name.to_string(),
        ledger.life.to_string(),
        ledger.trimmed.to_string(),
        ledger.head.to_string(),
        ledger.ceiling.to_string(),
        len(&ledger.local),
        size::format(journal.persisted_len()),
        len(&ledger.lost),
        len(&ledger.damaged),
        size::format(journal.verified_len),
        if modified == 0 { "-".to_owned() } else { time::format(modified) },
    ]
}

/// What recovery found and what does not verify, a line each.
fn findings(report: &Report) -> String {
    let recovered = &report.recovered;
    let stop = match (recovered.is_clean, recovered.is_other_boot) {
        (true, _) => "stopped cleanly",
        (false, false) => "not stopped cleanly, in this run of the system",
        (false, true) => "not stopped cleanly, in an earlier run of the system",
    };
    let mut lines = vec![format!(
        "journals: {}; {stop}; records after the checkpoint: {}",
        report.journals.len(),
        recovered.records
    )];
    if recovered.cut_records > 0 {
        lines
            .push(format!("records cut off: {}, none acknowledged on disk", recovered.cut_records));
    }
    if recovered.is_unmarked {
        let mark = index::FORMAT_FILE;
        lines.push(format!("DAMAGED: {mark} is missing: a start or a repair makes it anew"));
    }
    let healed = recovered.healed.iter();
    lines.extend(healed.map(|(journal, span)| {
        format!("DAMAGED: {journal} {span} of the mirror: the log is right, and a start heals it")
    }));
    let lost = recovered.lost.iter().map(|(journal, span)| format!("lost: {journal} {span}"));
    lines.extend(lost);
    lines.extend(recovered.orphans.iter().map(|file| format!("of no journal: {file}")));
    let places = recovered.damaged_log.iter();
    lines.extend(places.map(|(from, to)| format!("DAMAGED: the log from {from} to {to}")));
    for journal in &report.journals {
        let name = &journal.ledger.name;
        let damaged = journal.ledger.damaged.iter();
        lines.extend(damaged.map(|span| format!("DAMAGED: {name} {span}, found earlier")));
        let wrong = journal.wrong.iter();
        lines.extend(wrong.map(|span| format!("DAMAGED: {name} {span} does not match its sum")));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::ledger::Ledger;
    use index::record::Position;
    use protocol::{Life, Offset, Span};

    fn span(begin: u32, len: u64) -> Span {
        Span::at(Offset::from(begin), len)
    }

    fn report() -> Report {
        let name = "local/log".parse().expect("valid");
        let mut ledger = Ledger::new(Life::new(7), name, Position::default());
        ledger.head = Offset::from(4096);
        ledger.local = [span(0, 4096)].into_iter().collect();
        let journal = JournalReport { ledger, verified_len: 4096, wrong: Vec::new() };
        Report { recovered: Default::default(), journals: vec![journal] }
    }

    #[test]
    fn a_sound_directory_is_shown() {
        let report = report();
        assert!(report.is_sound());
        let text = journals(&report).to_string();
        assert!(text.contains("local/log  0000000000007"), "{text}");
        assert!(text.contains("4.0 KiB"), "{text}");
        assert!(!findings(&report).contains("DAMAGED"));
    }

    #[test]
    fn whatever_is_wrong_has_its_line() {
        let mut report = report();
        report.journals[0].wrong = vec![span(10, 20)];
        report.journals[0].ledger.damaged = [span(100, 5)].into_iter().collect();
        report.recovered.healed = vec![("local/log".parse().expect("valid"), span(7, 1))];
        report.recovered.is_unmarked = true;
        report.recovered.orphans = vec!["mirror/x".into()];
        report.recovered.damaged_log = vec![(Position::new(1, 8), Position::new(1, 16))];
        assert!(!report.is_sound());
        let text = findings(&report);
        for line in [
            "DAMAGED: local/log 10..30 does not match its sum",
            "DAMAGED: local/log 100..105, found earlier",
            "DAMAGED: local/log 7..8 of the mirror: the log is right, and a start heals it",
            "DAMAGED: format is missing: a start or a repair makes it anew",
            "DAMAGED: the log from 00000001+8 to 00000001+16",
            "of no journal: mirror/x",
        ] {
            assert!(text.lines().any(|found| found == line), "nothing of {line} in: {text}");
        }
    }

    #[test]
    fn a_directory_that_is_not_ours_is_left_alone() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Case: the path, what the error says
        let cases = [
            (here.join("missing"), "missing"),
            (here.join("Cargo.toml"), "Cargo.toml"),
            (here.join("src"), "no data directory"),
        ];
        for (path, expected) in cases {
            let error = existing(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(path.exists(), expected != "missing");
        }
    }
}
