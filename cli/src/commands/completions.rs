//! `courant completions`: what a shell needs to complete our command lines.

use crate::{Arguments, Error, output};
use clap::CommandFactory;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  courant completions bash > /etc/bash_completion.d/courant
  courant completions zsh > ~/.zfunc/_courant
  courant completions fish > ~/.config/fish/completions/courant.fish";

/// Print completions for a shell.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell that shall complete.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<(), Error> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "courant", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
