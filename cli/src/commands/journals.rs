//! `courant journals`: what operators ask of a broker. Flags are named as in gazctl.

mod append;
mod apply;
mod delete;
mod fragments;
mod list;
mod read;

use crate::Error;
use client::Remote;
use std::sync::Arc;

/// List, change, append to and read journals of a broker.
///
/// Flags are those of `gazctl journals`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Journals {
    /// The broker's URL.
    #[arg(long = "broker.address", value_name = "URL", global = true)]
    #[arg(env = "BROKER_ADDRESS", default_value = "http://localhost:8080", value_parser = broker)]
    broker_address: String,

    #[command(subcommand)]
    command: Command,
}

/// A broker's URL, as far as it can be checked without the network.
pub fn broker(url: &str) -> Result<String, String> {
    Remote::check_url(url).map_err(|error| error.to_string())?;
    Ok(url.to_owned())
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    List(list::List),
    Apply(apply::Apply),
    Append(append::Append),
    Read(read::Read),
    Fragments(fragments::Fragments),
    Delete(delete::Delete),
}

impl Journals {
    pub async fn run(self) -> Result<(), Error> {
        let remote = Arc::new(Remote::new(&self.broker_address)?);
        match self.command {
            Command::List(list) => list.run(&remote).await,
            Command::Apply(apply) => apply.run(&remote).await,
            Command::Append(append) => append.run(&remote).await,
            Command::Read(read) => read.run(&remote).await,
            Command::Fragments(fragments) => fragments.run(&remote).await,
            Command::Delete(delete) => delete.run(&remote).await,
        }
    }
}
