//! `courant journals apply`: makes journals what specs say.

use crate::input::Input;
use crate::selection::Selection;
use crate::{Error, output, proto};
use client::{Remote, specs};
use protocol::request::{ApplyRequest, Change, Expect};
use protocol::wire::gazette;
use std::io::Read;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  courant journals apply --specs specs.yaml
  courant journals apply --dry-run < specs.yaml

  name: local/                      what ends in / is a directory, whose children
  replication: 1                    take from it what they do not say themselves
  fragment:
    length: 67108864
    compression_codec: ZSTANDARD
    stores: ['file:///']
    refresh_interval: 5m0s
    flush_interval: 1h0m0s
  children:
  - name: local/app                 names are whole, and in ascending order
  - name: local/web
    labels: [{name: content-type, value: text/csv}]

A spec with a `revision` replaces the one of that revision (-1: whatever is there), one without
must be new, one with `delete: true` is deleted. courant journals list -o yaml shows both.";

/// Changes in one transaction that every broker takes: etcd's default limit (gazette-spec 1.9).
const TXN_MAX: usize = 128;

/// Create, change and delete journals by specs.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Apply {
    /// The file of specs, in YAML or JSON; - is standard input.
    #[arg(long, value_name = "FILE", default_value = "-")]
    specs: PathBuf,

    /// Only print the request, as protobuf's text. The broker is not asked.
    #[arg(long)]
    dry_run: bool,

    /// The most journals of one transaction, which is made whole or not at all; 0 puts all in one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_txn_size: usize,
}

impl Apply {
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Prints the request as protobuf's text, and before it, as comments of that, what it does.
    pub fn describe(&self) -> Result<(), Error> {
        let changes = self.changes()?;
        let comments: String = changes.iter().map(|c| format!("# {}", described(c))).collect();
        let request = gazette::ApplyRequest::from(ApplyRequest { changes });
        output::print(&(comments + &proto::text(&request, "protocol.ApplyRequest")))
    }

    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let changes = self.changes()?;
        if changes.is_empty() {
            output::note("the text names no journal: nothing was applied");
        }
        for batch in batches(changes, self.max_txn_size) {
            output::print(&apply(remote, batch).await?)?;
        }
        Ok(())
    }

    fn changes(&self) -> Result<Vec<Change>, Error> {
        let (origin, text) = read_specs(&self.specs)?;
        Ok(specs::changes(&origin, &text)?)
    }
}

/// Applies changes in one transaction. What was done, a line for each.
pub async fn apply(remote: &Remote, changes: Vec<Change>) -> Result<String, Error> {
    let count = changes.len();
    match remote.apply(ApplyRequest { changes: changes.clone() }).await {
        Ok(revision) => Ok(changes.iter().map(|change| done(change, revision)).collect()),
        Err(client::Error::Invalid(invalid)) if count > TXN_MAX => {
            Err(Error::TooManyChanges(count, invalid))
        }
        Err(conflict @ client::Error::Conflict(..)) => {
            let found = conflicting(remote, &changes).await;
            Err(found.unwrap_or_else(|| conflict.into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Which of the changes expects what is not so. `None` where that can't be told any more.
async fn conflicting(remote: &Remote, changes: &[Change]) -> Option<Error> {
    for change in changes {
        let listed = Selection::of(change.journal().clone()).listed(remote).await;
        let found = match listed {
            Ok(listed) => listed.first().map(|listed| listed.mod_revision),
            Err(Error::Client(client::Error::NotFound(_))) => None,
            Err(_) => return None,
        };
        let journal = change.journal().clone();
        match (change.expect(), found) {
            (Expect::Absent, Some(found)) => return Some(Error::Exists(journal, found)),
            (Expect::At(expected), None) => return Some(Error::Vanished(journal, expected)),
            (Expect::At(expected), Some(found)) if expected != found => {
                return Some(Error::Superseded(journal, expected, found));
            }
            (Expect::Absent, None) | (Expect::Any | Expect::At(_), _) => {}
        }
    }
    None
}

/// A file's text, and how errors call it.
pub fn read_specs(path: &Path) -> Result<(String, String), Error> {
    let origin = match path.to_str() {
        Some(output::STANDARD) => "standard input".to_owned(),
        _ => path.display().to_string(),
    };
    let mut text = String::new();
    let mut input = Input::open(path)?;
    let read = input.reader.read_to_string(&mut text);
    read.map_err(Error::io(format!("read {origin}")))?;
    Ok((origin, text))
}

/// Changes in transactions of `size` at most; 0 puts all in one. No changes are one transaction all
/// the same: it tells whether a broker is there.
pub fn batches(mut changes: Vec<Change>, size: usize) -> Vec<Vec<Change>> {
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

/// What a change would do, in a line.
fn described(change: &Change) -> String {
    let condition = match change.expect() {
        Expect::At(revision) => format!(" (if it is at revision {revision})"),
        Expect::Absent | Expect::Any => String::new(),
    };
    format!("{} {}{condition}\n", verb(change), change.journal())
}

/// What a change did, in a line. `revision` is what it made.
fn done(change: &Change, revision: i64) -> String {
    let (verb, journal) = (verb(change), change.journal());
    match change {
        Change::Upsert { .. } => format!("{verb} {journal} (at revision {revision})\n"),
        Change::Delete { .. } => format!("{verb} {journal}\n"),
    }
}

fn verb(change: &Change) -> &'static str {
    match change {
        Change::Upsert { expect: Expect::Absent, .. } => "create",
        Change::Upsert { .. } => "put",
        Change::Delete { .. } => "delete",
    }
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
        let expected =
            "create local/new\nput local/old (if it is at revision 7)\ndelete local/gone\n";
        assert_eq!(told, expected);
        let told: String = changes.iter().map(|change| done(change, 9)).collect();
        let expected = "create local/new (at revision 9)\nput local/old (at revision 9)\n\
                        delete local/gone\n";
        assert_eq!(told, expected);
    }
}
