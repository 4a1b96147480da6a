//! `courant status`: what a broker holds and what it waits for, and what is mounted here.

mod mounts;

use crate::connection::Connection;
use crate::table::Table;
use crate::{Error, output, size};
use protocol::Journal;
use serde_json::Value;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  courant status
  courant status --broker http://host:8080 -o json | jq .bytes
  courant status local/log                    one journal: where its bytes are, and which are gone
  courant status --mounts                     what is mounted on this machine, and who has it open

The members of the JSON are described in docs/OPERATIONS.md.";

/// Show what a broker, or one journal, holds and what it waits for.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// The journal; without one, the broker.
    journal: Option<Journal>,

    /// Show what is mounted on this machine, of whatever broker; none is asked.
    #[arg(long, conflicts_with = "journal")]
    mounts: bool,

    /// The form of the output.
    #[arg(short = 'o', long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    Table,
    Json,
}

impl Status {
    pub async fn run(self) -> Result<(), Error> {
        if self.mounts {
            let mounts = mounts::all()?;
            return output::print(&match self.format {
                Format::Table => mounts::readable(&mounts),
                Format::Json => format!("{mounts:#}\n"),
            });
        }
        let remote = self.connection.remote()?;
        let text = match &self.journal {
            Some(journal) => remote.status_of(journal).await?,
            None => remote.status().await?,
        };
        let status: Value = serde_json::from_str(&text)
            .map_err(|error| Error::Specs("the status".to_owned(), error.to_string()))?;
        output::print(&match self.format {
            Format::Table if self.journal.is_some() => of_journal(&status),
            Format::Table => readable(&status),
            Format::Json => format!("{status:#}\n"),
        })
    }
}

/// The members that a person asks for first, then whatever needs attention.
fn readable(status: &Value) -> String {
    let mut table = Table::new(["BROKER", ""]);
    let mut row = |name: &str, value: String| table.row(vec![name.to_owned(), value]);
    row("process", shown(&status["process"]));
    row("endpoint", shown(&status["endpoint"]));
    row("version", shown(&status["version"]));
    row("revision", shown(&status["revision"]));
    row("durability", shown(&status["durability"]));
    row("journals", shown(&status["journals"]));
    let bytes = &status["bytes"];
    row("bytes held locally", bytes_of(&bytes["local"]));
    row("bytes not synced", bytes_of(&bytes["unsynced"]));
    row("bytes not in a store", bytes_of(&bytes["unpersisted"]));
    row("oldest byte not synced", age_of(&status["oldest"]["unsynced_seconds"]));
    row("oldest byte not in a store", age_of(&status["oldest"]["unpersisted_seconds"]));
    row("bytes kept by open files", bytes_of(&status["open_for_passthrough"]["local_bytes"]));
    row("open journals given up", shown(&status["open_for_passthrough"]["revoked"]));
    let unfinished = &status["unfinished_appends"];
    row("unfinished appends, memory", bytes_of(&unfinished["bytes_in_memory"]));
    row("unfinished appends, disk", bytes_of(&unfinished["bytes_on_disk"]));
    let healed = status["recovered"]["healed"].as_array().map_or(0, Vec::len);
    if healed > 0 {
        row("spans healed at the start", format!("{healed}: look after the disk"));
    }
    if status["is_over_budget"] == true {
        row("local budget", "used up: appends get ENOSPC".to_owned());
    }
    if status["is_closing"] == true {
        row("state", "ending".to_owned());
    }
    format!("{table}{}{}", stores(&status["stores"]), attention(&status["attention"]))
}

/// The members as they are, spans as `BEGIN..END`.
fn of_journal(status: &Value) -> String {
    let mut table = Table::new(["JOURNAL", &shown(&status["journal"])]);
    let members = status.as_object().into_iter().flatten().filter(|(name, _)| *name != "journal");
    for (name, value) in members {
        let value = match value {
            Value::Array(spans) if spans.is_empty() => "none".to_owned(),
            Value::Array(spans) => spans.iter().map(span).collect::<Vec<_>>().join(" "),
            Value::Null => "none".to_owned(),
            value => shown(value),
        };
        table.row(vec![name.replace('_', " "), value]);
    }
    table.to_string()
}

fn span(span: &Value) -> String {
    format!("{}..{}", span["begin"], span["end"])
}

fn stores(stores: &Value) -> String {
    let list = stores.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["STORE", "#FAILURES", "LAST FAILURE"]);
    for store in list {
        let reason = store["reason"].as_str().unwrap_or("-");
        table.row(vec![shown(&store["url"]), shown(&store["failures"]), reason.to_owned()]);
    }
    format!("\n{table}")
}

fn attention(attention: &Value) -> String {
    let list = attention["journals"].as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        return "\nno journal needs attention\n".to_owned();
    }
    let mut table =
        Table::new(["JOURNAL THAT NEEDS ATTENTION", "#GAPS", "LOST", "DAMAGED", "SECOND WRITER"]);
    for journal in list {
        let second = match &journal["second_writer"] {
            Value::Null => "-".to_owned(),
            writer => shown(writer),
        };
        let [lost, damaged] = ["lost_bytes", "damaged_bytes"].map(|it| bytes_of(&journal[it]));
        table.row(vec![shown(&journal["journal"]), shown(&journal["gaps"]), lost, damaged, second]);
    }
    format!("\n{}", table.shown())
}

/// A text without its quotes, anything else as JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Seconds, as people write them.
fn age_of(value: &Value) -> String {
    match value.as_f64() {
        // Whole seconds: what is younger is no matter.
        Some(seconds) => protocol::duration::format(Duration::from_secs(seconds as u64)),
        None => "-".to_owned(),
    }
}

fn bytes_of(value: &Value) -> String {
    value.as_u64().map_or_else(|| shown(value), size::format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_shown_member_by_member() {
        let text = of_journal(&serde_json::json!({
            "journal": "a/log", "head": 30, "local_bytes": 5, "second_writer": null,
            "lost": [{"begin": 5, "end": 9}, {"begin": 20, "end": 21}], "damaged": [],
        }));
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        for row in [
            vec!["JOURNAL", "a/log"],
            vec!["head", "30"],
            vec!["local", "bytes", "5"],
            vec!["lost", "5..9", "20..21"],
            vec!["damaged", "none"],
            vec!["second", "writer", "none"],
        ] {
            assert!(rows.contains(&row), "nothing of {row:?} in: {text}");
        }
    }

    #[test]
    fn what_needs_attention_is_shown() {
        let mut status = serde_json::json!({
            "process": "local/b", "endpoint": "http://h:1", "journals": 3,
            "bytes": {"local": 2048},
            "stores": [{"url": "file:///", "failures": 2, "reason": "it is away"}],
            "attention": {"count": 0, "journals": []},
        });
        let text = readable(&status);
        for line in ["2.0 KiB", "local/b", "file:///", "it is away", "no journal needs attention"] {
            assert!(text.contains(line), "nothing of {line} in: {text}");
        }
        let journal = serde_json::json!({
            "journal": "a/log", "gaps": 1, "lost_bytes": 5, "damaged_bytes": 0,
            "second_writer": null,
        });
        status["attention"]["journals"] = serde_json::json!([journal]);
        let text = readable(&status);
        let last = text.lines().last().unwrap_or_default();
        assert_eq!(
            last.split_whitespace().collect::<Vec<_>>(),
            ["a/log", "1", "5", "B", "0", "B", "-"]
        );
    }
}
