//! The name of a journal, alone and with the suffix that some requests give it.

use crate::Invalid;
use crate::alphabet::check_path;
use std::sync::Arc;

/// The bounds of a journal's name, in bytes.
pub const JOURNAL_LEN: std::ops::RangeInclusive<usize> = 4..=512;

/// A journal's name, as gazette-spec 1.4 allows it: a clean path of 4..=512 bytes, without `;meta`.
///
/// Cheap to clone. A leading `..` component is refused as well, which Gazette lets through: a name
/// never leads out of a store or a tree.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Journal(Arc<str>);

impl Journal {
    pub fn new(name: &str) -> Result<Self, Invalid> {
        check_path(name, *JOURNAL_LEN.start(), *JOURNAL_LEN.end())?;
        Ok(Journal(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::str::FromStr for Journal {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        Journal::new(name)
    }
}

impl TryFrom<String> for Journal {
    type Error = Invalid;

    fn try_from(name: String) -> Result<Self, Invalid> {
        Journal::new(&name)
    }
}

impl AsRef<str> for Journal {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Journal {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A journal as Read, Append and ListFragments name it: `name` or `name;meta`.
///
/// The suffix means nothing to a broker. Consumers use it to hold several offsets of one journal;
/// answers speak of the journal without it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetaJournal {
    journal: Journal,
    meta: Option<Arc<str>>,
}

impl MetaJournal {
    /// Splits at the first `;`, and checks both sides.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        let Some((name, meta)) = text.split_once(';') else {
            return Ok(Journal::new(text)?.into());
        };
        let journal = Journal::new(name)?;
        check_path(meta, 1, *JOURNAL_LEN.end())?;
        Ok(MetaJournal { journal, meta: Some(meta.into()) })
    }

    /// The journal that is meant.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What follows the `;`, never empty.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_deref()
    }
}

impl From<Journal> for MetaJournal {
    fn from(journal: Journal) -> Self {
        MetaJournal { journal, meta: None }
    }
}

impl std::str::FromStr for MetaJournal {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        MetaJournal::new(text)
    }
}

impl std::fmt::Display for MetaJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.journal.fmt(f)?;
        self.meta.as_ref().map_or(Ok(()), |meta| write!(f, ";{meta}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_clean_paths_of_4_to_512_bytes() {
        let long = "x".repeat(513);
        let cases = [
            ("a/bc", None),
            ("a/b", Some("invalid length (3; expected 4 <= length <= 512)")),
            (long.as_str(), Some("invalid length (513; expected 4 <= length <= 512)")),
            ("no/such/", Some("must be a clean path (no/such/)")),
            ("/no/such", Some("cannot begin with '/' (/no/such)")),
            ("../../x/yz", Some("must not lead out of its directory (../../x/yz)")),
            ("foo/bar;meta", Some("not a valid path (foo/bar;meta)")),
        ];
        for (name, expected) in cases {
            let found = Journal::new(name).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{name}");
        }
        assert!(Journal::new(&long[1..]).is_ok());
    }

    #[test]
    fn a_meta_suffix_is_split_off_and_kept() {
        let named = MetaJournal::new("foo/bar;webhook/x").expect("valid");
        assert_eq!(named.journal().as_str(), "foo/bar");
        assert_eq!(named.meta(), Some("webhook/x"));
        assert_eq!(named.to_string(), "foo/bar;webhook/x");
        assert_eq!(MetaJournal::new("foo/bar").expect("valid").meta(), None);
        // Case: an empty suffix, an unclean one, two of them, a bad name before one.
        for bad in ["foo/bar;", "foo/bar;/x", "foo/bar;x;y", "foo/;x"] {
            assert!(MetaJournal::new(bad).is_err(), "{bad}");
        }
    }
}
