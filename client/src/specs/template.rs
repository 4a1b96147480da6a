//! Templates as text: a spec without a name, and the names that it is for.

use super::node::{Node, Settings};
use super::text::NodeText;
use crate::Error;
use protocol::{Journal, JournalSpec};
use serde::{Deserialize, Serialize};
use serde_yaml_ng::{Mapping, Value};

/// How journals whose names begin with `prefix` are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSpec {
    pub prefix: String,
    /// Patterns of last parts of names that are refused.
    pub refuse: Vec<String>,
    /// Its name says nothing.
    pub spec: JournalSpec,
}

/// The keys of a template that a spec has not.
#[derive(Deserialize, Serialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
struct Own {
    prefix: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refuse: Vec<String>,
}

const OWN_KEYS: [&str; 2] = ["prefix", "refuse"];

impl TemplateSpec {
    /// The templates of a text: one, or a list. `origin` names it in errors.
    pub fn parse(origin: &str, text: &str) -> Result<Vec<TemplateSpec>, Error> {
        let refused = |why: String| Error::Specs(origin.to_owned(), why);
        let value: Value =
            serde_yaml_ng::from_str(text).map_err(|error| refused(error.to_string()))?;
        let list = match value {
            Value::Null => Vec::new(),
            Value::Sequence(list) => list,
            one => vec![one],
        };
        list.into_iter().map(|value| TemplateSpec::read(value).map_err(refused)).collect()
    }

    fn read(value: Value) -> Result<TemplateSpec, String> {
        let Value::Mapping(mut rest) = value else {
            return Err("expected a template: prefix, refuse, and the keys of a spec".into());
        };
        let mut own = Mapping::new();
        for key in OWN_KEYS {
            if let Some((key, value)) = rest.remove_entry(key) {
                own.insert(key, value);
            }
        }
        let own: Own = serde_yaml_ng::from_value(own.into()).map_err(|error| error.to_string())?;
        let named = |why: String| format!("template {:?}: {why}", own.prefix);
        let text: NodeText =
            serde_yaml_ng::from_value(rest.into()).map_err(|error| named(error.to_string()))?;
        let node = Node::try_from(text).map_err(named)?;
        if node != (Node { settings: node.settings.clone(), ..Node::default() }) {
            let what = "a template is for names that begin with its prefix, so it has no name, \
                        revision or children of its own";
            return Err(named(what.into()));
        }
        let spec = node.settings.spec(nobody(), None).map_err(named)?;
        Ok(TemplateSpec { prefix: own.prefix, refuse: own.refuse, spec })
    }

    /// The text of templates, which [`TemplateSpec::parse`] takes again.
    pub fn to_yaml(templates: &[TemplateSpec]) -> Result<String, Error> {
        let failed = |error: serde_yaml_ng::Error| {
            Error::Specs("the templates".to_owned(), error.to_string())
        };
        let mut list = Vec::new();
        for template in templates {
            let own = Own { prefix: template.prefix.clone(), refuse: template.refuse.clone() };
            let settings = Settings::from(template.spec.clone());
            let node = NodeText::from(Node { settings, ..Node::default() });
            let mut value = serde_yaml_ng::to_value(own).map_err(failed)?;
            if let (Value::Mapping(all), Value::Mapping(spec)) =
                (&mut value, serde_yaml_ng::to_value(node).map_err(failed)?)
            {
                all.extend(spec);
            }
            list.push(value);
        }
        serde_yaml_ng::to_string(&list).map_err(failed)
    }
}

/// The name in a spec that has none: a spec is valid only with one.
fn nobody() -> Journal {
    Journal::new("template").expect("a valid name")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
prefix: local/app/
refuse: ['*.tmp', '*~']
replication: 1
labels: [{name: tag, value: a}]
fragment: {length: 1048576, compression_codec: GZIP, refresh_interval: 1m, retention: 24h}
";

    #[test]
    fn templates_are_read_and_written() {
        let found = TemplateSpec::parse("t.yaml", TEXT).expect("valid");
        assert_eq!((found[0].prefix.as_str(), found[0].refuse.len()), ("local/app/", 2));
        let text = TemplateSpec::to_yaml(&found).expect("can be written");
        assert_eq!(TemplateSpec::parse("again", &text).expect(&text), found);
    }

    #[test]
    fn what_is_wrong_is_named() {
        // Case: the text, what the error names
        let cases = [
            ("just text".to_owned(), "expected a template"),
            (TEXT.replace("refuse", "refsue"), "refsue"),
            (TEXT.replace("length: 1048576, ", ""), "fragment.length: missing"),
            (format!("{TEXT}name: local/x"), "no name"),
        ];
        for (text, expected) in cases {
            let error = TemplateSpec::parse("t.yaml", &text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("t.yaml"), "{error}");
        }
    }
}
