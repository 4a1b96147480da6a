//! The log: what is in it, how it looks, where it goes.

mod target;

pub use target::Target;

use crate::Error;
use tracing_subscriber::EnvFilter;

/// What daemons log unless told otherwise, and what other commands do, whose output is theirs.
const OF_DAEMONS: &str = "info";
const OF_COMMANDS: &str = "warn";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A level of Gazette's programs, where it ends them as well.
const FATAL: &str = "fatal";

/// A level, or a filter of the log: `broker=debug,info`. Empty text says nothing.
pub fn filter(text: &str) -> Result<String, String> {
    let refused =
        || format!("expected one of {}, or a filter such as broker=debug", LEVELS.join(", "));
    let text = text.trim();
    let text = if text.eq_ignore_ascii_case(FATAL) { "error" } else { text };
    // The filter would take a bare word for the name of a library.
    let is_word = !text.contains(['=', ',', '[']);
    if is_word && !text.is_empty() && !LEVELS.contains(&text.to_ascii_lowercase().as_str()) {
        return Err(refused());
    }
    EnvFilter::builder().parse(text).map_err(|_| refused())?;
    Ok(text.to_owned())
}

/// How lines of the log look.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// For people, in color wherever it goes.
    Color,
}

/// Starts the log of this process, by a filter that [`filter`] let pass.
pub fn start(
    filter: Option<&str>,
    format: Option<Format>,
    target: &Target,
    is_daemon: bool,
) -> Result<(), Error> {
    let default = if is_daemon { OF_DAEMONS } else { OF_COMMANDS };
    let text = filter.filter(|text| !text.is_empty()).unwrap_or(default);
    let filter = EnvFilter::builder().parse_lossy(quiet_libraries(text));
    let logging = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(target.open()?)
        .with_target(false);
    // Only a second start in one process could fail, and then the first log goes on.
    let _ = match format {
        Some(Format::Json) => logging.json().flatten_event(true).try_init(),
        Some(Format::Color) => logging.with_ansi(true).try_init(),
        Some(Format::Text) => logging.with_ansi(false).try_init(),
        None => logging.with_ansi(target.is_terminal()).try_init(),
    };
    Ok(())
}

/// A bare level means ours: below it the HTTP/2 library would write a line for each frame.
fn quiet_libraries(text: &str) -> String {
    match text.to_ascii_lowercase().as_str() {
        level @ ("debug" | "trace") => {
            format!("{level},h2=warn,hyper=warn,hyper_util=warn,tower=warn,tonic=warn,fuser=info")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_levels_or_name_what_they_are_about() {
        // Case: the text, whether it is a filter
        let cases = [
            ("", true),
            ("info", true),
            ("DEBUG", true),
            ("off", true),
            ("fatal", true),
            ("broker=debug", true),
            ("info,index=trace", true),
            ("loud", false),
            ("broker=loud", false),
        ];
        for (text, expected) in cases {
            assert_eq!(filter(text).is_ok(), expected, "{text}");
        }
        assert!(filter(&quiet_libraries("Debug")).is_ok());
    }
}
