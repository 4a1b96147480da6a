//! From text to changes, strictly: an unknown key is an error.

use crate::Error;
use protocol::request::{Change, Expect};
use protocol::{
    Codec, Flags, FragmentSpec, Invalid, Journal, JournalSpec, Label, LabelSet, Offset, Suspend,
    SuspendLevel, duration,
};
use serde::Deserialize;
use std::time::Duration;

/// The changes that a text asks for. `origin` names it in errors.
pub fn changes(origin: &str, text: &str) -> Result<Vec<Change>, Error> {
    let refused = |why: String| Error::Specs(origin.to_owned(), why);
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let value: serde_yaml_ng::Value =
        serde_yaml_ng::from_str(text).map_err(|error| refused(error.to_string()))?;
    let list = entries(value).map_err(refused)?;
    let mut changes: Vec<Change> = Vec::with_capacity(list.len());
    for (at, entry) in list.into_iter().enumerate() {
        let number = at + 1;
        let entry =
            Entry::read(entry).map_err(|why| refused(format!("journal {number}: {why}")))?;
        let change = entry.change().map_err(|why| refused(format!("journal {number}: {why}")))?;
        if changes.iter().any(|other| other.journal() == change.journal()) {
            return Err(refused(format!("journal {number}: {} comes twice", change.journal())));
        }
        changes.push(change);
    }
    Ok(changes)
}

/// What stands beside a list of journals and says nothing about them.
const LIST_KEYS: [&str; 6] = ["journals", "children", "comment", "status", "header", "name"];

/// The single journals of a text.
fn entries(value: serde_yaml_ng::Value) -> Result<Vec<serde_yaml_ng::Value>, String> {
    use serde_yaml_ng::Value;
    let mut map = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Sequence(list) => {
            return Ok(list.into_iter().map(entries).collect::<Result<Vec<_>, _>>()?.concat());
        }
        Value::Mapping(map) => map,
        _ => return Err("expected a list of journals, or one journal".into()),
    };
    let Some(list) = ["journals", "children"].iter().find_map(|key| map.remove(key)) else {
        return Ok(vec![Value::Mapping(map)]);
    };
    let inherited = map.keys().filter_map(Value::as_str).find(|key| !LIST_KEYS.contains(key));
    match inherited {
        Some(key) => Err(format!(
            "`{key}` stands beside a list of journals: nothing is inherited, say it for each one"
        )),
        None => entries(list),
    }
}

/// One journal.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    name: String,
    #[serde(rename = "comment")]
    _comment: Option<String>,
    delete: bool,
    revision: Option<i64>,
    replication: i32,
    labels: Labels,
    fragment: Fragment,
    flags: Option<Word>,
    max_append_rate: Option<Word>,
    suspend: Option<Suspended>,
}

/// The form of a listed journal: its spec, and what the broker says of it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Listed {
    spec: serde_yaml_ng::Value,
    #[serde(alias = "modRevision", alias = "revision")]
    mod_revision: Option<Word>,
    #[serde(rename = "create_revision", alias = "createRevision")]
    _create_revision: Option<Word>,
    #[serde(rename = "route")]
    _route: Option<serde_yaml_ng::Value>,
}

/// A text or a number: enums come by name or by number, long numbers of JSON as texts.
#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
enum Word {
    Number(i64),
    Text(String),
}

impl Word {
    fn number(&self, name: &str) -> Result<i64, String> {
        match self {
            Word::Number(number) => Ok(*number),
            Word::Text(text) => text.parse().map_err(|_| format!("{name}: not a number ({text})")),
        }
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Word::Number(number) => number.fmt(f),
            Word::Text(text) => text.fmt(f),
        }
    }
}

/// A list of labels, as in YAML, or such a list under `labels`, as in JSON.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
enum Labels {
    List(Vec<NameValue>),
    Nested { labels: Vec<NameValue> },
}

impl Default for Labels {
    fn default() -> Self {
        Labels::List(Vec::new())
    }
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct NameValue {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Fragment {
    length: Option<Word>,
    compression_codec: Option<String>,
    stores: Vec<String>,
    refresh_interval: Option<String>,
    retention: Option<String>,
    flush_interval: Option<String>,
    path_postfix_template: String,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Suspended {
    level: Word,
    #[serde(default)]
    offset: Option<Word>,
}

impl Entry {
    fn read(value: serde_yaml_ng::Value) -> Result<Entry, String> {
        let is_listed = value.as_mapping().is_some_and(|map| map.contains_key("spec"));
        if !is_listed {
            return serde_yaml_ng::from_value(value).map_err(|error| error.to_string());
        }
        let listed: Listed = serde_yaml_ng::from_value(value).map_err(|error| error.to_string())?;
        let mut entry: Entry =
            serde_yaml_ng::from_value(listed.spec).map_err(|error| error.to_string())?;
        if let Some(revision) = listed.mod_revision {
            entry.revision = Some(revision.number("mod_revision")?);
        }
        Ok(entry)
    }

    fn change(self) -> Result<Change, String> {
        let journal = Journal::new(&self.name).map_err(|invalid| format!("name: {invalid}"))?;
        let named = |why: String| format!("{journal}: {why}");
        if self.delete {
            let expect = expectation(self.revision).map_err(named)?;
            return match expect {
                Expect::Absent => Err(named("delete needs a revision, or -1 for any".into())),
                expect => Ok(Change::Delete { journal: journal.clone(), expect }),
            };
        }
        let expect = expectation(self.revision).map_err(named)?;
        let spec = self.spec(journal.clone()).map_err(named)?;
        spec.validate().map_err(|invalid| named(invalid.to_string()))?;
        Ok(Change::Upsert { spec: Box::new(spec), expect })
    }

    fn spec(self, name: Journal) -> Result<JournalSpec, String> {
        let rate = self.max_append_rate.map(|rate| rate.number("max_append_rate")).transpose()?;
        Ok(JournalSpec {
            name,
            replication: self.replication,
            labels: self.labels.set().map_err(|invalid| format!("labels: {invalid}"))?,
            fragment: self.fragment.spec().map_err(|why| format!("fragment.{why}"))?,
            flags: parsed::<Flags>("flags", self.flags)?.unwrap_or_default(),
            max_append_rate: rate.unwrap_or_default(),
            suspend: self.suspend.map(Suspended::suspend).transpose()?,
        })
    }
}

/// Without a revision the journal must be new, as in gazctl; -1 asks for nothing.
fn expectation(revision: Option<i64>) -> Result<Expect, String> {
    match revision.unwrap_or_default() {
        -1 => Ok(Expect::Any),
        0 => Ok(Expect::Absent),
        revision @ 1.. => Ok(Expect::At(revision)),
        revision => Err(format!("revision: {revision} is below -1")),
    }
}

fn parsed<T: std::str::FromStr<Err = Invalid>>(
    name: &str,
    word: Option<Word>,
) -> Result<Option<T>, String> {
    let word = word.map(|word| word.to_string().parse());
    word.transpose().map_err(|invalid| format!("{name}: {invalid}"))
}

impl Labels {
    fn set(self) -> Result<LabelSet, Invalid> {
        let (Labels::List(list) | Labels::Nested { labels: list }) = self;
        let mut labels: Vec<Label> =
            list.into_iter().map(|label| Label::new(label.name, label.value)).collect();
        labels.sort();
        LabelSet::new(labels)
    }
}

impl Fragment {
    fn spec(self) -> Result<FragmentSpec, String> {
        let length =
            self.length.ok_or("length: missing (bytes of a fragment, such as 67108864)")?;
        let length = length.number("length")?;
        let codec = self.compression_codec.ok_or_else(|| {
            let names = Codec::ALL.map(Codec::name).join(", ");
            format!("compression_codec: missing (one of {names})")
        })?;
        let codec = codec.parse().map_err(|invalid: Invalid| invalid.to_string())?;
        let refresh = self.refresh_interval.ok_or("refresh_interval: missing (such as 5m0s)")?;
        Ok(FragmentSpec {
            length: u64::try_from(length).map_err(|_| format!("length: {length} is negative"))?,
            codec,
            stores: self.stores,
            refresh_interval: interval("refresh_interval", Some(refresh))?,
            retention: interval("retention", self.retention)?,
            flush_interval: interval("flush_interval", self.flush_interval)?,
            path_postfix_template: self.path_postfix_template,
        })
    }
}

fn interval(name: &str, text: Option<String>) -> Result<Duration, String> {
    let Some(text) = text else { return Ok(Duration::ZERO) };
    duration::parse(&text).map_err(|invalid| format!("{name}: {invalid}"))
}

impl Suspended {
    fn suspend(self) -> Result<Suspend, String> {
        let level = parsed::<SuspendLevel>("suspend.level", Some(self.level))?;
        let offset = self.offset.map(|offset| offset.number("suspend.offset")).transpose()?;
        let offset = Offset::new(offset.unwrap_or_default());
        let offset = offset.map_err(|invalid| format!("suspend.offset: {invalid}"))?;
        Ok(Suspend { level: level.unwrap_or_default(), offset })
    }
}

#[cfg(test)]
mod tests;
