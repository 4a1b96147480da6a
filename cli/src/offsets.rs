//! Offsets files: how far journals were read, as one JSON object `{"journal": offset}`.

use crate::{Error, output};
use protocol::{Journal, Offset};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Where journals are to be read on.
pub type Offsets = BTreeMap<Journal, Offset>;

/// The offsets of a file.
pub fn read(path: &Path) -> Result<Offsets, Error> {
    let origin = path.display().to_string();
    let text = fs::read_to_string(path).map_err(Error::io(format!("read {origin}")))?;
    let no_offsets = |why| format!("not as {{\"journal\": offset}}: {why}");
    parse(&text).map_err(|why| Error::Specs(origin, no_offsets(why)))
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

/// Replaces a file by one with these offsets: whoever reads it sees the old ones or the new. A link
/// is followed. `-` is standard output, and other devices and pipes are written to.
pub fn write(path: &Path, offsets: &Offsets) -> Result<(), Error> {
    let numbers: BTreeMap<&str, i64> =
        offsets.iter().map(|(journal, offset)| (journal.as_str(), offset.get())).collect();
    let text = serde_json::to_string_pretty(&numbers).expect("names and numbers are JSON") + "\n";
    if [output::STANDARD, "/dev/stdout"].map(Path::new).contains(&path) {
        return output::print(&text);
    }
    let written = match is_replaceable(path) {
        true => replace(path, &text),
        false => OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut out| out.write_all(text.as_bytes())),
    };
    written.map_err(Error::io(format!("write {}", path.display())))
}

/// Whether the path is that of a file, or of nothing yet. What `/dev` has may lead to a file that
/// others write to, as `/dev/stderr` does.
fn is_replaceable(path: &Path) -> bool {
    let is_other = fs::metadata(path).is_ok_and(|found| !found.is_file());
    !is_other && !path.starts_with("/dev") && !path.starts_with("/proc")
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // One that does not exist yet has no other name.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    beside.push(".new");
    fs::write(&beside, text)?;
    fs::rename(&beside, &path)
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
