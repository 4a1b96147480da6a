//! `courant journals prune`: deletes what is older than journals keep it.

use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, output, size};
use client::{Deleted, Remote};
use protocol::{Journal, duration};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  courant journals prune --dry-run local/log                 what would be deleted
  courant journals prune -l 'name:prefix=local/app/'

A journal keeps its fragments for `fragment.retention` of its spec; none, or 0, keeps for ever. The
broker deletes, in whatever store they are. It does so by itself once a minute; this does it now,
and to the last object. The fragment that ends highest always stays.";

/// Delete stored fragments that are older than their journal's retention.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Prune {
    #[command(flatten)]
    selection: Selection,

    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let listed = self.selection.listed(remote).await?;
        let progress = Progress::steps("pruning", listed.len() as u64);
        for journal in listed {
            let (name, retention) = (journal.spec.name, journal.spec.fragment.retention);
            let deleted = match retention.is_zero() {
                true => Deleted::default(),
                false => remote.prune(&name, self.dry_run).await?,
            };
            progress.aside(|| output::print(&self.told(&name, retention, &deleted)))?;
            progress.advance(1);
        }
        Ok(())
    }

    fn told(&self, journal: &Journal, retention: Duration, deleted: &Deleted) -> String {
        if retention.is_zero() {
            return format!("{journal}: kept for ever (its retention is 0)\n");
        }
        let did = if self.dry_run { "would delete" } else { "deleted" };
        let (count, size) = (deleted.objects.len(), size::format(deleted.bytes));
        let age = duration::format(retention);
        let mut text =
            format!("{journal}: {did} what is older than {age} (objects: {count}, {size})\n");
        if self.dry_run {
            text.extend(deleted.objects.iter().map(|object| format!("  {object}\n")));
        }
        text
    }
}
