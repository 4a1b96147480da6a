//! Which journals are meant: a match over labels.

mod text;

use crate::invalid::At;
use crate::label::Label;
use crate::{Invalid, Journal, LabelSet, wire::gazette};

/// The label by which a selector names journals. No spec carries it.
pub const NAME: &str = "name";
/// An old way to say `name:prefix`. No spec carries it.
pub const PREFIX: &str = "prefix";

/// Include and exclude labels (gazette-spec 4.4). The empty selector matches everything.
///
/// As text it reads `a=b, c in (d,e), !f, name:prefix=g/`: see [`FromStr`](std::str::FromStr) and
/// `Display`, which writes the canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selector {
    pub include: LabelSet,
    pub exclude: LabelSet,
}

impl Selector {
    /// Whether a journal of that name and those labels is meant.
    pub fn matches(&self, labels: &LabelSet, journal: &Journal) -> bool {
        self.matches_with(|wanted| {
            let synthetic = wanted.name == NAME && is_value_match(wanted, journal.as_str());
            synthetic || is_match(wanted, labels)
        })
    }

    /// Whether an append that checks registers may go ahead. No registers at all match everything,
    /// as after the loss of all replicas (gazette-spec 2.6).
    pub fn matches_registers(&self, registers: &LabelSet) -> bool {
        registers.is_empty() || self.matches_with(|wanted| is_match(wanted, registers))
    }

    /// Names must all match, values of one name need only one that does.
    fn matches_with(&self, has: impl Fn(&Label) -> bool) -> bool {
        !self.exclude.into_iter().any(&has)
            && self.include.groups().all(|(_, group)| group.iter().any(&has))
    }

    /// The same selector without the legacy label `prefix`, which asks for names that begin with
    /// its value. Lists and tokens are matched in this form.
    #[must_use]
    pub fn without_legacy_prefix(self) -> Selector {
        Selector { include: name_prefixes(self.include), exclude: name_prefixes(self.exclude) }
    }

    /// Refuses a legacy `prefix` that does not name a directory.
    pub fn check_legacy_prefix(&self) -> Result<(), Invalid> {
        for (half, labels) in [("Include", &self.include), ("Exclude", &self.exclude)] {
            if let Some(value) = labels.values_of(PREFIX).find(|value| !value.ends_with('/')) {
                let reason = format!("prefix must end in '/' ({value})");
                return Err(Invalid::new(reason).within(half));
            }
        }
        Ok(())
    }

    /// The names that an index can look up instead of scanning: those of a selector that asks for
    /// whole names and nothing shorter. `None` where every name must be looked at.
    pub fn exact_names(&self) -> Option<Vec<&str>> {
        let named = self.include.named(NAME);
        let exact = |label: &Label| !label.prefix && !label.value.is_empty();
        (!named.is_empty() && named.iter().all(exact))
            .then(|| named.iter().map(|label| label.value.as_str()).collect())
    }
}

fn is_match(wanted: &Label, labels: &LabelSet) -> bool {
    labels.values_of(&wanted.name).any(|value| is_value_match(wanted, value))
}

/// An empty value asks only for presence.
fn is_value_match(wanted: &Label, value: &str) -> bool {
    if wanted.prefix {
        value.starts_with(&wanted.value)
    } else {
        wanted.value.is_empty() || wanted.value == value
    }
}

fn name_prefixes(set: LabelSet) -> LabelSet {
    if set.named(PREFIX).is_empty() {
        return set;
    }
    let mut labels: Vec<Label> = set.labels().to_vec();
    for label in labels.iter_mut().filter(|label| label.name == PREFIX) {
        label.name = NAME.to_string();
        label.prefix = true;
    }
    let is_any = |label: &Label| label.name == NAME && label.value.is_empty();
    if labels.iter().any(is_any) {
        // Any name will do, so the other names say nothing.
        labels.retain(|label| label.name != NAME || is_any(label));
    }
    // The wider label first, so that it is the one kept of two with equal values.
    labels.sort_by(|a, b| (&a.name, &a.value, b.prefix).cmp(&(&b.name, &b.value, a.prefix)));
    labels.dedup_by(|next, one| one.name == next.name && one.value == next.value);
    LabelSet::for_selector(labels).expect("sorted, unique, of valid labels")
}

impl TryFrom<gazette::LabelSelector> for Selector {
    type Error = Invalid;

    fn try_from(selector: gazette::LabelSelector) -> Result<Self, Invalid> {
        let half = |set: Option<gazette::LabelSet>| {
            LabelSet::for_selector(
                set.unwrap_or_default().labels.into_iter().map(Label::from).collect(),
            )
        };
        Ok(Selector {
            include: half(selector.include).at("Include")?,
            exclude: half(selector.exclude).at("Exclude")?,
        })
    }
}

impl From<Selector> for gazette::LabelSelector {
    fn from(selector: Selector) -> Self {
        gazette::LabelSelector {
            include: Some(selector.include.into()),
            exclude: Some(selector.exclude.into()),
        }
    }
}

#[cfg(test)]
mod tests;
