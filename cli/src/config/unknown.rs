//! Entries of a file that no command understands: told once, since a word that is misspelt has no
//! effect, and refused never, as with Gazette (gazette-spec 6.7).

use super::{Asked, folded};
use crate::ini::Entry;
use crate::output;
use clap::{ArgMatches, Command};
use std::path::Path;

/// What the files of Gazette's programs say to what Courant does not have, without what stands
/// between words: its shards, its etcd, its peers.
const THEIRS: [&str; 16] = [
    "shards",
    "attachuuids",
    "consumer",
    "etcd",
    "debug",
    "diagnostics",
    "brokerzone",
    "brokerid",
    "brokerpeer",
    "brokerlimit",
    "brokerfileonly",
    "brokermaxreplication",
    "brokerwatchdelay",
    "brokerautosuspend",
    "journalsetcd",
    "printconfig",
];

/// Notes which entries of a file have no effect on any command, in one line.
pub(super) fn note(program: &Command, path: &Path, entries: &[Entry]) {
    let unknown: Vec<String> = unknown(program, entries).map(named).collect();
    if !unknown.is_empty() {
        let (path, entries) = (path.display(), unknown.join(", "));
        output::note(&format!("{path}: no command has an option of that name: {entries}"));
    }
}

fn unknown<'e>(program: &Command, entries: &'e [Entry]) -> impl Iterator<Item = &'e Entry> {
    let mut commands = Vec::new();
    gather(program, &[], &mut commands);
    entries.iter().filter(move |entry| {
        let is_known = commands.iter().any(|command| command.knows(entry));
        !is_known && !is_theirs(entry)
    })
}

fn is_theirs(entry: &Entry) -> bool {
    let whole = folded(&entry.section) + &folded(&entry.key);
    THEIRS.iter().any(|name| whole.starts_with(name))
}

/// All commands that do something, as they would be asked without any argument.
fn gather(command: &Command, path: &[String], commands: &mut Vec<Asked<'static>>) {
    for below in command.get_subcommands() {
        let mut below = below.clone();
        // An option of a command that holds for those below it too.
        let outer: Vec<_> = command.get_arguments().filter(|it| it.is_global_set()).collect();
        for option in outer {
            let is_there = below.get_arguments().any(|own| own.get_id() == option.get_id());
            if !is_there {
                below = below.arg(option.clone());
            }
        }
        let path = [path, &[below.get_name().to_owned()]].concat();
        gather(&below, &path, commands);
        let (given, matches) = (&[][..], ArgMatches::default());
        commands.push(Asked { given, command: below, matches, path });
    }
}

fn named(entry: &Entry) -> String {
    match entry.section.as_str() {
        "" => entry.key.clone(),
        section => format!("[{section}] {}", entry.key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn what_no_command_understands_is_told() {
        // Case: the section, the key, whether some command has the option, or Gazette has it
        let cases = [
            ("journals.Broker", "Address", true),
            ("Broker", "address", true),
            ("journals.Broker", "Adress", false),
            ("journals.list", "Selector", true),
            ("journals.lst", "Selector", false),
            ("journals.read", "block", true),
            ("Logging", "Level", true),
            ("", "broker.address", true),
            ("", "addres", false),
            ("Broker", "AuthKeys", true),
            ("Broker", "FileRoot", true),
            ("Broker", "Limit", true),
            ("Etcd", "Prefix", true),
            ("shards.Consumer", "Address", true),
            ("Colors", "log", false),
        ];
        for (section, key, expected) in cases {
            let entry = Entry { section: section.into(), key: key.into(), value: "x".into() };
            let command = crate::Arguments::command();
            let found = unknown(&command, std::slice::from_ref(&entry)).next().is_none();
            assert_eq!(found, expected, "[{section}] {key}");
        }
    }
}
