//! `courant journals`: what operators ask of a broker. Flags are named as in gazctl.

mod append;
mod apply;
mod delete;
mod edit;
mod fragments;
mod health;
mod list;
mod prune;
mod read;
mod reset_head;
mod suspend;
mod templates;

use crate::connection::Connection;
use crate::{Error, seams};
use std::sync::Arc;

/// List, change, append to and read journals of a broker.
///
/// Flags are those of `gazctl journals`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Journals {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    connection: Connection,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    List(list::List),
    Apply(apply::Apply),
    Edit(edit::Edit),
    Append(append::Append),
    Read(read::Read),
    Fragments(fragments::Fragments),
    Prune(prune::Prune),
    ResetHead(reset_head::ResetHead),
    Suspend(suspend::Suspend),
    StoreHealth(health::StoreHealth),
    Delete(delete::Delete),
    Templates(templates::Templates),
}

impl Journals {
    pub async fn run(self) -> Result<(), Error> {
        if let Command::Apply(apply) = &self.command
            && apply.is_dry_run()
        {
            // A broker is neither asked nor needed.
            return apply.describe();
        }
        let mut remote = self.connection.remote()?;
        if let Command::Read(read::Read { file_root: Some(root), .. }) = &self.command {
            remote = remote.with_files(seams::file_root(root)?);
        }
        let remote = Arc::new(remote);
        match self.command {
            Command::List(list) => list.run(&remote).await,
            Command::Apply(apply) => apply.run(&remote).await,
            Command::Edit(edit) => edit.run(&remote).await,
            Command::Append(append) => append.run(&remote).await,
            Command::Read(read) => read.run(&remote).await,
            Command::Fragments(fragments) => fragments.run(&remote).await,
            Command::Prune(prune) => prune.run(&remote).await,
            Command::ResetHead(reset) => reset.run(&remote).await,
            Command::Suspend(suspend) => suspend.run(&remote).await,
            Command::StoreHealth(health) => health.run(&remote).await,
            Command::Delete(delete) => delete.run(&remote).await,
            Command::Templates(templates) => templates.run(&remote).await,
        }
    }
}
