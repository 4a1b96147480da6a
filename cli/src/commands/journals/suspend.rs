//! `courant journals suspend`: gives up replicas of journals that are idle.

use crate::selection::Selection;
use crate::{Error, output};
use client::Remote;
use protocol::response::ListedJournal;
use protocol::{Journal, SuspendLevel};

const EXAMPLES: &str = "\
Examples:
  courant journals suspend local/log            if all of it is in its store
  courant journals suspend --force -l 'tag=old'

The next append resumes a suspended journal.";

/// Suspend journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Suspend {
    #[command(flatten)]
    selection: Selection,

    /// Suspend also what is not all in its store yet.
    #[arg(short = 'f', long)]
    force: bool,
}

impl Suspend {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        for journal in self.selection.journals(remote).await? {
            // Both answers are success: one that was suspended before says neither.
            let is_suspended = remote.suspend(&journal, self.force).await?;
            let told = match Selection::of(journal).named_or_listed(remote).await?.pop() {
                Some((_, Some(listed))) => told(&listed),
                Some((journal, None)) => unseen(&journal, is_suspended),
                None => String::new(),
            };
            output::print(&told)?;
        }
        Ok(())
    }
}

/// What the answer alone tells, where the caller may not list the journal.
fn unseen(journal: &Journal, is_suspended: bool) -> String {
    match is_suspended {
        true => format!("{journal}: suspended\n"),
        false => format!("{journal}: nothing to suspend, or not all of it is in its store\n"),
    }
}

fn told(listed: &ListedJournal) -> String {
    let name = &listed.spec.name;
    match listed.spec.suspend {
        Some(suspend) if suspend.level != SuspendLevel::None => {
            format!("{name}: suspended ({}, at offset {})\n", suspend.level.name(), suspend.offset)
        }
        _ => {
            format!("{name}: not suspended: not all of it is in its store (--force does it now)\n")
        }
    }
}
