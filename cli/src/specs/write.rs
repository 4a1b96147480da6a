//! From listed journals to text that `journals apply` takes again.

use crate::Error;
use protocol::response::ListedJournal;
use protocol::{FragmentSpec, JournalSpec, Route, duration};
use serde::Serialize;

/// A journal as YAML shows it: the spec, with the revision on whose condition it can be applied.
#[derive(Serialize, Debug)]
struct Shown {
    #[serde(flatten)]
    spec: Spec,
    revision: i64,
}

#[derive(Serialize, Debug)]
struct Spec {
    name: String,
    replication: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<NameValue>,
    fragment: Fragment,
    flags: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    max_append_rate: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspend: Option<Suspended>,
}

#[derive(Serialize, Debug)]
struct NameValue {
    name: String,
    value: String,
}

#[derive(Serialize, Debug)]
struct Fragment {
    length: u64,
    compression_codec: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stores: Vec<String>,
    refresh_interval: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    retention: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    flush_interval: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    path_postfix_template: String,
}

#[derive(Serialize, Debug)]
struct Suspended {
    level: &'static str,
    offset: i64,
}

/// A journal as JSON shows it, with the names of the wire.
#[derive(Serialize, Debug)]
struct Listed {
    spec: Spec,
    mod_revision: i64,
    create_revision: i64,
    route: Members,
}

#[derive(Serialize, Debug)]
struct Members {
    members: Vec<Member>,
    primary: i64,
    endpoints: Vec<String>,
}

#[derive(Serialize, Debug)]
struct Member {
    zone: String,
    suffix: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl From<JournalSpec> for Spec {
    fn from(spec: JournalSpec) -> Self {
        let label = |label: &protocol::Label| NameValue {
            name: label.name.clone(),
            value: label.value.clone(),
        };
        Spec {
            name: spec.name.to_string(),
            replication: spec.replication,
            labels: spec.labels.labels().iter().map(label).collect(),
            fragment: spec.fragment.into(),
            flags: spec.flags.name(),
            max_append_rate: spec.max_append_rate,
            suspend: spec.suspend.map(|suspend| Suspended {
                level: suspend.level.name(),
                offset: suspend.offset.get(),
            }),
        }
    }
}

impl From<FragmentSpec> for Fragment {
    fn from(spec: FragmentSpec) -> Self {
        // Zero means unset, which is not written.
        let interval = |of: std::time::Duration| match of.is_zero() {
            true => String::new(),
            false => duration::format(of),
        };
        Fragment {
            length: spec.length,
            compression_codec: spec.codec.name(),
            stores: spec.stores,
            refresh_interval: duration::format(spec.refresh_interval),
            retention: interval(spec.retention),
            flush_interval: interval(spec.flush_interval),
            path_postfix_template: spec.path_postfix_template,
        }
    }
}

impl From<Route> for Members {
    fn from(route: Route) -> Self {
        let primary = route.primary.and_then(|primary| i64::try_from(primary).ok());
        let member = |id: protocol::ProcessId| Member { zone: id.zone, suffix: id.suffix };
        Members {
            members: route.members.into_iter().map(member).collect(),
            primary: primary.unwrap_or(-1),
            endpoints: route.endpoints,
        }
    }
}

/// A list of specs with their revisions.
pub fn to_yaml(listed: Vec<ListedJournal>) -> Result<String, Error> {
    let shown =
        |listed: ListedJournal| Shown { spec: listed.spec.into(), revision: listed.mod_revision };
    let shown: Vec<Shown> = listed.into_iter().map(shown).collect();
    serde_yaml_ng::to_string(&shown).map_err(|error| unwritable(&error.to_string()))
}

/// An object with the list of journals, as Gazette's list answers it.
pub fn to_json(listed: Vec<ListedJournal>) -> Result<String, Error> {
    let shown = |listed: ListedJournal| Listed {
        spec: listed.spec.into(),
        mod_revision: listed.mod_revision,
        create_revision: listed.create_revision,
        route: listed.route.into(),
    };
    let journals: Vec<Listed> = listed.into_iter().map(shown).collect();
    let object = serde_json::json!({ "journals": journals });
    let text = serde_json::to_string_pretty(&object);
    text.map(|text| text + "\n").map_err(|error| unwritable(&error.to_string()))
}

fn unwritable(why: &str) -> Error {
    Error::Specs("the list".to_owned(), why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specs::changes;
    use protocol::request::{Change, Expect};

    const SPEC: &str = "
name: local/log
replication: 2
labels: [{name: content-type, value: text/csv}, {name: tag, value: a}]
fragment:
  length: 1048576
  compression_codec: GZIP
  stores: ['file:///', 's3://bucket/prefix/']
  refresh_interval: 1m30s
  retention: 24h
  path_postfix_template: date={{.Spool.FirstAppendTime.Format \"2006-01-02\"}}
flags: O_RDONLY
suspend: {level: PARTIAL, offset: 12}
revision: 7
";

    #[test]
    fn what_is_written_is_read_again() {
        let found = changes("specs.yaml", SPEC).expect("valid");
        let Change::Upsert { spec, .. } = &found[0] else { panic!("{found:?}") };
        let listed = || ListedJournal {
            spec: (**spec).clone(),
            mod_revision: 7,
            create_revision: 3,
            route: Route::default(),
        };
        for text in [to_yaml(vec![listed()]), to_json(vec![listed()])] {
            let text = text.expect("can be written");
            assert_eq!(changes("again", &text).expect(&text), found);
        }
        assert_eq!(found[0].expect(), Expect::At(7));
        assert!(to_yaml(Vec::new()).expect("can be written").starts_with("[]"));
    }
}
