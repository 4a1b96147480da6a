//! Labels of a spec, registers of a journal.

use crate::alphabet::check_value;
pub use crate::alphabet::{check_path, check_token};
use crate::invalid::At;
use crate::{Invalid, wire::gazette};
use prost::Message;

/// Bounds of a label's name, in bytes.
pub const NAME_LEN: std::ops::RangeInclusive<usize> = 2..=64;
/// The longest value of a label, in bytes.
pub const VALUE_LEN_MAX: usize = 1024;

/// One label: a name, and a value that may be empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Label {
    pub name: String,
    pub value: String,
    /// Only inside a selector: the value matches what begins with it.
    pub prefix: bool,
}

impl Label {
    /// A label without the prefix mark, not yet checked: a [`LabelSet`] does that.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Label { name: name.into(), value: value.into(), prefix: false }
    }

    fn check(&self) -> Result<(), Invalid> {
        check_token(&self.name, *NAME_LEN.start(), *NAME_LEN.end()).at("Name")?;
        check_value(&self.value, 0, VALUE_LEN_MAX).at("Value")
    }

    fn key(&self) -> (&str, &str) {
        (&self.name, &self.value)
    }
}

/// Labels sorted strictly by (name, value). Also the form of a journal's registers.
///
/// A name may have many values, but an empty value stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LabelSet {
    labels: Vec<Label>,
}

impl LabelSet {
    /// The labels of a spec or of registers. Unsorted labels are an error, as in Gazette, and so is
    /// the prefix mark.
    pub fn new(labels: Vec<Label>) -> Result<Self, Invalid> {
        for (at, label) in labels.iter().enumerate() {
            let refused = Invalid::new("unexpected Prefix outside of a LabelSelector");
            let checked = if label.prefix { Err(refused) } else { Ok(()) };
            checked.at(format_args!("Labels[{at}]"))?;
        }
        LabelSet::for_selector(labels)
    }

    /// One half of a selector: as `new`, but labels may have the prefix mark.
    pub fn for_selector(labels: Vec<Label>) -> Result<Self, Invalid> {
        for (at, label) in labels.iter().enumerate() {
            label.check().at(format_args!("Labels[{at}]"))?;
        }
        for (at, pair) in labels.windows(2).enumerate() {
            check_order(&pair[0], &pair[1]).at(format_args!("Labels[{}]", at + 1))?;
        }
        Ok(LabelSet { labels })
    }

    /// This set and one more label, in its place; unchanged when the label is there already.
    pub fn with(mut self, name: &str, value: &str) -> Result<Self, Invalid> {
        match self.labels.binary_search_by(|label| label.key().cmp(&(name, value))) {
            Ok(_) => Ok(self),
            Err(at) => {
                self.labels.insert(at, Label::new(name, value));
                LabelSet::for_selector(self.labels)
            }
        }
    }

    /// This set with `value` as the only value of `name`.
    pub fn with_only(self, name: &str, value: &str) -> Result<Self, Invalid> {
        self.without(name).with(name, value)
    }

    /// This set with no value of `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.labels.retain(|label| label.name != name);
        self
    }

    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// The labels called `name`, sorted by value.
    pub fn named(&self, name: &str) -> &[Label] {
        let begin = self.labels.partition_point(|label| label.name.as_str() < name);
        let len = self.labels[begin..].partition_point(|label| label.name == name);
        &self.labels[begin..begin + len]
    }

    /// The first value of `name`.
    pub fn value_of(&self, name: &str) -> Option<&str> {
        self.named(name).first().map(|label| label.value.as_str())
    }

    /// Every value of `name`, sorted.
    pub fn values_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.named(name).iter().map(|label| label.value.as_str())
    }

    /// The names, each with its labels, in name order.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &[Label])> {
        self.labels
            .chunk_by(|one, next| one.name == next.name)
            .map(|group| (group[0].name.as_str(), group))
    }

    /// Registers after `other` is set over them: the values of each name of `other` replace the old
    /// ones of that name (gazette-spec 2.6).
    #[must_use]
    pub fn union(&self, other: &LabelSet) -> LabelSet {
        let kept = self.labels.iter().filter(|label| other.named(&label.name).is_empty());
        let mut labels: Vec<Label> = kept.chain(&other.labels).cloned().collect();
        labels.sort();
        LabelSet { labels }
    }

    /// Registers without those names whose whole list of values equals the one of `other`
    /// (gazette-spec 2.6).
    #[must_use]
    pub fn subtract(&self, other: &LabelSet) -> LabelSet {
        let kept = self.groups().filter(|(name, group)| other.named(name) != *group);
        LabelSet { labels: kept.flat_map(|(_, group)| group.iter().cloned()).collect() }
    }

    /// Gazette's encoding, for fields and files that carry a set as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        gazette::LabelSet::from(self.clone()).encode_to_vec()
    }

    /// Reads what `to_bytes` wrote; no bytes are the empty set.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Invalid> {
        gazette::LabelSet::decode(bytes)
            .map_err(|error| Invalid::new(format!("not an encoded LabelSet ({error})")))?
            .try_into()
    }
}

fn check_order(one: &Label, next: &Label) -> Result<(), Invalid> {
    if one.key() >= next.key() {
        return Err(Invalid::new(format!(
            "labels must be unique and sorted ({}={} after {}={})",
            next.name, next.value, one.name, one.value
        )));
    }
    // Invariant: sorted, so an empty value is the first of its name.
    if one.name == next.name && one.value.is_empty() {
        return Err(Invalid::new(format!(
            "label {} has an empty value beside non-empty ones",
            one.name
        )));
    }
    Ok(())
}

impl From<gazette::Label> for Label {
    fn from(label: gazette::Label) -> Self {
        Label { name: label.name, value: label.value, prefix: label.prefix }
    }
}

impl From<Label> for gazette::Label {
    fn from(label: Label) -> Self {
        gazette::Label { name: label.name, value: label.value, prefix: label.prefix }
    }
}

impl TryFrom<gazette::LabelSet> for LabelSet {
    type Error = Invalid;

    fn try_from(set: gazette::LabelSet) -> Result<Self, Invalid> {
        LabelSet::new(set.labels.into_iter().map(Label::from).collect())
    }
}

impl From<LabelSet> for gazette::LabelSet {
    fn from(set: LabelSet) -> Self {
        gazette::LabelSet { labels: set.labels.into_iter().map(Into::into).collect() }
    }
}

impl<'a> IntoIterator for &'a LabelSet {
    type Item = &'a Label;
    type IntoIter = std::slice::Iter<'a, Label>;

    fn into_iter(self) -> Self::IntoIter {
        self.labels.iter()
    }
}

#[cfg(test)]
mod tests;
