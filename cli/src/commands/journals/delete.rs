//! `courant journals delete`: takes journals away, and with --purge what stores hold of them.

use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, output, size};
use client::{Deleted, Journals, Remote};
use protocol::Journal;
use protocol::response::ListedJournal;
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
        if !self.dry_run && !self.yes {
            self.confirm(&listed)?;
        }
        let progress = Progress::steps("deleting", listed.len() as u64);
        for listed in &listed {
            let journal = &listed.spec.name;
            let local =
                if self.dry_run { self.local(remote, listed).await? } else { String::new() };
            // Only what was listed is deleted: a spec that changed meanwhile is refused.
            let revision = Some(listed.mod_revision);
            let deleted = remote.delete(journal, self.purge, self.dry_run, revision).await?;
            progress.aside(|| output::print(&(self.told(journal, &deleted) + &local)))?;
            progress.advance(1);
        }
        Ok(())
    }

    /// What would become of bytes that no store has.
    async fn local(&self, remote: &Remote, listed: &ListedJournal) -> Result<String, Error> {
        let stat = remote.stat(&listed.spec.name).await?;
        let unstored = stat.head.since(stat.persisted.max(stat.first));
        if unstored == 0 {
            return Ok(String::new());
        }
        let fate = match (self.purge, listed.spec.fragment.stores.is_empty()) {
            (false, false) => "would be stored first",
            (true, _) | (false, true) => "would be gone for ever",
        };
        Ok(format!("  {} that no store has yet {fate}\n", size::format(unstored)))
    }

    /// Asks at a terminal; elsewhere somebody must have said yes beforehand.
    fn confirm(&self, journals: &[ListedJournal]) -> Result<(), Error> {
        let refused = || Error::Unconfirmed(journals.len());
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(refused());
        }
        let what = match self.purge {
            true => "and all stored bytes of it, for ever",
            false => "its stored fragments stay",
        };
        let names = journals.iter().map(|listed| format!("  {}\n", listed.spec.name));
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
