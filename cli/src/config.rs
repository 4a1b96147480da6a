//! Where values come from: a flag, else a configuration file, else the environment, else a default
//! (gazette-spec 6.7).
//!
//! An entry of a file that names an option of the command becomes a flag, unless the flag is there:
//! so it is checked as one. Entries that name nothing of this command are passed over, since one
//! file serves many commands and other programs.

mod clash;
mod unknown;

pub use clash::check;

use crate::Error;
use crate::ini::{self, Entry};
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The file of Courant's own, before those of Gazette's programs.
const OWN: &str = "courant.ini";

/// The command whose sections gazctl's files have.
const JOURNALS: &str = "journals";

/// Places below which a configuration directory may lie.
const HOMES: [&str; 2] = ["HOME", "UserProfile"];
const DIRECTORIES: [&str; 2] = [".config/courant", ".config/gazette"];

/// The same command line, where a variable that is set to nothing is one that is not set.
pub fn without_empty_variables(command: Command) -> Command {
    let is_empty = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command =
        command.mut_args(|arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

/// The arguments that are given, and those that a configuration file adds.
pub fn arguments(command: &Command, given: Vec<OsString>) -> Result<Vec<OsString>, Error> {
    let Some(asked) = Asked::of(command, &given) else { return Ok(given) };
    match file(asked.theirs()) {
        Some(path) => {
            let entries = ini::read(&path)?;
            unknown::note(command, &path, &entries);
            Ok(asked.with(asked.added(&entries)))
        }
        None => Ok(given),
    }
}

/// The first file there is.
fn file(theirs: &str) -> Option<PathBuf> {
    let homes = HOMES.iter().filter_map(std::env::var_os).filter(|home| !home.is_empty());
    let below =
        homes.flat_map(|home| DIRECTORIES.map(|directory| Path::new(&home).join(directory)));
    let directories = std::iter::once(PathBuf::from(".")).chain(below);
    let files = directories.flat_map(|directory| [OWN, theirs].map(|name| directory.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// A command line, as far as it says which command is meant and what is given.
struct Asked<'a> {
    given: &'a [OsString],
    /// The innermost command, with the options of those around it that hold for it too.
    command: Command,
    matches: ArgMatches,
    /// The names of the commands below the program.
    path: Vec<String>,
}

impl<'a> Asked<'a> {
    /// `None` where no command is meant: then there is help to show, or something to complain of.
    fn of(command: &Command, given: &'a [OsString]) -> Option<Self> {
        let mut command = command.clone().ignore_errors(true);
        let mut matches = command.try_get_matches_from_mut(given).ok()?;
        let mut path = Vec::new();
        while let Some((name, below)) = matches.remove_subcommand() {
            // Looking for matches has handed the options of outer commands on.
            command = command.find_subcommand(&name)?.clone();
            matches = below;
            path.push(name);
        }
        (!path.is_empty()).then_some(Asked { given, command, matches, path })
    }

    /// The file of the Gazette program whose place this command takes.
    fn theirs(&self) -> &'static str {
        match self.path.first().map(String::as_str) {
            Some("serve" | "up") => "gazette.ini",
            _ => "gazctl.ini",
        }
    }

    /// The flags that entries stand for.
    fn added(&self, entries: &[Entry]) -> Vec<OsString> {
        let mut added = Vec::new();
        for option in self.command.get_arguments() {
            let id = option.get_id().as_str();
            let is_given = self.matches.try_contains_id(id).unwrap_or(false)
                && self.matches.value_source(id) == Some(ValueSource::CommandLine);
            if !is_given {
                added.extend(entries.iter().filter_map(|entry| self.flag(option, entry)));
            }
        }
        added
    }

    /// Whether an entry names any option of the command.
    fn knows(&self, entry: &Entry) -> bool {
        self.command.get_arguments().any(|option| self.names(option, entry))
    }

    /// Whether an entry names the option.
    fn names(&self, option: &Arg, entry: &Entry) -> bool {
        let aliases = option.get_all_aliases().unwrap_or_default();
        option.get_long().into_iter().chain(aliases).any(|name| self.is_named(name, entry))
    }

    /// The flag of an option, if the entry names that.
    fn flag(&self, option: &Arg, entry: &Entry) -> Option<OsString> {
        let long = option.get_long()?;
        if !self.names(option, entry) {
            return None;
        }
        match option.get_action() {
            ArgAction::SetTrue if entry.value == "true" => Some(format!("--{long}").into()),
            ArgAction::Set | ArgAction::Append => Some(format!("--{long}={}", entry.value).into()),
            _ => None,
        }
    }

    /// Whether an entry names the option of that name. Sections are named by commands and the first
    /// part of names; in keys, `.`, `-`, `_` and case say nothing, as in names of Go's fields.
    fn is_named(&self, option: &str, entry: &Entry) -> bool {
        let section = folded(self.below_path(&entry.section));
        let section = match section.as_str() {
            "applicationoptions" => String::new(),
            // The group of `log.level` and `log.format`.
            "logging" => "log".to_owned(),
            _ => section,
        };
        let (key, option) = (folded(&entry.key), folded(option));
        // A whole name is understood in the section of its group too.
        section.clone() + &key == option || (option.starts_with(&section) && key == option)
    }

    /// A section's name without the names of commands in front. What a file says of the broker of
    /// `journals` is about the same broker in other commands.
    fn below_path<'s>(&self, section: &'s str) -> &'s str {
        let mut rest = section.trim();
        let is_journals = self.path[0] == JOURNALS;
        let path = (!is_journals).then_some(JOURNALS).into_iter();
        for name in path.chain(self.path.iter().map(String::as_str)) {
            let after = rest.get(..name.len()).filter(|front| front.eq_ignore_ascii_case(name));
            match after.map(|_| &rest[name.len()..]) {
                Some("") => return "",
                Some(after) if after.starts_with(['.', ' ']) => rest = &after[1..],
                _ => {}
            }
        }
        rest
    }

    /// The arguments with flags put behind the name of the command that they belong to.
    fn with(&self, added: Vec<OsString>) -> Vec<OsString> {
        let mut at = 0;
        for name in &self.path {
            let is_name = |argument: &OsString| argument == OsStr::new(name);
            let found = self.given[at + 1..].iter().position(is_name);
            at += 1 + found.expect("it was found by its name");
        }
        let mut all = self.given.to_vec();
        all.splice(at + 1..at + 1, added);
        all
    }
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '.' | '-' | '_' | ' ')).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The flags that one entry adds to a command line.
    fn added(line: &[&str], section: &str, key: &str, value: &str) -> Vec<OsString> {
        let given: Vec<OsString> = line.iter().map(OsString::from).collect();
        let command = crate::Arguments::command();
        let asked = Asked::of(&command, &given).expect("it names a command");
        let entry = Entry { section: section.into(), key: key.into(), value: value.into() };
        let added = asked.added(&[entry]);
        let whole = asked.with(added.clone());
        assert_eq!(whole.len(), given.len() + added.len());
        added
    }

    #[test]
    fn entries_become_flags_of_the_command_they_name() {
        let list = ["courant", "journals", "list"];
        let address = "--broker.address=http://h:1";
        // Case: the section, the key, the value, the flag
        let cases = [
            ("journals.Broker", "Address", "http://h:1", Some(address)),
            ("journals.Broker", "address", "http://h:1", Some(address)),
            ("Broker", "Address", "http://h:1", Some(address)),
            ("journals.Broker", "broker.address", "http://h:1", Some(address)),
            ("", "broker.address", "http://h:1", Some(address)),
            ("journals.Broker", "AuthToken", "t", Some("--broker.auth-token=t")),
            ("journals.Broker", "TrustedCAFile", "f", Some("--broker.trusted-ca-file=f")),
            ("journals.Broker.Cache", "Size", "5", Some("--broker.cache.size=5")),
            ("journals.Logging", "Level", "debug", Some("--log-level=debug")),
            ("journals.list", "Selector", "a1=b", Some("--selector=a1=b")),
            ("journals.list", "primary", "true", Some("--primary")),
            ("journals.list", "primary", "false", None),
            ("journals.read", "Selector", "a1=b", None),
            ("shards.Broker", "Address", "http://h:1", None),
            ("journals.Broker", "Nonsense", "x", None),
        ];
        for (section, key, value, expected) in cases {
            let found = added(&list, section, key, value);
            let expected: Vec<OsString> = expected.into_iter().map(OsString::from).collect();
            assert_eq!(found, expected, "[{section}] {key} = {value}");
        }
    }

    #[test]
    fn what_is_given_wins() {
        let given = ["courant", "journals", "--broker=http://g:1", "list", "-l", "a1=b"];
        assert!(added(&given, "journals.Broker", "Address", "http://h:1").is_empty());
        assert!(added(&given, "journals.list", "selector", "a2=c").is_empty());
        assert!(!added(&given, "journals.Broker", "AuthToken", "t").is_empty());
        // Case: what the command line lacks may be in the file.
        let bare = ["courant", "journals", "read"];
        assert!(!added(&bare, "journals.read", "Selector", "a1=b").is_empty());
    }

    #[test]
    fn the_broker_of_journals_is_that_of_other_commands() {
        // Case: the command line, the flag
        let status = ["courant", "status"];
        let serve = ["courant", "serve", "--data", "d", "--listen", ":0"];
        let address = [OsString::from("--broker.address=http://h:1")];
        assert_eq!(added(&status, "journals.Broker", "Address", "http://h:1"), address);
        assert_eq!(added(&status, "Broker", "Address", "http://h:1"), address);
        assert!(added(&serve, "journals.Broker", "Address", "http://h:1").is_empty());
        let keys = added(&serve, "Broker", "AuthKeys", "AA==");
        assert_eq!(keys, ["--auth-keys=AA=="]);
    }

    #[test]
    fn flags_come_behind_their_command() {
        let given = ["courant", "journals", "read", "--", "local/x"].map(OsString::from);
        let command = crate::Arguments::command();
        let asked = Asked::of(&command, &given).expect("it names a command");
        let whole = asked.with(vec!["--block".into()]);
        assert_eq!(whole[3], "--block");
        assert!(Asked::of(&command, &["courant".into()]).is_none());
    }
}
