//! `courant journals reset-head`: lets appends go on at the end of what stores hold.

use crate::selection::Selection;
use crate::{Error, error, output};
use client::Remote;
use futures::stream::{self, StreamExt};
use protocol::Journal;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant journals reset-head local/log
  courant journals reset-head -l 'name:prefix=local/app/'

Needed where appends are refused with INDEX_HAS_GREATER_OFFSET: the store of the journal has bytes
beyond what its brokers know, because another broker wrote there or this one lost its disk. Nothing
is lost by it: the next append goes behind the last stored byte. The stores are looked at first; a
journal whose stores can't be stays as it is, and the exit code is 1.";

/// Journals that are reset at once.
const AT_ONCE: usize = 16;

/// Move the head of journals to the end of what their stores hold.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ResetHead {
    #[command(flatten)]
    selection: Selection,
}

impl ResetHead {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        let journals = self.selection.journals(remote).await?;
        let resets = journals.into_iter().map(|journal| {
            let remote = remote.clone();
            async move {
                let reset = remote.reset_head(&journal).await;
                (journal, reset)
            }
        });
        let mut resets = stream::iter(resets).buffered(AT_ONCE);
        let mut failed = Vec::new();
        while let Some((journal, reset)) = resets.next().await {
            match reset {
                Ok(reset) => output::print(&told(&journal, reset))?,
                Err(refused) => failed.push((journal, refused)),
            }
        }
        // The last one is the command's failure, so that each is told once.
        let last = failed.pop();
        for (journal, refused) in failed {
            output::note(&error::line(&Error::NotReset(journal, Box::new(refused))));
        }
        match last {
            None => Ok(()),
            Some((journal, refused)) => Err(Error::NotReset(journal, Box::new(refused))),
        }
    }
}

fn told(journal: &Journal, reset: client::ResetHead) -> String {
    use client::ResetHead as Reset;
    match reset {
        Reset::Kept(head) => {
            format!(
                "{journal}: its head is at {head}, and no store goes beyond: nothing to reset\n"
            )
        }
        Reset::Moved(head) => {
            format!("{journal}: its head was moved to {head}, where its store ends\n")
        }
        Reset::Raced(_) => {
            format!("{journal}: an append went on at the same time, so it needs no reset\n")
        }
    }
}
