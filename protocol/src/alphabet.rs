//! The alphabets that names, values and paths are made of, and what a clean path is.
//!
//! Nothing at or below `#` is in any of them: etcd keys are ordered by that (gazette-spec 5.1).
//! Letters and numbers are those of Unicode. Where Gazette goes by general category, the standard
//! library goes by the property Alphabetic, which adds a few combining vowel signs.

use crate::Invalid;

const TOKEN_SYMBOLS: &str = "-_+/.";
const PATH_SYMBOLS: &str = "-_+/.=%";

/// Refuses a token that has a character outside letters, numbers and `-_+/.`, or a length outside
/// the bounds (in bytes).
pub fn check_token(token: &str, min: usize, max: usize) -> Result<(), Invalid> {
    check_length(token, min, max)?;
    check_symbols(token, TOKEN_SYMBOLS, "token")
}

/// Refuses what has a character outside the token alphabet plus `=%`, or a length outside the
/// bounds (in bytes). The text need not be a clean path.
pub fn check_value(value: &str, min: usize, max: usize) -> Result<(), Invalid> {
    check_length(value, min, max)?;
    check_symbols(value, PATH_SYMBOLS, "value")
}

/// Refuses what is no clean path component: path alphabet, no leading or trailing `/`, no `//`, no
/// `.` or `..` between slashes.
///
/// Gazette lets a *leading* `..` pass; here it is refused, since names become file paths.
pub fn check_path(path: &str, min: usize, max: usize) -> Result<(), Invalid> {
    check_length(path, min, max)?;
    check_symbols(path, PATH_SYMBOLS, "path")?;
    if path.starts_with("../") || path == ".." {
        return Err(Invalid::new(format!("must not lead out of its directory ({path})")));
    }
    let relative = path.strip_prefix('/').unwrap_or(path);
    if !relative.split('/').all(|part| !matches!(part, "" | "." | "..")) {
        return Err(Invalid::new(format!("must be a clean path ({path})")));
    }
    if path.starts_with('/') {
        return Err(Invalid::new(format!("cannot begin with '/' ({path})")));
    }
    Ok(())
}

fn check_length(text: &str, min: usize, max: usize) -> Result<(), Invalid> {
    let len = text.len();
    if len < min || len > max {
        return Err(Invalid::new(format!(
            "invalid length ({len}; expected {min} <= length <= {max})"
        )));
    }
    Ok(())
}

fn check_symbols(text: &str, symbols: &str, what: &str) -> Result<(), Invalid> {
    if !text.chars().all(|c| c.is_alphanumeric() || symbols.contains(c)) {
        return Err(Invalid::new(format!("not a valid {what} ({text})")));
    }
    Ok(())
}

/// Whether a character can stand in a token, which label names and selector terms are made of.
pub(crate) fn is_token_char(c: char) -> bool {
    c.is_alphanumeric() || TOKEN_SYMBOLS.contains(c)
}

/// Whether a character can stand in a value.
pub(crate) fn is_value_char(c: char) -> bool {
    c.is_alphanumeric() || PATH_SYMBOLS.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let long = "x".repeat(65);
        let cases = [
            // Case: letters, numbers and the five symbols.
            ("aB3-_+/.", None),
            // Case: letters of any script, whose length counts in bytes.
            ("\u{e9}t\u{e9}", None),
            // Case: bounds.
            ("a", Some("invalid length (1; expected 2 <= length <= 64)")),
            (long.as_str(), Some("invalid length (65; expected 2 <= length <= 64)")),
            // Case: what separates etcd keys, and what only paths may have.
            ("a#b", Some("not a valid token (a#b)")),
            ("a=b", Some("not a valid token (a=b)")),
            ("a b", Some("not a valid token (a b)")),
            ("a:b", Some("not a valid token (a:b)")),
        ];
        for (token, expected) in cases {
            let found = check_token(token, 2, 64).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{token}");
        }
    }

    #[test]
    fn paths() {
        let cases = [
            ("a/b=c/%20", None),
            ("a/..b/c..", None),
            ("a/b/", Some("must be a clean path (a/b/)")),
            ("a//b", Some("must be a clean path (a//b)")),
            ("a/./b", Some("must be a clean path (a/./b)")),
            ("./ab", Some("must be a clean path (./ab)")),
            ("a/../b", Some("must be a clean path (a/../b)")),
            ("a/..", Some("must be a clean path (a/..)")),
            ("/a/b", Some("cannot begin with '/' (/a/b)")),
            ("//ab", Some("must be a clean path (//ab)")),
            // Case: clean by Gazette, and yet it would leave the store.
            ("../ab", Some("must not lead out of its directory (../ab)")),
            ("..", Some("must not lead out of its directory (..)")),
            ("a;b/c", Some("not a valid path (a;b/c)")),
        ];
        for (path, expected) in cases {
            let found = check_path(path, 2, 64).err().map(|invalid| invalid.to_string());
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn values_need_not_be_clean() {
        assert_eq!(check_value("", 0, 4), Ok(()));
        assert_eq!(check_value("//..", 0, 4), Ok(()));
        assert!(check_value("a,b", 0, 4).is_err());
    }
}
