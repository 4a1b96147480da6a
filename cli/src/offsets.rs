//! Offsets files: how far journals were read, as one JSON object `{"journal": offset}`.

use crate::Error;
use protocol::{Journal, Offset};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where journals are to be read on.
pub type Offsets = BTreeMap<Journal, Offset>;

/// The offsets of a file.
pub fn read(path: &Path) -> Result<Offsets, Error> {
    let origin = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Error::io(format!("read {origin}")))?;
    parse(&text).map_err(|why| Error::Specs(origin, why))
}

fn parse(text: &str) -> Result<Offsets, String> {
    let numbers: BTreeMap<String, i64> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let pair = |(name, number): (String, i64)| {
        let journal = Journal::new(&name).map_err(|invalid| format!("{name}: {invalid}"))?;
        let offset = Offset::new(number).map_err(|invalid| format!("{name}: {invalid}"))?;
        Ok((journal, offset))
    };
    numbers.into_iter().map(pair).collect()
}

/// Replaces a file by one with these offsets: whoever reads it sees the old ones or the new.
pub fn write(path: &Path, offsets: &Offsets) -> Result<(), Error> {
    let numbers: BTreeMap<&str, i64> =
        offsets.iter().map(|(journal, offset)| (journal.as_str(), offset.get())).collect();
    let text = serde_json::to_string_pretty(&numbers).expect("names and numbers are JSON") + "\n";
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let attempt = || Error::io(format!("write {}", path.display()));
    fs::write(&beside, text).map_err(attempt())?;
    fs::rename(&beside, path).map_err(attempt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read() {
        let found = parse(r#"{"local/log": 7, "a/b-c": 0}"#).expect("valid");
        let numbers: Vec<(&str, i64)> = found.iter().map(|(j, o)| (j.as_str(), o.get())).collect();
        assert_eq!(numbers, [("a/b-c", 0), ("local/log", 7)]);
        // Case: what is no file of offsets
        for text in ["", "[]", r#"{"local/log": -1}"#, r#"{"x": 1}"#, r#"{"local/log": "7"}"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
