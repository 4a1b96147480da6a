//! Selectors as people write them: `a=b, c in (d,e), !f, name:prefix=g/` (gazette-spec 4.4).

use super::Selector;
use crate::alphabet::{is_token_char, is_value_char};
use crate::label::{Label, LabelSet};
use crate::{Invalid, invalid::At};
use std::fmt::{Display, Formatter, Result as Written};
use std::str::FromStr;

impl FromStr for Selector {
    type Err = Invalid;

    /// Reads comma-separated terms, with spaces allowed around commas and operators. No terms at
    /// all are the selector that matches everything.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let mut include = Vec::new();
        let mut exclude = Vec::new();
        let mut rest = Rest(text.trim_start());
        while !rest.0.is_empty() {
            let term = rest.term().ok_or_else(|| {
                Invalid::new(format!("not a label selector ({text}; unexpected at {:?})", rest.0))
            })?;
            if term.is_excluded { &mut exclude } else { &mut include }.extend(term.labels);
        }
        Ok(Selector {
            include: sorted(include).at("Include")?,
            exclude: sorted(exclude).at("Exclude")?,
        })
    }
}

/// Terms may come in any order and say a thing twice, unlike the labels of a message.
fn sorted(mut labels: Vec<Label>) -> Result<LabelSet, Invalid> {
    labels.sort();
    labels.dedup();
    LabelSet::for_selector(labels)
}

struct Term {
    is_excluded: bool,
    labels: Vec<Label>,
}

/// What is still to be read. Readers answer `None` where the text does not go on as they expect,
/// and then stand at what they did not expect.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    /// One term and the comma after it.
    fn term(&mut self) -> Option<Term> {
        let is_absence = self.take("!");
        let name = self.while_char(is_token_char);
        let prefix = self.take(":prefix");
        if name.is_empty() {
            return None;
        }
        let (is_excluded, values) = if is_absence { (true, vec![""]) } else { self.condition()? };
        if !self.0.is_empty() && !self.take(",") {
            return None;
        }
        let label = |value: &str| Label { prefix, ..Label::new(name, value) };
        Some(Term { is_excluded, labels: values.into_iter().map(label).collect() })
    }

    /// What follows a name: whether it excludes, and the values it speaks of.
    fn condition(&mut self) -> Option<(bool, Vec<&'t str>)> {
        if self.take("!=") {
            return Some((true, vec![self.value()]));
        }
        if self.take("==") || self.take("=") {
            return Some((false, vec![self.value()]));
        }
        for (word, is_excluded) in [("in", false), ("notin", true), ("not in", true)] {
            if self.take(word) {
                return Some((is_excluded, self.list()?));
            }
        }
        Some((false, vec![""]))
    }

    fn list(&mut self) -> Option<Vec<&'t str>> {
        if !self.take("(") {
            return None;
        }
        let mut values = vec![self.value()];
        while self.take(",") {
            values.push(self.value());
        }
        self.take(")").then_some(values)
    }

    fn value(&mut self) -> &'t str {
        self.while_char(is_value_char)
    }

    /// Takes `token` and the spaces after it, if it is next.
    fn take(&mut self, token: &str) -> bool {
        self.0.strip_prefix(token).map(|rest| self.0 = rest.trim_start()).is_some()
    }

    fn while_char(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let end = self.0.find(|c| !wanted(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        taken
    }
}

impl Display for Selector {
    /// The canonical form: included names in order, then excluded ones.
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        let mut comma = "";
        for (half, words) in [(&self.include, &INCLUDE), (&self.exclude, &EXCLUDE)] {
            for (_, group) in half.groups() {
                for prefix in [false, true] {
                    let labels: Vec<_> = group.iter().filter(|l| l.prefix == prefix).collect();
                    if !labels.is_empty() {
                        f.write_str(std::mem::replace(&mut comma, ","))?;
                        write_term(f, words, &labels)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// How one half of a selector is written.
struct Words {
    presence: &'static str,
    equal: &'static str,
    list: &'static str,
}

const INCLUDE: Words = Words { presence: "", equal: "=", list: " in " };
const EXCLUDE: Words = Words { presence: "!", equal: "!=", list: " notin " };

/// Writes labels of one name and one prefix mark.
fn write_term(f: &mut Formatter<'_>, words: &Words, labels: &[&Label]) -> Written {
    let name = &labels[0].name;
    let mark = if labels[0].prefix { ":prefix" } else { "" };
    let values: Vec<&str> = labels.iter().map(|label| label.value.as_str()).collect();
    match values[..] {
        [""] => write!(f, "{}{name}{mark}", words.presence),
        // A value that begins with `=` would make another operator of the one before it.
        [value] if !value.starts_with('=') => write!(f, "{name}{mark}{}{value}", words.equal),
        _ => write!(f, "{name}{mark}{}({})", words.list, values.join(",")),
    }
}
