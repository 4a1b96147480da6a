//! The program `courant`: brokers, mounts, and what operators ask of journals.

mod commands;
mod config;
mod connection;
mod denied;
mod error;
mod ini;
mod input;
mod logging;
mod offsets;
mod output;
mod progress;
mod proto;
mod random;
mod seams;
mod selection;
mod signals;
mod size;
mod supervisor;
mod table;
mod time;

use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How long work that nobody waits for may keep the program from ending.
const LEFTOVERS_MAX: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  courant up                                  a broker in ./courant-data, its journals in ./journals
  echo hello >> journals/log                  append, in another shell
  tail -c +1 -f journals/log                  read, and follow
  courant journals list                       what journals there are
  courant journals read -b local/log          read the file `log` without the mount, and follow
  courant status                              what the broker holds and waits for
  courant umount journals                     take a mount away

Options may stand in courant.ini, gazctl.ini or (serve, up) gazette.ini: in this directory, in
~/.config/courant or ~/.config/gazette. A flag goes before them, they before the environment.

Exit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage.";

/// Journals as files: append-only logs that `tail -f`, `>>`, grep and every other tool can use.
#[derive(Parser, Debug)]
#[command(name = "courant", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct Arguments {
    /// What is logged to standard error: off, error, warn, info, debug, trace, or a filter such
    /// as `broker=debug` [default: info for daemons, else warn].
    #[arg(long, global = true, value_name = "LEVEL", env = "COURANT_LOG", alias = "log.level")]
    #[arg(help_heading = "Logging")]
    #[arg(value_parser = logging::filter)]
    log_level: Option<String>,

    /// How the log is written [default: text, in color on a terminal].
    #[arg(long, global = true, value_enum, value_name = "FORMAT", alias = "log.format")]
    #[arg(help_heading = "Logging")]
    log_format: Option<logging::Format>,

    /// Where the log goes: stderr, syslog, or the path of a file that is added to.
    #[arg(long, global = true, value_name = "TARGET", default_value = "stderr")]
    #[arg(help_heading = "Logging", hide_short_help = true)]
    log_to: logging::Target,

    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    if let Some(code) = commands::mount_helper::called() {
        return code;
    }
    let command = config::without_empty_variables(Arguments::command());
    let given: Vec<OsString> = std::env::args_os().collect();
    if let Err(usage) = config::check(&command, &given) {
        usage.exit();
    }
    match config::arguments(&command, given).and_then(|arguments| run(command, &arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has had enough of it, as `head` does.
        Err(Error::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when this fails too.
            let _ = writeln!(io::stderr(), "courant: {}", error::line(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: clap::Command, arguments: &[OsString]) -> Result<(), Error> {
    let parsed = Arguments::from_arg_matches(&command.get_matches_from(arguments));
    let arguments = parsed.unwrap_or_else(|usage| usage.exit());
    let is_daemon = arguments.command.is_daemon();
    let (level, format) = (arguments.log_level.as_deref(), arguments.log_format);
    logging::start(level, format, &arguments.log_to, is_daemon)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Error::io("start the runtime"))?;
    let done = runtime.block_on(arguments.command.run());
    runtime.shutdown_timeout(LEFTOVERS_MAX);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn usage_is_told_from_failure() {
        // Case: arguments, and whether they are understood
        let cases: [(&[&str], bool); 40] = [
            (&["up"], true),
            (&["up", "--data", "d", "--mount", "m", "--listen", "127.0.0.1:0"], true),
            (&["up", "--durability", "memory", "--local-budget", "1G", "--min-free=64MiB"], true),
            (&["up", "--durability", "sometimes"], false),
            (&["up", "--listen", "no address"], false),
            (&["up", "--local-budget", "1Q"], false),
            (&["up", "--no-such-option"], false),
            (&["serve", "--data", "d", "--listen", ":0"], true),
            (&["serve", "--listen", ":0"], false),
            (&["mount", "--broker", "http://h:1", "m"], true),
            (&["mount"], false),
            (&["mount", "--broker", "h:1", "m"], false),
            (&["journals", "list", "--broker.address", "ftp://h:1"], false),
            (&["umount", "m"], true),
            (&["inspect", "d"], true),
            (&["backup", "d", "to", "--broker", "http://h:1"], true),
            (&["backup", "d"], false),
            (&["repair", "--dry-run", "d"], true),
            (&["journals", "list", "-l", "name:prefix=local/", "-o", "json", "-L", "tag"], true),
            (&["journals", "list", "-l", "a=b=,!"], false),
            (&["journals", "append", "-l", "name=local/x", "--broker.address", "http://h:1"], true),
            (&["journals", "append"], false),
            (&["journals", "append", "local/x", "-l", "name=local/x"], false),
            (&["journals", "read", "local/x", "-b", "--offset", "5"], true),
            (&["journals", "read", "local/x", "--tail", "--offset", "5"], false),
            (&["journals", "delete", "local/x", "--purge", "--dry-run"], true),
            (&["journals", "read", "local/x", "--since", "10m"], true),
            (&["journals", "read", "local/x", "--since", "10m", "--from", "5"], false),
            (&["journals", "append", "local/x", "--lines"], true),
            (&["journals", "append", "local/x", "--lines", "-f", "fixed"], false),
            (&["journals", "list", "--broker", "unix:///run/c.sock", "--zone", "a"], true),
            (&["journals", "list", "--broker.cert-file", "f"], false),
            (&["journals", "list", "--watch", "-o", "proto", "--log.format", "json"], true),
            (&["journals", "store-health", "file:///"], true),
            (&["journals", "fragments"], true),
            (&["journals", "prune"], false),
            (&["journals", "templates", "put", "--specs", "t.yaml"], true),
            (&["status", "--broker", "http://h:1", "-o", "json"], true),
            (&["up", "--log-level", "loud"], false),
            (&["no-such-command"], false),
        ];
        for (arguments, expected) in cases {
            let line = ["courant"].iter().chain(arguments);
            let parsed = Arguments::try_parse_from(line);
            let kind = parsed.as_ref().err().map(clap::Error::exit_code);
            assert_eq!(parsed.is_ok(), expected, "{arguments:?}: {kind:?}");
            assert_eq!(kind, (!expected).then_some(2), "{arguments:?}");
        }
    }
}
