//! The keys of specs in YAML and JSON, as serde reads and writes them. An unknown or repeated key
//! is an error.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Formatter, Result as Written};

/// One node. Of the keys that are only read, `spec` and its neighbours are those of a listing.
#[derive(Deserialize, Serialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct NodeText {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comment: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<Word>,
    #[serde(skip_serializing_if = "LabelsText::is_empty")]
    pub labels: LabelsText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<FragmentText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_append_rate: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<SuspendText>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        alias = "mod_revision",
        alias = "modRevision"
    )]
    pub revision: Option<Word>,
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "journals")]
    pub children: Vec<NodeText>,

    #[serde(skip_serializing)]
    pub spec: Option<Box<NodeText>>,
    #[serde(skip_serializing, rename = "create_revision", alias = "createRevision")]
    pub _create_revision: Option<IgnoredAny>,
    #[serde(skip_serializing, rename = "route")]
    pub _route: Option<IgnoredAny>,
    #[serde(skip_serializing, rename = "status")]
    pub _status: Option<IgnoredAny>,
    #[serde(skip_serializing, rename = "header")]
    pub _header: Option<IgnoredAny>,
}

/// A text or a number: enums come by name or by number, long numbers of JSON as texts.
#[derive(Serialize, Debug, Clone)]
#[serde(untagged)]
pub enum Word {
    Number(i64),
    Text(String),
}

impl Word {
    /// The number that it is; `key` names it in the error.
    pub fn number(&self, key: &str) -> Result<i64, String> {
        match self {
            Word::Number(number) => Ok(*number),
            Word::Text(text) => text.parse().map_err(|_| format!("{key}: not a number ({text})")),
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

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordVisitor)
    }
}

struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str("a text or a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Word, E> {
        Ok(Word::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Word, E> {
        Ok(i64::try_from(number).map_or_else(|_| Word::Text(number.to_string()), Word::Number))
    }

    fn visit_bool<E: Error>(self, word: bool) -> Result<Word, E> {
        Ok(Word::Text(word.to_string()))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Word, E> {
        Ok(Word::Text(text.to_owned()))
    }
}

/// Labels: a list, as in YAML, or such a list under `labels`, as in JSON.
#[derive(Debug, Default)]
pub struct LabelsText(pub Vec<LabelText>);

impl LabelsText {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for LabelsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LabelsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelsVisitor)
    }
}

struct LabelsVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nested {
    labels: Vec<LabelText>,
}

impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = LabelsText;

    fn expecting(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str("a list of labels, each with name and value")
    }

    fn visit_unit<E: Error>(self) -> Result<LabelsText, E> {
        Ok(LabelsText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LabelsText, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(LabelsText)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LabelsText, A::Error> {
        let nested = Nested::deserialize(MapAccessDeserializer::new(map))?;
        Ok(LabelsText(nested.labels))
    }
}

#[derive(Deserialize, Serialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LabelText {
    pub name: Word,
    #[serde(default = "empty_word")]
    pub value: Word,
    /// No label of a spec has it, but JSON says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefix: bool,
}

fn empty_word() -> Word {
    Word::Text(String::new())
}

#[derive(Deserialize, Serialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct FragmentText {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_codec: Option<Word>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_interval: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_interval: Option<Word>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path_postfix_template: String,
}

#[derive(Deserialize, Serialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct SuspendText {
    pub level: Word,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Word>,
}
