//! As much of an absolute URL as endpoints and store names need.

use crate::Invalid;

/// The parts of `scheme://host/path?query`, as they stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Url<'t> {
    pub scheme: &'t str,
    /// With user and port where given.
    pub host: &'t str,
    /// Empty, or from its first `/` on.
    pub path: &'t str,
    /// Without its `?`.
    pub query: &'t str,
}

/// Splits an absolute URL. Refuses spaces, control characters and bad percent escapes.
pub(crate) fn split(text: &str) -> Result<Url<'_>, Invalid> {
    let refused = |why: &str| Invalid::new(format!("not a valid URL ({text}): {why}"));
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return Err(refused("spaces and control characters must be escaped"));
    }
    let relative = || Invalid::new(format!("not absolute: {text}"));
    let (scheme, rest) = text.split_once(':').ok_or_else(relative)?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !is_scheme {
        return Err(relative());
    }
    let rest = rest.split_once('#').map_or(rest, |(rest, _fragment)| rest);
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    if !has_valid_escapes(path) || !has_valid_escapes(host) {
        return Err(refused("bad percent escape"));
    }
    Ok(Url { scheme, host, path, query })
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.len() >= 2 && after.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit))
}

/// Refuses an endpoint that is no absolute URL with a host.
pub fn check_endpoint(endpoint: &str) -> Result<(), Invalid> {
    if split(endpoint)?.host.is_empty() {
        return Err(Invalid::new(format!("missing host: {endpoint}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_as_written() {
        let cases = [
            ("s3://bucket/pre/fix/?region=x", ("s3", "bucket", "/pre/fix/", "region=x")),
            ("file:///", ("file", "", "/", "")),
            ("http://127.0.0.1:8080", ("http", "127.0.0.1:8080", "", "")),
            ("azure-ad://t/a/c/#part", ("azure-ad", "t", "/a/c/", "")),
            ("file:/x/", ("file", "", "/x/", "")),
        ];
        for (text, (scheme, host, path, query)) in cases {
            assert_eq!(split(text), Ok(Url { scheme, host, path, query }), "{text}");
        }
    }

    #[test]
    fn endpoints_are_absolute_and_have_a_host() {
        let cases = [
            ("http://localhost:8080", None),
            ("unix://host/run/socket", None),
            ("localhost", Some("not absolute: localhost")),
            ("1http://x", Some("not absolute: 1http://x")),
            ("http:///x", Some("missing host: http:///x")),
            (
                "http://a b",
                Some("not a valid URL (http://a b): spaces and control characters must be escaped"),
            ),
            ("http://a/%2", Some("not a valid URL (http://a/%2): bad percent escape")),
        ];
        for (endpoint, expected) in cases {
            let found = check_endpoint(endpoint).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{endpoint}");
        }
    }
}
