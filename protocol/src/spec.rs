//! What a journal shall be: the spec that operators apply.

mod flags;
mod fragment;

pub use flags::{Flags, Suspend, SuspendLevel};
pub use fragment::FragmentSpec;

use crate::invalid::{At, at_least, bounded};
use crate::selector::{NAME, PREFIX};
use crate::{Invalid, Journal, LabelSet, PostfixTemplate, wire::gazette};

/// The most replicas a journal can ask for (gazette-spec 1.4).
pub const REPLICATION_MAX: i32 = 5;

/// The label of a journal's content type, a MIME type.
pub const CONTENT_TYPE: &str = "content-type";
const MESSAGE_TYPE: &str = "app.gazette.dev/message-type";
const MESSAGE_SUBTYPE: &str = "app.gazette.dev/message-subtype";

/// The label of how many bytes below its head a journal keeps at least: a spec of Gazette's knows
/// retention by age only, and takes any label.
const RETAIN_BYTES: &str = "courant/retain-bytes";

/// The label of how many readable bytes a journal has at most.
const MAX_BYTES: &str = "courant/max-bytes";

/// Labels that have one value at most.
const SINGLE_VALUED: [&str; 6] = [
    "app.gazette.dev/instance",
    "app.gazette.dev/managed-by",
    MESSAGE_SUBTYPE,
    MESSAGE_TYPE,
    "app.gazette.dev/region",
    CONTENT_TYPE,
];

/// `protocol.JournalSpec`. What comes from the wire is valid by gazette-spec 1.4; what is built or
/// edited is after [`validate`](JournalSpec::validate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalSpec {
    pub name: Journal,
    /// Desired replicas, 1..=5.
    pub replication: i32,
    pub labels: LabelSet,
    pub fragment: FragmentSpec,
    pub flags: Flags,
    /// Bytes a second; 0 is no limit.
    pub max_append_rate: i64,
    pub suspend: Option<Suspend>,
}

impl JournalSpec {
    pub fn validate(&self) -> Result<(), Invalid> {
        check_replication(self.replication)?;
        check_labels(&self.labels)?;
        self.fragment.validate().at("Fragment")?;
        self.postfix_template().and_then(|t| t.check(&self.labels)).at(POSTFIX_PATH)?;
        check_append_rate(self.max_append_rate)
    }

    /// Refuses a name that no fragment could be stored under: a part of it is longer than a file's
    /// name, and one of the stores is of files. Gazette takes it, and never stores anything.
    pub fn check_storable(&self) -> Result<(), Invalid> {
        let long = self.name.as_str().split('/').map(str::len).find(|len| *len > FILE_NAME_MAX);
        let has_files = self.fragment.stores.iter().any(|store| store.starts_with("file:"));
        match long.filter(|_| has_files) {
            None => Ok(()),
            Some(len) => Err(Invalid::new(format!(
                "Name: a part of {len} bytes is too long for a file store \
                 (expected <= {FILE_NAME_MAX})"
            ))),
        }
    }

    /// The template of the paths of stored fragments, parsed.
    pub fn postfix_template(&self) -> Result<PostfixTemplate, Invalid> {
        PostfixTemplate::parse(&self.fragment.path_postfix_template)
    }

    /// The MIME type of the journal's content, where its labels tell.
    pub fn content_type(&self) -> Option<&str> {
        self.labels.value_of(CONTENT_TYPE)
    }

    /// How many bytes below its head the journal keeps at least, where its labels tell: more than
    /// none. `None` for all of them.
    pub fn retain_bytes(&self) -> Result<Option<i64>, Invalid> {
        self.bytes_of(RETAIN_BYTES)
    }

    /// How many readable bytes the journal has at most, where its labels tell: more than none.
    /// `None` for any number.
    pub fn max_bytes(&self) -> Result<Option<i64>, Invalid> {
        self.bytes_of(MAX_BYTES)
    }

    /// Refuses labels of bytes that are no numbers, which say nothing.
    pub fn check_bytes(&self) -> Result<(), Invalid> {
        self.retain_bytes().and(self.max_bytes()).map(drop)
    }

    fn bytes_of(&self, label: &str) -> Result<Option<i64>, Invalid> {
        let Some(value) = self.labels.value_of(label) else { return Ok(None) };
        match value.parse() {
            Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(Invalid::new(format!(
                "{}: its label {label} ({value}) is no number of bytes, such as 1073741824",
                self.name
            ))),
        }
    }

    /// Replicas wanted at this moment: fewer than `replication` while suspended.
    pub fn desired_replicas(&self) -> i32 {
        match self.suspend.map(|suspend| suspend.level).unwrap_or_default() {
            SuspendLevel::None => self.replication,
            SuspendLevel::Partial => 1,
            SuspendLevel::Full => 0,
        }
    }
}

/// The longest name of a file (NAME_MAX of Linux).
const FILE_NAME_MAX: usize = 255;

const POSTFIX_PATH: &str = "Fragment.PathPostfixTemplate";

fn check_replication(replication: i32) -> Result<(), Invalid> {
    bounded("Replication", replication, 1, REPLICATION_MAX).map(drop)
}

fn check_append_rate(rate: i64) -> Result<(), Invalid> {
    at_least("MaxAppendRate", rate, 0).map(drop)
}

fn check_labels(labels: &LabelSet) -> Result<(), Invalid> {
    check_label_names(labels).at("Labels")?;
    check_content_labels(labels).at("Labels")
}

fn check_label_names(labels: &LabelSet) -> Result<(), Invalid> {
    for meta in [NAME, PREFIX] {
        if !labels.named(meta).is_empty() {
            return Err(Invalid::new(format!("Labels cannot include label {meta:?}")));
        }
    }
    for single in SINGLE_VALUED {
        let values = labels.named(single).len();
        if values > 1 {
            return Err(Invalid::new(format!(
                "expected single-value Label has multiple values ({single}: {values})"
            )));
        }
    }
    Ok(())
}

/// A message type says nothing without how messages are framed, nor a subtype without a type.
fn check_content_labels(labels: &LabelSet) -> Result<(), Invalid> {
    if let Some(content_type) = labels.value_of(CONTENT_TYPE) {
        content_type.parse::<mime::Mime>().map_err(|error| {
            Invalid::new(format!("parsing {CONTENT_TYPE} ({content_type}): {error}"))
        })?;
    }
    for (label, needed) in [(MESSAGE_TYPE, CONTENT_TYPE), (MESSAGE_SUBTYPE, MESSAGE_TYPE)] {
        if labels.value_of(label).is_some() && labels.value_of(needed).is_none() {
            return Err(Invalid::new(format!("expected {needed} label alongside {label}")));
        }
    }
    Ok(())
}

impl TryFrom<gazette::JournalSpec> for JournalSpec {
    type Error = Invalid;

    /// Converts and checks field by field, in Gazette's order, so that the first fault named is
    /// the same.
    fn try_from(spec: gazette::JournalSpec) -> Result<Self, Invalid> {
        let name = Journal::new(&spec.name).at("Name")?;
        check_replication(spec.replication)?;
        let labels = LabelSet::try_from(spec.labels.unwrap_or_default()).at("Labels")?;
        check_labels(&labels)?;
        let fragment = spec.fragment.unwrap_or_default().try_into().at("Fragment")?;
        let spec = JournalSpec {
            name,
            replication: spec.replication,
            labels,
            fragment,
            flags: Flags::try_from(spec.flags)?,
            max_append_rate: spec.max_append_rate,
            suspend: spec.suspend.map(Suspend::try_from).transpose().at("Suspend")?,
        };
        spec.validate()?;
        Ok(spec)
    }
}

impl From<JournalSpec> for gazette::JournalSpec {
    fn from(spec: JournalSpec) -> Self {
        gazette::JournalSpec {
            name: spec.name.as_str().to_string(),
            replication: spec.replication,
            labels: Some(spec.labels.into()),
            fragment: Some(spec.fragment.into()),
            flags: spec.flags.number(),
            max_append_rate: spec.max_append_rate,
            suspend: spec.suspend.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests;
