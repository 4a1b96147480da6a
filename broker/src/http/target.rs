//! What a request's URL asks for: the journal in its path, and the parameters after it.

use percent_encoding::percent_decode_str;
use protocol::request::ReadFrom;
use protocol::{Invalid, MetaJournal, Offset};
use std::borrow::Cow;

/// The journal that a path names, percent-decoded.
pub fn journal_of(path: &str) -> Result<MetaJournal, Invalid> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let decoded = percent_decode_str(name).decode_utf8();
    let decoded = decoded.map_err(|_| Invalid::new("must be UTF-8 once it is percent-decoded"));
    decoded.and_then(|name| MetaJournal::new(&name)).map_err(|invalid| invalid.within("Journal"))
}

/// Where a request is sent whose path has empty parts or parts of dots, as Go's servers do
/// (gazette-spec 6.1). `None` for the usual path.
pub fn clean(path: &str, query: Option<&str>) -> Option<String> {
    let is_odd = |part: &str| matches!(part, "" | "." | "..");
    let parts = path.strip_prefix('/').unwrap_or(path);
    let parts = parts.strip_suffix('/').unwrap_or(parts);
    if parts.is_empty() || !parts.split('/').any(is_odd) {
        return None;
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in parts.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Some(format!("/{}{end}{query}", kept.join("/")))
}

/// The parameters of GET and HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadParameters {
    pub from: ReadFrom,
    pub block: bool,
}

impl ReadParameters {
    /// Reads `offset=N&block=B`. Names are of either case, and the last of equal ones counts, as
    /// with Gazette.
    pub fn parse(query: Option<&str>) -> Result<Self, Invalid> {
        let mut found = ReadParameters { from: ReadFrom::At(Offset::ZERO), block: false };
        for (name, value) in pairs(query) {
            match name.to_ascii_lowercase().as_str() {
                "offset" => found.from = offset(&value)?,
                "block" => found.block = flag(&value)?,
                _ => return Err(unknown(&name, "offset or block")),
            }
        }
        Ok(found)
    }
}

/// Refuses all parameters: PUT takes none.
pub fn without_parameters(query: Option<&str>) -> Result<(), Invalid> {
    match pairs(query).next() {
        Some((name, _)) => Err(unknown(&name, "none")),
        None => Ok(()),
    }
}

fn unknown(name: &str, expected: &str) -> Invalid {
    Invalid::new(format!("unknown parameter {name:?} (expected {expected})"))
}

fn offset(value: &str) -> Result<ReadFrom, Invalid> {
    let bad = |_| Invalid::new(format!("invalid offset {value:?} (expected an integer >= -1)"));
    match value.parse::<i64>() {
        Ok(-1) => Ok(ReadFrom::Head),
        Ok(offset) => Offset::new(offset).map(ReadFrom::At).map_err(bad),
        Err(_) => Err(bad(Invalid::new(""))),
    }
}

fn flag(value: &str) -> Result<bool, Invalid> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" | "on" => Ok(true),
        "0" | "f" | "false" | "off" => Ok(false),
        _ => Err(Invalid::new(format!("invalid block {value:?} (expected true or false)"))),
    }
}

/// The pairs of a query as forms write them: `a=b&c=d`, percent-encoded, with `+` for a space.
fn pairs(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    })
}

fn decoded(text: &str) -> String {
    let spaced: Cow<'_, str> =
        if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_journal() {
        let cases = [
            ("/logs/app", Ok("logs/app")),
            ("/logs/a%70p", Ok("logs/app")),
            ("/logs%2Fapp", Ok("logs/app")),
            ("/logs/50%25", Ok("logs/50%")),
            ("/logs/app;hook", Ok("logs/app;hook")),
            ("/logs/caf%C3%A9", Ok("logs/caf\u{e9}")),
            ("/", Err("Journal: invalid length (0; expected 4 <= length <= 512)")),
            ("/logs/", Err("Journal: must be a clean path (logs/)")),
            ("/logs/../app", Err("Journal: must be a clean path (logs/../app)")),
            ("/logs/%FF", Err("Journal: must be UTF-8 once it is percent-decoded")),
        ];
        for (path, expected) in cases {
            let found = journal_of(path).map(|journal| journal.to_string());
            let found = found.map_err(|invalid| invalid.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{path}");
        }
    }

    #[test]
    fn odd_paths_are_sent_elsewhere() {
        // Case: path, query, where it is sent
        let cases = [
            ("/logs/app", None, None),
            ("/logs/app/", None, None),
            ("/", None, None),
            ("/logs//app", None, Some("/logs/app")),
            ("//logs/app", Some("offset=5"), Some("/logs/app?offset=5")),
            ("/logs/./app", None, Some("/logs/app")),
            ("/logs/../app/", None, Some("/app/")),
            ("/../../etc/passwd", None, Some("/etc/passwd")),
            ("/a/..", None, Some("/")),
            ("/logs/..app", None, None),
        ];
        for (path, query, expected) in cases {
            assert_eq!(clean(path, query).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_read_has_two_parameters() {
        let at = |offset: u32| ReadFrom::At(offset.into());
        let cases = [
            (None, Ok((at(0), false))),
            (Some(""), Ok((at(0), false))),
            (Some("offset=5"), Ok((at(5), false))),
            (Some("Offset=-1&BLOCK=True"), Ok((ReadFrom::Head, true))),
            (Some("offset=1&offset=2&block=off"), Ok((at(2), false))),
            (Some("offset=-2"), Err("invalid offset \"-2\" (expected an integer >= -1)")),
            (Some("offset=x"), Err("invalid offset \"x\" (expected an integer >= -1)")),
            (Some("block"), Err("invalid block \"\" (expected true or false)")),
            (Some("block=may+be"), Err("invalid block \"may be\" (expected true or false)")),
            (Some("end=5"), Err("unknown parameter \"end\" (expected offset or block)")),
        ];
        for (query, expected) in cases {
            let found = ReadParameters::parse(query).map(|found| (found.from, found.block));
            let found = found.map_err(|invalid| invalid.to_string());
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
        }
    }

    #[test]
    fn an_append_has_none() {
        assert_eq!(without_parameters(None), Ok(()));
        let text = without_parameters(Some("offset=1")).unwrap_err().to_string();
        assert_eq!(text, "unknown parameter \"offset\" (expected none)");
    }
}
