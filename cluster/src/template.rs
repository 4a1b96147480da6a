//! Templates: the specs of journals that are created by name alone, as by writing to a new file.

mod stored;

use crate::Refused;
use crate::name::{check_reserved, shown};
use protocol::created::TEMPORARY;
use protocol::spec::CONTENT_TYPE;
use protocol::{Codec, Flags, FragmentSpec, Invalid, Journal, JournalSpec, LabelSet, Pattern};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// The content types that file names tell (gazette-spec 4.3 and 7.3 say what they mean).
const CONTENT_TYPES: [(&str, &str); 3] =
    [(".ndjson", "application/x-ndjson"), (".jsonl", "application/x-ndjson"), (".csv", "text/csv")];

/// How journals whose names begin with `prefix` are created, and which are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Compared as text; one that ends in `/` is a directory.
    pub prefix: String,
    pub defaults: Defaults,
    /// Matched against the last component of a name, as a mount shows it: percent-decoded.
    pub refuse: Vec<Pattern>,
}

/// A spec without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    pub replication: i32,
    /// With a `content-type` here, file names say nothing.
    pub labels: LabelSet,
    pub fragment: FragmentSpec,
    pub flags: Flags,
    pub max_append_rate: i64,
}

impl Defaults {
    fn spec(&self, name: Journal) -> JournalSpec {
        JournalSpec {
            labels: with_content_type(self.labels.clone(), &name),
            name,
            replication: self.replication,
            fragment: self.fragment.clone(),
            flags: self.flags,
            max_append_rate: self.max_append_rate,
            suspend: None,
        }
    }
}

impl From<JournalSpec> for Defaults {
    /// Forgets the name, and `suspend`, which belongs to one journal.
    fn from(spec: JournalSpec) -> Self {
        Defaults {
            replication: spec.replication,
            labels: spec.labels,
            fragment: spec.fragment,
            flags: spec.flags,
            max_append_rate: spec.max_append_rate,
        }
    }
}

fn with_content_type(labels: LabelSet, name: &Journal) -> LabelSet {
    let is_of = |(extension, _): &&(&str, &str)| name.as_str().ends_with(extension);
    match CONTENT_TYPES.iter().find(is_of) {
        Some((_, content_type)) if labels.named(CONTENT_TYPE).is_empty() => labels
            .with(CONTENT_TYPE, content_type)
            .expect("the only label of its name, and a valid one"),
        _ => labels,
    }
}

impl Template {
    /// The template of the empty prefix, unless another was put there.
    pub fn built_in() -> Self {
        Template {
            prefix: String::new(),
            defaults: Defaults {
                // One broker needs no other; more are asked for by who has more.
                replication: 1,
                labels: LabelSet::default(),
                fragment: FragmentSpec {
                    // Few enough objects to list, small enough to fetch whole for one read.
                    length: 64 << 20,
                    // Logs shrink five to ten times, at the speed of a disk.
                    codec: Codec::Zstandard,
                    // The broker's own directory of fragments: it works with nothing set up.
                    stores: vec!["file:///".into()],
                    // How late another's fragments are seen; listings cost money in the cloud.
                    refresh_interval: Duration::from_secs(5 * 60),
                    // A log is deleted by those who know it may be.
                    retention: Duration::ZERO,
                    // A quiet journal's bytes reach the store, in at most 24 objects a day.
                    flush_interval: Duration::from_secs(60 * 60),
                    // Every fragment in one directory: a listing is one request.
                    path_postfix_template: String::new(),
                },
                flags: Flags::ReadWrite,
                max_append_rate: 0,
            },
            refuse: TEMPORARY.map(Pattern::new).into(),
        }
    }

    /// Its defaults as a spec, whose name says nothing.
    pub fn spec(&self) -> JournalSpec {
        self.defaults.spec(nobody())
    }

    /// Refuses defaults that no journal could have.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.spec().validate()
    }
}

/// The name in a spec that has none: a spec is valid only with one. It tells no content type.
fn nobody() -> Journal {
    Journal::new("template").expect("a valid name")
}

/// The templates of a key space, by prefix. There is always one for every name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    by_prefix: BTreeMap<String, Template>,
    built_in: Template,
}

impl Default for Templates {
    fn default() -> Self {
        Templates { by_prefix: BTreeMap::new(), built_in: Template::built_in() }
    }
}

impl Templates {
    /// The template of the longest prefix of the name. It alone counts: nothing is inherited from
    /// shorter ones, the refused patterns neither.
    pub fn of(&self, journal: &Journal) -> &Template {
        let is_of = |template: &&Template| journal.as_str().starts_with(&template.prefix);
        let to_name = (Bound::Unbounded, Bound::Included(journal.as_str()));
        let candidates = self.by_prefix.range::<str, _>(to_name);
        // Prefixes of one name sort by length, so the first that fits from behind is the longest.
        candidates.rev().map(|(_, template)| template).find(is_of).unwrap_or(&self.built_in)
    }

    /// The spec of a new journal, or why its name is refused.
    pub fn spec_for(&self, journal: &Journal) -> Result<JournalSpec, Refused> {
        check_reserved(journal)?;
        let template = self.of(journal);
        let last = journal.as_str().rsplit('/').next().expect("a split has a last part");
        let last = shown(last);
        match template.refuse.iter().find(|pattern| pattern.matches(&last)) {
            Some(pattern) => {
                Err(Refused::Pattern { journal: journal.clone(), pattern: pattern.clone() })
            }
            None => Ok(template.defaults.spec(journal.clone())),
        }
    }

    /// All that were put, by prefix; the built-in one is among them only if it was put.
    pub fn iter(&self) -> impl Iterator<Item = &Template> {
        self.by_prefix.values()
    }

    pub fn get(&self, prefix: &str) -> Option<&Template> {
        self.by_prefix.get(prefix)
    }

    pub(crate) fn put(&mut self, template: Template) {
        self.by_prefix.insert(template.prefix.clone(), template);
    }

    pub(crate) fn remove(&mut self, prefix: &str) {
        self.by_prefix.remove(prefix);
    }
}

#[cfg(test)]
mod tests;
