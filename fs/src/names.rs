//! File names and the names of journals: one component at a time, both ways.
//!
//! A byte that a journal's name can't have, and `%` itself, is written as `%XX` in the journal's
//! name. Each file name has exactly one component, and a component that is not the one of any file
//! name (`a%41`, which no file name gives) is not shown.

use crate::limits::NAME_MAX;
use crate::{Error, attr};
use percent_encoding::{percent_decode_str, percent_encode_byte};

/// The directory of views and state, reachable by name and listed nowhere.
pub const CONTROL: &str = ".courant";

/// The name under which a journal shows that others nest in: `a/b` is `a/b/.journal`.
pub const OUTER: &str = ".journal";

/// The directory that git keeps a repository in. It writes there by lock files that it renames,
/// which no journal does: refused at its first step it leaves nothing behind.
pub const REPOSITORY: &str = ".git";

/// The view in which a read at the head waits.
pub const FOLLOW: &str = "follow";

/// The view in which only whole lines are committed.
pub const LINES: &str = "lines";

/// The view in which all that is written between open and close is one append.
pub const WHOLE: &str = "whole";

/// The files that stored fragments are, in a directory for each journal.
pub const FRAGMENTS: &str = "fragments";

/// The files that specs are.
pub const SPECS: &str = "specs";

/// What the name of a spec's file ends in, behind that of its journal.
pub const YAML: &str = ".yaml";

/// The file that tells the state of the mount.
pub const STATUS: &str = "status";

/// The component of a journal's name that a file name stands for.
pub fn encode(name: &[u8]) -> Result<String, Error> {
    if name.len() > NAME_MAX {
        return Err(Error::NameTooLong);
    }
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') {
        return Err(Error::Invalid("no file name"));
    }
    let mut component = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_plain(char) {
                component.push(char);
            } else {
                component.extend(char.encode_utf8(&mut [0; 4]).bytes().map(percent_encode_byte));
            }
        }
        component.extend(chunk.invalid().iter().copied().map(percent_encode_byte));
    }
    Ok(component)
}

/// The file name of a component, or `None` where no file name stands for it.
pub fn decode(component: &str) -> Option<Vec<u8>> {
    let name: Vec<u8> = percent_decode_str(component).collect();
    // A NUL can't be in a file name; the rest is what `encode` itself refuses.
    if name.contains(&0) {
        return None;
    }
    (encode(&name).ok()? == component).then_some(name)
}

/// Whether a journal's name may have the character as it is: the path alphabet of gazette-spec 1.4
/// without the two that have a meaning here.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "-_+.=".contains(char)
}

/// `directory` and the component below it; the root is empty.
pub(crate) fn join(directory: &str, component: &str) -> String {
    if directory.is_empty() { component.to_owned() } else { format!("{directory}/{component}") }
}

/// What the names of all journals in a directory begin with, after the mount's prefix.
pub(crate) fn below(directory: &str) -> String {
    if directory.is_empty() { String::new() } else { format!("{directory}/") }
}

/// The first component of a path, and whether more follow it.
pub(crate) fn first(path: &str) -> (&str, bool) {
    match path.split_once('/') {
        Some((component, _)) => (component, true),
        None => (path, false),
    }
}

/// Whether a full name is that of a file right in the directory whose names begin with `full`.
pub(crate) fn is_right_in(journal: &str, full: &str) -> bool {
    journal.strip_prefix(full).is_some_and(|rest| !rest.is_empty() && !first(rest).1)
}

/// The `st_ino` of a file or directory of `.courant`. The leading `/` keeps it apart from every
/// journal's name.
pub(crate) fn control_inode(name: &str) -> u64 {
    attr::directory_inode(&format!("/{CONTROL}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_decoded() {
        // Case: (file name, component)
        let cases: &[(&[u8], &str)] = &[
            (b"app.log", "app.log"),
            (b"a b", "a%20b"),
            (b"100%", "100%25"),
            (b"12:30", "12%3A30"),
            (b"x@y", "x%40y"),
            ("\u{e9}t\u{e9}".as_bytes(), "\u{e9}t\u{e9}"),
            ("\u{2713}".as_bytes(), "%E2%9C%93"),
            (b"\xff\xfe", "%FF%FE"),
            (b"..x", "..x"),
            (b"%41", "%2541"),
        ];
        for (name, component) in cases {
            assert_eq!(encode(name).unwrap(), *component);
            assert_eq!(decode(component).unwrap(), *name);
        }
    }

    #[test]
    fn components_of_no_file_name_are_not_shown() {
        // Case: needless, lower case, cut, NUL, slash, dots
        for component in ["a%41", "a%2a", "a%2", "%", "%00", "a%2Fb", "%2E%2E", ".."] {
            assert_eq!(decode(component), None, "{component}");
        }
    }

    #[test]
    fn bad_names_are_refused() {
        // Case: (file name, errno)
        use rustix::io::Errno;
        let long = [b'x'; 256];
        for (name, errno) in
            [(&b""[..], Errno::INVAL), (b".", Errno::INVAL), (&long, Errno::NAMETOOLONG)]
        {
            assert_eq!(encode(name).unwrap_err().errno(), errno);
        }
        assert!(encode(&long[..255]).is_ok());
    }
}
