//! The path between a journal and its fragments, made of a spec's template (gazette-spec 3.2).
//!
//! Gazette takes any Go text/template. Here only what is in use is taken, and anything else is
//! refused when the spec is applied: literals, `{{ .Spool.FirstAppendTime.Format "layout" }}` and
//! `{{ .JournalSpec.LabelSet.ValueOf "name" }}`.

mod layout;

use crate::alphabet::check_path;
use crate::fragment::POSTFIX_LEN_MAX;
use crate::{Invalid, LabelSet};
use layout::Layout;

/// A parsed path postfix template. The empty template gives an empty postfix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostfixTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// The first append's time, UTC, in a layout of Go.
    Time(Layout),
    /// The first value of that label, or nothing.
    Label(String),
}

impl PostfixTemplate {
    pub fn parse(template: &str) -> Result<Self, Invalid> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once("{{") {
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_string()));
            }
            let (part, after) = action(after)
                .ok_or_else(|| Invalid::new(format!("unsupported template ({template})")))?;
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_string()));
        }
        Ok(PostfixTemplate { parts })
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The postfix of a fragment whose first append was at `first_append_time` (unix seconds), in
    /// a journal with those labels. It may be unclean: see [`check`](Self::check).
    pub fn evaluate(&self, first_append_time: i64, labels: &LabelSet) -> String {
        let mut postfix = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => postfix.push_str(literal),
                Part::Time(layout) => layout.format(first_append_time, &mut postfix),
                Part::Label(name) => postfix.push_str(labels.value_of(name).unwrap_or_default()),
            }
        }
        postfix
    }

    /// Whether a later fragment's postfix never sorts before an earlier one's, under the same
    /// labels: of the units of time none is left out before a finer one.
    pub fn is_ascending(&self) -> bool {
        let mut next = 0;
        let mut takes = |rank: u8| {
            let is_next = rank <= next;
            next = next.max(rank + 1);
            is_next
        };
        self.parts.iter().all(|part| match part {
            Part::Literal(_) | Part::Label(_) => true,
            Part::Time(layout) => {
                layout.ranks().is_some_and(|ranks| ranks.into_iter().all(&mut takes))
            }
        })
    }

    /// Refuses a template whose postfixes are no clean paths under those labels: fragments stored
    /// there would be in no later listing, as their names would not parse.
    pub fn check(&self, labels: &LabelSet) -> Result<(), Invalid> {
        // The first second of 1970: whatever a layout pads with spaces shows, and colons do always.
        let postfix = self.evaluate(0, labels);
        if postfix.is_empty() { Ok(()) } else { check_path(&postfix, 1, POSTFIX_LEN_MAX) }
    }
}

impl std::str::FromStr for PostfixTemplate {
    type Err = Invalid;

    fn from_str(template: &str) -> Result<Self, Invalid> {
        PostfixTemplate::parse(template)
    }
}

/// Reads ` .Path "argument" }}`, and returns what follows it.
fn action(text: &str) -> Option<(Part, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || c == '"' || c == '`' || c == '}')?;
    let (path, rest) = text.split_at(end);
    let (argument, rest) = quoted(rest.trim_start())?;
    let rest = rest.trim_start().strip_prefix("}}")?;
    let part = match path {
        ".Spool.FirstAppendTime.Format" => Part::Time(Layout::parse(&argument)),
        ".JournalSpec.LabelSet.ValueOf" => Part::Label(argument),
        _ => return None,
    };
    Some((part, rest))
}

/// Reads a Go string, plain or raw, and returns what follows it. The only escapes taken are those
/// of quote and backslash: no other character that needs one can be in a path.
fn quoted(text: &str) -> Option<(String, &str)> {
    if let Some(raw) = text.strip_prefix('`') {
        return raw.split_once('`').map(|(raw, rest)| (raw.to_string(), rest));
    }
    let text = text.strip_prefix('"')?;
    let mut unquoted = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((unquoted, &text[at + 1..])),
            '\n' => return None,
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => unquoted.push(c),
                _ => return None,
            },
            c => unquoted.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29 19:13:13 UTC.
    const TIME: i64 = 1_795_979_593;

    fn labels() -> LabelSet {
        LabelSet::default()
            .with("region", "eu/west")
            .and_then(|set| set.with("tag", ""))
            .expect("ok")
    }

    #[test]
    fn templates_are_evaluated() {
        let cases = [
            ("", ""),
            ("static/path", "static/path"),
            (
                concat!(
                    r#"date={{ .Spool.FirstAppendTime.Format "2006-01-02" }}/"#,
                    r#"hour={{.Spool.FirstAppendTime.Format "15"}}"#,
                ),
                "date=2026-11-29/hour=19",
            ),
            ("h{{ .Spool.FirstAppendTime.Format `15` }}", "h19"),
            (r#"{{ .JournalSpec.LabelSet.ValueOf "region" }}/x"#, "eu/west/x"),
            (r#"x{{ .JournalSpec.LabelSet.ValueOf "absent" }}"#, "x"),
        ];
        for (template, expected) in cases {
            let parsed = PostfixTemplate::parse(template).expect(template);
            assert_eq!(parsed.evaluate(TIME, &labels()), expected, "{template}");
            assert_eq!(parsed.is_empty(), template.is_empty());
            assert_eq!(parsed.check(&labels()), Ok(()), "{template}");
        }
    }

    #[test]
    fn templates_that_ascend_with_time() {
        let time = |layout: &str| format!(r#"{{{{ .Spool.FirstAppendTime.Format "{layout}" }}}}"#);
        let cases = [
            (String::new(), true),
            ("static".to_owned(), true),
            (r#"{{ .JournalSpec.LabelSet.ValueOf "region" }}"#.to_owned(), true),
            (time("2006-01-02"), true),
            (format!("day={}/hour={}", time("20060102"), time("15")), true),
            // Case: a unit that was written is written again.
            (format!("{}/{}", time("2006-01"), time("2006-01-02T15Z07")), true),
            // Case: a unit is left out, so that the next ones begin again.
            (time("15"), false),
            (time("2006/15"), false),
            (time("01-02-2006"), false),
            // Case: texts that do not sort as what they stand for.
            (time("2006-1-2"), false),
            (time("2006-Jan"), false),
            (time("06-01-02"), false),
        ];
        for (template, expected) in cases {
            let parsed = PostfixTemplate::parse(&template).expect("it is taken");
            assert_eq!(parsed.is_ascending(), expected, "{template}");
        }
    }

    #[test]
    fn what_is_not_taken_is_refused_at_once() {
        for template in [
            "{{",
            "{{ }}",
            "{{ .Spool.FirstAppendTime }}",
            "{{ .Spool.FirstAppendTime.Format }}",
            r#"{{ .Spool.FirstAppendTime.Format "15" "x" }}"#,
            r#"{{ .Spool.FirstAppendTime.Format "15 }}"#,
            r#"{{ .Spool.FirstAppendTime.Format "\x31" }}"#,
            r#"{{ .Spool.Journal }}"#,
            r#"{{ if true }}x{{ end }}"#,
            r#"{{- .Spool.FirstAppendTime.Format "15" -}}"#,
        ] {
            let invalid = PostfixTemplate::parse(template).expect_err(template);
            assert_eq!(invalid.to_string(), format!("unsupported template ({template})"));
        }
    }

    #[test]
    fn postfixes_that_no_listing_would_find_are_refused() {
        for template in [
            "trailing/",
            "/leading",
            "a//b",
            "../up",
            "with space",
            r#"{{ .Spool.FirstAppendTime.Format "15:04" }}"#,
            r#"day={{ .Spool.FirstAppendTime.Format "_2" }}"#,
            r#"{{ .JournalSpec.LabelSet.ValueOf "absent" }}/x"#,
        ] {
            let parsed = PostfixTemplate::parse(template).expect(template);
            assert!(parsed.check(&labels()).is_err(), "{template}");
        }
    }
}
