//! `courant journals delete`: takes journals away, and with --purge what stores hold of them.

use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, output, size};
use client::{Deleted, Remote};
use protocol::Journal;
use std::io::{self, IsTerminal, Write};

const EXAMPLES: &str = "\
Examples:
  courant journals delete local/log                    the journal; its stored fragments stay
  courant journals delete --purge --dry-run local/log  what would be gone for ever
  courant journals delete --purge --yes -l 'name:prefix=local/old/'

A journal that is created again over stored fragments shows them, and goes on at their end.";

/// Delete journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Delete {
    #[command(flatten)]
    selection: Selection,

    /// Delete the objects of stored fragments too. They are gone for ever.
    #[arg(long)]
    purge: bool,

    /// Only say what would be deleted.
    #[arg(long)]
    dry_run: bool,

    /// Do not ask.
    #[arg(short = 'y', long)]
    yes: bool,
}

impl Delete {
    pub async fn run(self, remote: &Remote) -> Result<(), Error> {
        let listed = self.selection.listed(remote).await?;
        // Only what was listed is deleted: a spec that changed meanwhile is refused.
        let journals: Vec<(Journal, i64)> =
            listed.into_iter().map(|listed| (listed.spec.name, listed.mod_revision)).collect();
        if !self.dry_run && !self.yes {
            self.confirm(&journals)?;
        }
        let progress = Progress::steps("deleting", journals.len() as u64);
        for (journal, revision) in &journals {
            let deleted = remote.delete(journal, self.purge, self.dry_run, Some(*revision)).await?;
            progress.aside(|| output::print(&self.told(journal, &deleted)))?;
            progress.advance(1);
        }
        Ok(())
    }

    /// Asks at a terminal; elsewhere somebody must have said yes beforehand.
    fn confirm(&self, journals: &[(Journal, i64)]) -> Result<(), Error> {
        let refused = || Error::Unconfirmed(journals.len());
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(refused());
        }
        let what = match self.purge {
            true => "and all stored bytes of it, for ever",
            false => "its stored fragments stay",
        };
        let names = journals.iter().map(|(journal, _)| format!("  {journal}\n"));
        let question = format!("{}delete ({what})? [y/N] ", names.collect::<String>());
        let mut answer = String::new();
        io::stderr().write_all(question.as_bytes()).map_err(Error::io("ask"))?;
        io::stdin().read_line(&mut answer).map_err(Error::io("read the answer"))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(refused()),
        }
    }

    fn told(&self, journal: &Journal, deleted: &Deleted) -> String {
        let did = if self.dry_run { "would delete" } else { "deleted" };
        if !self.purge {
            return format!("{did} {journal}\n");
        }
        let (count, size) = (deleted.objects.len(), size::format(deleted.bytes));
        let mut text = format!("{did} {journal} (objects: {count}, {size})\n");
        if self.dry_run {
            text.extend(deleted.objects.iter().map(|object| format!("  {object}\n")));
        }
        text
    }
}
