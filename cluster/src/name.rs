//! Names that are refused when a journal is created, whoever creates it.

use percent_encoding::percent_decode_str;
use protocol::created::RESERVED;
use protocol::{Journal, Pattern};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Why a journal may not be created under a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The template that the name falls under refuses it.
    #[error("journal {journal} matches the refused pattern {pattern}")]
    Pattern { journal: Journal, pattern: Pattern },
    /// A component is one of [`RESERVED`].
    #[error("journal {journal} has the reserved part {part}")]
    Reserved { journal: Journal, part: &'static str },
    /// A name would be file and directory at once, and each journal's listing would hold the
    /// fragments of both.
    #[error("journal {journal} nests with journal {other}")]
    Nested { journal: Journal, other: String },
}

/// The names in `existing` that `journal` is inside of, outermost first, then those inside of it.
pub fn nests<'a, V>(
    journal: &'a Journal,
    existing: &'a BTreeMap<String, V>,
) -> impl Iterator<Item = (&'a str, &'a V)> {
    let name = journal.as_str();
    let outer = name.match_indices('/').filter_map(|(at, _)| existing.get_key_value(&name[..at]));
    let below = format!("{name}/");
    let from = (Bound::Included(below.as_str()), Bound::Unbounded);
    let inner = existing.range::<str, _>(from);
    let inner = inner.take_while(move |(other, _)| other.starts_with(&below));
    outer.chain(inner).map(|(other, value)| (other.as_str(), value))
}

/// Refuses a name with a reserved component.
pub(crate) fn check_reserved(journal: &Journal) -> Result<(), Refused> {
    let is_part = |part: &&str| journal.as_str().split('/').any(|other| shown(other) == *part);
    match RESERVED.into_iter().find(is_part) {
        Some(part) => Err(Refused::Reserved { journal: journal.clone(), part }),
        None => Ok(()),
    }
}

/// A component of a name as a mount shows it. What a journal's name can't hold is percent-encoded,
/// so that the file `a~` is the journal `a%7E`.
pub(crate) fn shown(part: &str) -> Cow<'_, str> {
    percent_decode_str(part).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(name: &str) -> Journal {
        Journal::new(name).expect("a valid name")
    }

    #[test]
    fn nesting_is_seen_both_ways() {
        let existing: BTreeMap<String, ()> =
            ["logs/a", "logs/a-b/c", "logs/a/b", "logs/b"].map(|name| (name.into(), ())).into();
        // Case: name, the others of its path
        let cases: [(&str, &[&str]); 6] = [
            ("logs/a/b/c", &["logs/a", "logs/a/b"]),
            ("logs/a-b", &["logs/a-b/c"]),
            ("logs", &["logs/a", "logs/a-b/c", "logs/a/b", "logs/b"]),
            ("logs/ab", &[]),
            // A journal does not nest with itself.
            ("logs/b", &[]),
            ("logs/a", &["logs/a/b"]),
        ];
        for (name, others) in cases {
            let name = journal(name);
            let found: Vec<&str> = nests(&name, &existing).map(|(other, ())| other).collect();
            assert_eq!(found, others, "{name}");
        }
    }

    #[test]
    fn reserved_parts_are_whole_components() {
        // Case: name, whether it is refused
        for (name, is_refused) in [
            (".courant/x", true),
            ("a/.courant", true),
            ("a/.journal/b", true),
            ("a/%2Ejournal", true),
            ("a/.journals", false),
            ("a/x.journal", false),
        ] {
            assert_eq!(check_reserved(&journal(name)).is_err(), is_refused, "{name}");
        }
    }
}
