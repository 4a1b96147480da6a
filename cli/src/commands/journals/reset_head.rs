//! `courant journals reset-head`: lets appends go on at the end of what stores hold.

use crate::selection::Selection;
use crate::{Error, output};
use client::Remote;
use futures::stream::{self, StreamExt};
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  courant journals reset-head local/log
  courant journals reset-head -l 'name:prefix=local/app/'

Needed where appends are refused with INDEX_HAS_GREATER_OFFSET: the store of the journal has bytes
beyond what its brokers know, because another broker wrote there or this one lost its disk. Nothing
is lost by it: the next append goes behind the last stored byte.";

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
        while let Some((journal, reset)) = resets.next().await {
            output::print(&match reset? {
                client::ResetHead::At(head) => format!("{journal}: its head is at {head}\n"),
                client::ResetHead::Raced(_) => {
                    format!("{journal}: an append went on at the same time, so it needs no reset\n")
                }
            })?;
        }
        Ok(())
    }
}
