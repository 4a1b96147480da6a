//! Patterns over one part of a name: `*` for any run of characters, `?` for one.

use std::fmt;

/// A pattern that a whole path component matches or not. Every other character stands for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    pub fn new(pattern: impl Into<String>) -> Self {
        Pattern(pattern.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, part: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let text: Vec<char> = part.chars().collect();
        let (mut p, mut t) = (0, 0);
        // Where to go on when a run of the last `*` turns out too short. Earlier ones need no
        // second try: the last one can take whatever they would.
        let mut retry = None;
        while t < text.len() {
            match pattern.get(p) {
                Some('*') => {
                    retry = Some((p + 1, t));
                    p += 1;
                }
                Some(want) if *want == '?' || *want == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => {
                    let Some((after, from)) = retry else { return false };
                    retry = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
            }
        }
        pattern[p..].iter().all(|rest| *rest == '*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_parts() {
        // Case: pattern, part, whether it matches
        for (pattern, part, is_match) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a.b", true),
            ("4913", "4913", true),
            ("4913", "49133", false),
            ("*.tmp", "a.tmp", true),
            ("*.tmp", ".tmp", true),
            ("*.tmp", "a.tmp.b", false),
            ("*.tmp", "a.tmp.tmp", true),
            ("sed??????", "sedAbC123", true),
            ("sed??????", "sediment", false),
            ("?", "\u{e9}", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*a*", "bab", true),
            ("**", "x", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(part), is_match, "{pattern} on {part}");
        }
    }
}
