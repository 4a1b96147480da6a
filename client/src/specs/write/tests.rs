//! What is written is read again: trees, and lists of journals.

use super::*;
use crate::specs::node::Settings;
use crate::specs::read::nodes;
use crate::specs::{changes, flatten};
use proptest::prelude::*;
use protocol::request::{Change, Expect};
use protocol::{Codec, Flags, Label, LabelSet, Offset, Route, Suspend, SuspendLevel};
use std::collections::BTreeMap;
use std::time::Duration;

const SPECS: &str = "
children:
- name: local/app/one
  replication: 2
  labels: [{name: content-type, value: text/csv}, {name: tag, value: a}]
  fragment: &fragment
    length: 1048576
    compression_codec: GZIP
    stores: ['file:///', 's3://bucket/prefix/']
    refresh_interval: 1m30s
    path_postfix_template: date={{.Spool.FirstAppendTime.Format \"2006-01-02\"}}
  flags: O_RDONLY
  revision: 7
- name: local/app/two
  replication: 2
  labels: [{name: tag, value: a}]
  fragment: *fragment
  suspend: {level: PARTIAL, offset: 12}
  revision: 8
- name: local/log
  replication: 1
  fragment: *fragment
  revision: 9
";

/// The journals that changes make.
fn listed(changes: &[Change]) -> Vec<ListedJournal> {
    let listed = |change: &Change| match change {
        Change::Upsert { spec, expect } => ListedJournal {
            spec: (**spec).clone(),
            mod_revision: expect.number(),
            create_revision: 1,
            route: Route::default(),
        },
        Change::Delete { .. } => panic!("nothing is deleted"),
    };
    changes.iter().map(listed).collect()
}

#[test]
fn what_journals_share_is_said_once() {
    let found = changes("specs.yaml", SPECS).expect("valid");
    let text = to_yaml(listed(&found)).expect("can be written");
    let expected = "\
name: local/
fragment:
  length: 1048576
  compression_codec: GZIP
  stores:
  - file:///
  - s3://bucket/prefix/
  refresh_interval: 1m30s
  path_postfix_template: date={{.Spool.FirstAppendTime.Format \"2006-01-02\"}}
children:
- name: local/app/
  replication: 2
  labels:
  - name: tag
    value: a
  children:
  - name: local/app/one
    labels:
    - name: content-type
      value: text/csv
    flags: O_RDONLY
    revision: 7
  - name: local/app/two
    suspend:
      level: PARTIAL
      offset: 12
    revision: 8
- name: local/log
  replication: 1
  revision: 9
";
    assert_eq!(text, expected);
    assert_eq!(changes("again", &text).expect(&text), found);
    // Case: one journal, none
    let one = to_yaml(listed(&found[..1])).expect("can be written");
    assert!(one.starts_with("name: local/app/one\n"), "{one}");
    assert_eq!(changes("again", &one).expect(&one), found[..1]);
    assert!(
        changes("none", &to_yaml(Vec::new()).expect("can be written")).expect("none").is_empty()
    );
}

fn label_sets() -> impl Strategy<Value = LabelSet> {
    // Values that YAML would take for something else, were they not quoted.
    let value =
        prop_oneof!["[a-z]{1,3}", Just("7".into()), Just("true".into()), Just("null".into())];
    proptest::collection::btree_map("[a-c]{2}", value, 0..3).prop_map(
        |labels: BTreeMap<String, String>| {
            LabelSet::new(labels.into_iter().map(|(n, v)| Label::new(n, v)).collect())
                .expect("sorted")
        },
    )
}

/// Settings in which anything may be unset.
fn any_settings() -> impl Strategy<Value = Settings> {
    let codec = proptest::option::of(proptest::sample::select(&Codec::ALL[..4]));
    let flags = proptest::sample::select(&Flags::ALL[..]);
    let stores = proptest::collection::vec("[a-z]{1,4}", 0..3);
    let seconds =
        |list: &'static [u64]| proptest::sample::select(list).prop_map(Duration::from_secs);
    let fragment = (
        proptest::sample::select(&[0u64, 1024, 1 << 34][..]),
        codec,
        stores,
        seconds(&[0, 1, 90, 86_400]),
        seconds(&[0, 1, 31_536_000]),
        seconds(&[0, 60, 3600]),
    );
    (0..3i32, label_sets(), fragment, flags, proptest::sample::select(&[0i64, 1, i64::MAX][..]))
        .prop_map(|(replication, labels, fragment, flags, max_append_rate)| Settings {
            replication,
            labels,
            length: fragment.0,
            codec: fragment.1,
            stores: fragment.2.iter().map(|name| format!("s3://{name}/")).collect(),
            refresh_interval: fragment.3,
            retention: fragment.4,
            flush_interval: fragment.5,
            path_postfix_template: String::new(),
            flags,
            max_append_rate,
        })
}

fn any_suspend() -> impl Strategy<Value = Option<Suspend>> {
    let level = proptest::sample::select(&SuspendLevel::ALL[..]);
    proptest::option::of((level, any::<u32>()))
        .prop_map(|suspend| suspend.map(|(level, at)| Suspend { level, offset: Offset::from(at) }))
}

/// A node of any depth; what it says of names need not make sense.
fn any_node() -> impl Strategy<Value = Node> {
    let leaf = ("[a-z/]{1,8}", "[ -~]{0,8}", proptest::option::of(any::<bool>()), -1..9i64)
        .prop_flat_map(|(name, comment, delete, revision)| {
            (any_settings(), any_suspend()).prop_map(move |(settings, suspend)| Node {
                name: name.clone(),
                comment: comment.clone(),
                delete,
                revision,
                settings,
                suspend,
                children: Vec::new(),
            })
        });
    leaf.prop_recursive(3, 12, 3, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..3))
            .prop_map(|(node, children)| Node { children, ..node })
    })
}

/// Whole specs of distinct journals, with revisions.
fn any_journals() -> impl Strategy<Value = Vec<Change>> {
    let name = "[ab-]{1,2}(/[ab-]{1,2}){1,3}";
    let spec = (any_settings(), any_suspend(), 1..9i64);
    proptest::collection::btree_map(name, spec, 0..8).prop_map(|journals| {
        let change = |(name, (settings, suspend, revision)): (String, (Settings, _, i64))| {
            let or = |value: Duration, least: u64| value.max(Duration::from_secs(least));
            let whole = Settings {
                replication: settings.replication.max(1),
                length: settings.length.max(1024),
                codec: settings.codec.or(Some(Codec::Snappy)),
                refresh_interval: or(settings.refresh_interval, 1),
                ..settings
            };
            let name = name.parse().ok()?;
            let spec = whole.spec(name, suspend).expect("whole");
            Some(Change::Upsert { spec: Box::new(spec), expect: Expect::At(revision) })
        };
        journals.into_iter().filter_map(change).collect()
    })
}

proptest! {
    #[test]
    fn every_tree_survives_as_text(node in any_node()) {
        let text = written(node.clone()).expect("can be written");
        prop_assert_eq!(nodes(&text).expect(&text), vec![node]);
    }

    #[test]
    fn every_list_survives_as_a_tree(expected in any_journals()) {
        let text = to_yaml(listed(&expected)).expect("can be written");
        prop_assert_eq!(changes("text", &text).expect(&text), expected);
    }

    #[test]
    fn no_text_panics(text in "[ab:{}\\[\\], \n/-]{0,40}") {
        for node in nodes(&text).unwrap_or_default() {
            let _ = flatten::flatten(node);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = changes("bytes", &String::from_utf8_lossy(&bytes));
    }
}
