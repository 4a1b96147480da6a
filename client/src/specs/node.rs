//! A node of a tree of specs, with values that may be unset, to and from its text.

use super::text::{FragmentText, LabelText, LabelsText, NodeText, SuspendText, Word};
use protocol::{
    Codec, Flags, FragmentSpec, Invalid, Journal, JournalSpec, Label, LabelSet, Offset, Suspend,
    SuspendLevel, duration,
};
use std::str::FromStr;
use std::time::Duration;

/// A journal, or a directory of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The whole name. Empty, or ending in `/`: a directory.
    pub name: String,
    pub comment: String,
    /// Whether its journals are deleted; unset is as the directory says.
    pub delete: Option<bool>,
    /// On condition of which a journal is changed; 0 where it must be new, -1 for any.
    pub revision: i64,
    pub settings: Settings,
    /// Of this one journal: nothing inherits it.
    pub suspend: Option<Suspend>,
    pub children: Vec<Node>,
}

/// What a journal can have from its directory. A value of zero is unset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    pub replication: i32,
    pub labels: LabelSet,
    pub length: u64,
    pub codec: Option<Codec>,
    pub stores: Vec<String>,
    pub refresh_interval: Duration,
    pub retention: Duration,
    pub flush_interval: Duration,
    pub path_postfix_template: String,
    pub flags: Flags,
    pub max_append_rate: i64,
}

impl Node {
    pub fn is_directory(&self) -> bool {
        self.name.is_empty() || self.name.ends_with('/')
    }
}

impl Settings {
    /// The whole spec of a journal. `Err` names what is missing.
    pub fn spec(self, name: Journal, suspend: Option<Suspend>) -> Result<JournalSpec, String> {
        if self.replication == 0 {
            return Err("replication: missing (such as 1)".into());
        }
        if self.length == 0 {
            return Err("fragment.length: missing (bytes of a fragment, such as 67108864)".into());
        }
        let codec = self.codec.ok_or_else(|| {
            let names = Codec::ALL.map(Codec::name).join(", ");
            format!("fragment.compression_codec: missing (one of {names})")
        })?;
        if self.refresh_interval.is_zero() {
            return Err("fragment.refresh_interval: missing (such as 5m0s)".into());
        }
        let spec = JournalSpec {
            name,
            replication: self.replication,
            labels: self.labels,
            fragment: FragmentSpec {
                length: self.length,
                codec,
                stores: self.stores,
                refresh_interval: self.refresh_interval,
                retention: self.retention,
                flush_interval: self.flush_interval,
                path_postfix_template: self.path_postfix_template,
            },
            flags: self.flags,
            max_append_rate: self.max_append_rate,
            suspend,
        };
        spec.validate().map_err(|invalid| invalid.to_string())?;
        Ok(spec)
    }
}

impl From<JournalSpec> for Settings {
    /// Forgets the name, and `suspend`, which belongs to one journal.
    fn from(spec: JournalSpec) -> Self {
        Settings {
            replication: spec.replication,
            labels: spec.labels,
            length: spec.fragment.length,
            codec: Some(spec.fragment.codec),
            stores: spec.fragment.stores,
            refresh_interval: spec.fragment.refresh_interval,
            retention: spec.fragment.retention,
            flush_interval: spec.fragment.flush_interval,
            path_postfix_template: spec.fragment.path_postfix_template,
            flags: spec.flags,
            max_append_rate: spec.max_append_rate,
        }
    }
}

impl TryFrom<NodeText> for Node {
    type Error = String;

    fn try_from(text: NodeText) -> Result<Self, String> {
        if let Some(spec) = text.spec {
            // The form of a listed journal: its spec, and what the broker says of it.
            let listed = Node::try_from(*spec)?;
            let revision = number("mod_revision", text.revision)?;
            return Ok(Node { revision, ..listed });
        }
        let name = text.name;
        let named = |why: String| match name.as_str() {
            "" => why,
            name => format!("{name}: {why}"),
        };
        let read = |why: Result<Settings, String>| why.map_err(named);
        let settings = read(settings(
            text.replication,
            text.labels,
            text.fragment.unwrap_or_default(),
            text.flags,
            text.max_append_rate,
        ))?;
        let suspend = text.suspend.map(suspend).transpose().map_err(named)?;
        let revision = number("revision", text.revision).map_err(named)?;
        let children = text.children.into_iter().map(Node::try_from);
        Ok(Node {
            comment: text.comment,
            delete: text.delete,
            revision,
            settings,
            suspend,
            children: children.collect::<Result<_, _>>()?,
            name,
        })
    }
}

fn settings(
    replication: Option<Word>,
    labels: LabelsText,
    fragment: FragmentText,
    flags: Option<Word>,
    rate: Option<Word>,
) -> Result<Settings, String> {
    let replication = number("replication", replication)?;
    let length = number("fragment.length", fragment.length)?;
    Ok(Settings {
        replication: i32::try_from(replication)
            .map_err(|_| format!("replication: {replication} is out of range"))?,
        labels: label_set(labels).map_err(|invalid| format!("labels: {invalid}"))?,
        length: u64::try_from(length)
            .map_err(|_| format!("fragment.length: {length} is negative"))?,
        codec: codec(fragment.compression_codec)?,
        stores: fragment.stores,
        refresh_interval: interval("fragment.refresh_interval", fragment.refresh_interval)?,
        retention: interval("fragment.retention", fragment.retention)?,
        flush_interval: interval("fragment.flush_interval", fragment.flush_interval)?,
        path_postfix_template: fragment.path_postfix_template,
        flags: parsed::<Flags>("flags", flags)?.unwrap_or_default(),
        max_append_rate: number("max_append_rate", rate)?,
    })
}

fn number(key: &str, word: Option<Word>) -> Result<i64, String> {
    word.map_or(Ok(0), |word| word.number(key))
}

/// A codec by its name or number. The 0 of the wire is one that is unset.
fn codec(word: Option<Word>) -> Result<Option<Codec>, String> {
    let key = "fragment.compression_codec";
    match word {
        None => Ok(None),
        Some(Word::Text(text)) if text == "INVALID" => Ok(None),
        Some(Word::Number(0)) => Ok(None),
        Some(Word::Number(number)) => i32::try_from(number)
            .ok()
            .and_then(|number| Codec::try_from(number).ok())
            .map(Some)
            .ok_or_else(|| format!("{key}: no codec has the number {number}")),
        word => parsed(key, word),
    }
}

fn parsed<T: FromStr<Err = Invalid>>(key: &str, word: Option<Word>) -> Result<Option<T>, String> {
    let word = word.map(|word| word.to_string().parse());
    word.transpose().map_err(|invalid| format!("{key}: {invalid}"))
}

fn interval(key: &str, word: Option<Word>) -> Result<Duration, String> {
    let Some(word) = word else { return Ok(Duration::ZERO) };
    duration::parse(&word.to_string()).map_err(|invalid| format!("{key}: {invalid}"))
}

fn label_set(text: LabelsText) -> Result<LabelSet, Invalid> {
    let label = |label: LabelText| Label {
        prefix: label.prefix,
        ..Label::new(label.name.to_string(), label.value.to_string())
    };
    let mut labels: Vec<Label> = text.0.into_iter().map(label).collect();
    labels.sort();
    LabelSet::new(labels)
}

fn suspend(text: SuspendText) -> Result<Suspend, String> {
    let level = parsed::<SuspendLevel>("suspend.level", Some(text.level))?;
    let offset = Offset::new(number("suspend.offset", text.offset)?);
    let offset = offset.map_err(|invalid| format!("suspend.offset: {invalid}"))?;
    Ok(Suspend { level: level.unwrap_or_default(), offset })
}

impl From<Node> for NodeText {
    fn from(node: Node) -> Self {
        let set = |number: i64| (number != 0).then_some(Word::Number(number));
        let Settings { replication, labels, flags, max_append_rate, .. } = &node.settings;
        let label = |label: &Label| LabelText {
            name: Word::Text(label.name.clone()),
            value: Word::Text(label.value.clone()),
            prefix: false,
        };
        NodeText {
            comment: node.comment,
            delete: node.delete,
            replication: set((*replication).into()),
            labels: LabelsText(labels.labels().iter().map(label).collect()),
            flags: set(flags.number().into()).map(|_| Word::Text(flags.name().to_owned())),
            max_append_rate: set(*max_append_rate),
            fragment: fragment_text(node.settings),
            suspend: node.suspend.map(|suspend| SuspendText {
                level: Word::Text(suspend.level.name().to_owned()),
                offset: set(suspend.offset.get()),
            }),
            revision: set(node.revision),
            children: node.children.into_iter().map(NodeText::from).collect(),
            name: node.name,
            ..NodeText::default()
        }
    }
}

/// `None` where all of it is unset.
fn fragment_text(settings: Settings) -> Option<FragmentText> {
    let interval = |of: Duration| (!of.is_zero()).then(|| Word::Text(duration::format(of)));
    // Lengths that a spec can have are far below the bound of the type.
    let length = i64::try_from(settings.length).unwrap_or(i64::MAX);
    let text = FragmentText {
        length: (length != 0).then_some(Word::Number(length)),
        compression_codec: settings.codec.map(|codec| Word::Text(codec.name().to_owned())),
        stores: settings.stores,
        refresh_interval: interval(settings.refresh_interval),
        retention: interval(settings.retention),
        flush_interval: interval(settings.flush_interval),
        path_postfix_template: settings.path_postfix_template,
    };
    let is_unset = text.length.is_none()
        && text.compression_codec.is_none()
        && text.stores.is_empty()
        && text.refresh_interval.is_none()
        && text.retention.is_none()
        && text.flush_interval.is_none()
        && text.path_postfix_template.is_empty();
    (!is_unset).then_some(text)
}
