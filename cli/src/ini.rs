//! Configuration files as Gazette's programs read them (gazette-spec 6.7): sections, keys, values.

use crate::Error;
use std::path::Path;

/// One `key = value` under its section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Without its brackets; empty before the first.
    pub section: String,
    pub key: String,
    pub value: String,
}

/// The entries of a file, in its order.
pub fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let attempt = || format!("read {}", path.display());
    let text = std::fs::read_to_string(path).map_err(Error::io(attempt()))?;
    parse(&text).map_err(|why| Error::Specs(path.display().to_string(), why))
}

/// The entries of a text. `Err` names the line. Comments begin with `;` or `#`; a value may stand
/// in double quotes.
fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut section = String::new();
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let refused = |why: &str| format!("line {}: {why}", at + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').ok_or_else(|| refused("a section without ]"))?;
            section = name.trim().to_owned();
            continue;
        }
        let pair = line.split_once('=').or_else(|| line.split_once(':'));
        let (key, value) = pair.ok_or_else(|| refused("expected KEY = VALUE or [SECTION]"))?;
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let value = quoted.unwrap_or(value).to_owned();
        entries.push(Entry { section: section.clone(), key: key.trim().to_owned(), value });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_values_are_read() {
        let text = "\
; a comment
top = 1
[journals.Broker]
Address = http://h:1
# another
AuthToken = \" a=b \"
[ Logging ]
Level: debug
";
        let entry = |section: &str, key: &str, value: &str| Entry {
            section: section.into(),
            key: key.into(),
            value: value.into(),
        };
        let expected = [
            entry("", "top", "1"),
            entry("journals.Broker", "Address", "http://h:1"),
            entry("journals.Broker", "AuthToken", " a=b "),
            entry("Logging", "Level", "debug"),
        ];
        assert_eq!(parse(text).expect("valid"), expected);
        // Case: the text, the line that is refused
        for (text, line) in [("a = 1\n[open", "line 2"), ("just words", "line 1")] {
            assert!(parse(text).unwrap_err().contains(line), "{text}");
        }
    }
}
