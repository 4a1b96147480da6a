//! The log, on standard error.

use crate::Error;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// What daemons log unless told otherwise, and what other commands do, whose output is theirs.
const OF_DAEMONS: &str = "info";
const OF_COMMANDS: &str = "warn";

/// Starts the log of this process. Libraries are kept at warnings unless a filter names them.
pub fn start(filter: Option<&str>, is_daemon: bool) -> Result<(), Error> {
    let default = if is_daemon { OF_DAEMONS } else { OF_COMMANDS };
    let text = filter.unwrap_or(default);
    let filter = EnvFilter::builder().parse(quiet_libraries(text));
    let filter = filter.map_err(|_| Error::LogLevel(text.to_owned()))?;
    let logging = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    // Only a second start in one process could fail, and then the first log goes on.
    let _ = logging.try_init();
    Ok(())
}

/// A bare level means ours: below it the HTTP/2 library would write a line for each frame.
fn quiet_libraries(text: &str) -> String {
    let is_level = text.chars().all(|c| c.is_ascii_alphabetic()) && text != "off";
    let is_chatty = matches!(text.to_ascii_lowercase().as_str(), "debug" | "trace");
    match is_level && is_chatty {
        true => {
            format!("{text},h2=warn,hyper=warn,hyper_util=warn,tower=warn,tonic=warn,fuser=info")
        }
        false => text.to_owned(),
    }
}
