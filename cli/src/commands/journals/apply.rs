//! `courant journals apply`: makes journals what specs say.

use crate::input::Input;
use crate::{Error, output, specs};
use client::Remote;
use protocol::request::{ApplyRequest, Change, Expect};
use std::io::Read;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  courant journals apply --specs specs.yaml
  courant journals apply --dry-run < specs.yaml

  - name: local/log
    replication: 1
    fragment:
      length: 67108864
      compression_codec: ZSTANDARD
      stores: ['file:///']
      refresh_interval: 5m0s
      flush_interval: 1h0m0s

A spec with a `revision` replaces the one of that revision (-1: whatever is there), one without
must be new, one with `delete: true` is deleted. courant journals list -o yaml shows both.";

/// Create, change and delete journals by specs.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Apply {
    /// The file of specs, in YAML or JSON; - is standard input.
    #[arg(long, value_name = "FILE", default_value = "-")]
    specs: PathBuf,

    /// Only say what would be done. The broker is not asked.
    #[arg(long)]
    dry_run: bool,

    /// The most journals of one transaction, which is made whole or not at all; 0 puts all in one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_txn_size: usize,
}

impl Apply {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let origin = match self.specs.to_str() {
            Some(output::STANDARD) => "standard input".to_owned(),
            _ => self.specs.display().to_string(),
        };
        let mut text = String::new();
        let mut input = Input::open(&self.specs)?;
        let read = input.reader.read_to_string(&mut text);
        read.map_err(Error::io(format!("read {origin}")))?;
        let changes = specs::changes(&origin, &text)?;
        if self.dry_run {
            return output::print(&changes.iter().map(described).collect::<String>());
        }
        for batch in batches(changes, self.max_txn_size) {
            let told: String = batch.iter().map(described).collect();
            let revision = remote.apply(ApplyRequest { changes: batch }).await?;
            output::print(&told)?;
            tracing::info!(revision, "applied");
        }
        Ok(())
    }
}

/// No changes are one transaction all the same: it tells whether a broker is there.
fn batches(mut changes: Vec<Change>, size: usize) -> Vec<Vec<Change>> {
    if size == 0 || changes.len() <= size {
        return vec![changes];
    }
    let mut batches = Vec::new();
    while changes.len() > size {
        let rest = changes.split_off(size);
        batches.push(std::mem::replace(&mut changes, rest));
    }
    batches.push(changes);
    batches
}

fn described(change: &Change) -> String {
    let what = match change {
        Change::Upsert { expect: Expect::Absent, .. } => "create",
        Change::Upsert { .. } => "put",
        Change::Delete { .. } => "delete",
    };
    let condition = match change.expect() {
        Expect::At(revision) => format!(" (at revision {revision})"),
        Expect::Absent | Expect::Any => String::new(),
    };
    format!("{what} {}{condition}\n", change.journal())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(count: usize) -> Vec<Change> {
        let change = |number: usize| Change::Delete {
            journal: format!("local/{number}").parse().expect("valid"),
            expect: Expect::Any,
        };
        (0..count).map(change).collect()
    }

    #[test]
    fn transactions_are_as_large_as_asked() {
        // Case: changes, the size asked for, the sizes of the transactions
        let cases: [(usize, usize, &[usize]); 6] = [
            (0, 0, &[0]),
            (5, 0, &[5]),
            (5, 5, &[5]),
            (5, 2, &[2, 2, 1]),
            (4, 2, &[2, 2]),
            (0, 2, &[0]),
        ];
        for (count, size, expected) in cases {
            let batches = batches(changes(count), size);
            let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
            assert_eq!(sizes, expected, "{count} by {size}");
            assert_eq!(batches.concat(), changes(count));
        }
    }

    #[test]
    fn changes_are_described() {
        let rest = "replication: 1, \
            fragment: {length: 1024, compression_codec: NONE, refresh_interval: 1s}";
        let text = format!(
            "- {{name: local/new, {rest}}}
- {{name: local/old, revision: 7, {rest}}}
- {{name: local/gone, delete: true, revision: -1}}"
        );
        let changes = specs::changes("test", &text).expect("valid");
        let told: String = changes.iter().map(described).collect();
        assert_eq!(told, "create local/new\nput local/old (at revision 7)\ndelete local/gone\n");
    }
}
