//! Names that a broker refuses unless it was told otherwise, known here so that a file of such a
//! name is refused at its creation and not at its first byte.

use percent_encoding::percent_decode_str;
use protocol::created::{RESERVED, TEMPORARY};
use protocol::{Journal, Pattern};

/// The rule that refuses a journal's name, if one does.
pub(crate) fn refused(journal: &Journal) -> Option<String> {
    let shown = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = journal.as_str().split('/').map(shown).collect();
    let reserved = RESERVED.into_iter().find(|part| parts.iter().any(|found| found == part));
    if let Some(part) = reserved {
        return Some(format!("{part} is reserved"));
    }
    let last = parts.last()?;
    let pattern = TEMPORARY.into_iter().find(|pattern| Pattern::new(*pattern).matches(last))?;
    Some(format!("{pattern} is a temporary file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_and_reserved_names_are_refused() {
        // Case: the journal, whether its name is refused
        let cases = [
            ("local/log", false),
            ("local/.app.log.Wqu5sW", true),
            ("local/sedaB3dEf", true),
            ("local/4913", true),
            ("local/.app.log.swp", true),
            ("local/app.log%7E", true),
            ("local/.%23app.log", true),
            ("local/new.tmp", true),
            ("local/.journal", true),
            ("local/.courant/x", true),
            // Case: the last part alone tells a temporary file.
            ("local/new.tmp/log", false),
            ("local/sediment", false),
            ("local/tmp", false),
        ];
        for (name, expected) in cases {
            let journal: Journal = name.parse().expect("valid");
            assert_eq!(refused(&journal).is_some(), expected, "{name}");
        }
    }
}
