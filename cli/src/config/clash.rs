//! Flags that contradict each other only where somebody gave both: a broker's address that is in
//! the environment or in a file is that of other commands, too.

use super::Asked;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Command, Error};
use std::ffi::OsString;

/// A command, and two of its flags that ask for different sources, by their ids.
const CLASHES: [(&str, &str, &str); 2] =
    [("mount", "url", "address"), ("fsck", "store", "address")];

/// Refuses a command line with flags that contradict each other.
pub fn check(command: &Command, given: &[OsString]) -> Result<(), Error> {
    let Some(asked) = Asked::of(command, given) else { return Ok(()) };
    let is_given = |id: &str| asked.matches.value_source(id) == Some(ValueSource::CommandLine);
    for (name, one, other) in CLASHES {
        if asked.path[0] == name && is_given(one) && is_given(other) {
            let long = |id: &str| {
                let mut options = asked.command.get_arguments();
                let option = options.find(|option| option.get_id() == id);
                option.and_then(|option| option.get_long()).unwrap_or_default().to_owned()
            };
            let text = format!(
                "--{} can't be used with --{}: no broker is asked then",
                long(one),
                long(other)
            );
            return Err(asked.command.clone().error(ErrorKind::ArgumentConflict, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_store_and_a_broker_are_two_sources() {
        // Case: the command line, whether it is refused
        let cases: [(&[&str], bool); 6] = [
            (&["mount", "--bucket", "file:///", "--broker", "http://h:1", "m"], true),
            (&["mount", "--bucket=file:///", "m"], false),
            (&["mount", "--broker", "http://h:1", "m"], false),
            (&["fsck", "--store", "file:///", "--broker.address=http://h:1"], true),
            (&["fsck", "--store", "file:///"], false),
            (&["journals", "list", "--broker", "http://h:1"], false),
        ];
        for (line, expected) in cases {
            let given: Vec<OsString> = ["courant"].iter().chain(line).map(OsString::from).collect();
            let refused = check(&crate::Arguments::command(), &given).err();
            assert_eq!(refused.as_ref().map(Error::exit_code), expected.then_some(2), "{line:?}");
            let text = refused.map(|refused| refused.to_string()).unwrap_or_default();
            assert_eq!(text.contains("--broker.address"), expected, "{text}");
        }
    }
}
