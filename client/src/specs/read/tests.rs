//! Specs as people write them, and as they get them wrong.

use super::*;
use protocol::request::Expect;
use protocol::{Codec, Flags, JournalSpec};
use std::time::Duration;

const FULL: &str = "
name: local/log
replication: 1
labels:
- {name: tag, value: b}
- name: tag
  value: a
fragment:
  length: 1048576
  compression_codec: ZSTANDARD
  stores: [file:///]
  refresh_interval: 1m0s
  flush_interval: 1h
flags: O_RDWR
max_append_rate: 100
";

const SHORT: &str = "{name: NAME, replication: 1, fragment: \
    {length: 1024, compression_codec: NONE, refresh_interval: 30s}}";

fn short(name: &str) -> String {
    SHORT.replace("NAME", name)
}

fn names(text: &str) -> Result<Vec<String>, String> {
    let found = changes("specs.yaml", text).map_err(|error| error.to_string())?;
    Ok(found.iter().map(|change| change.journal().to_string()).collect())
}

#[test]
fn a_spec_is_read_whole() {
    let found = changes("specs.yaml", FULL).expect("valid");
    let [Change::Upsert { spec, expect: Expect::Absent }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(spec.name.as_str(), "local/log");
    assert_eq!(spec.labels.values_of("tag").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((spec.fragment.length, spec.fragment.codec), (1 << 20, Codec::Zstandard));
    assert_eq!(spec.fragment.refresh_interval, Duration::from_secs(60));
    assert_eq!(spec.fragment.flush_interval, Duration::from_secs(3600));
    assert_eq!((spec.flags, spec.max_append_rate), (Flags::ReadWrite, 100));
}

#[test]
fn lists_come_in_several_forms() {
    let (one, two) = (short("local/one"), short("local/two"));
    // Case: the text, the journals in it
    let cases = [
        (String::new(), vec![]),
        ("# nothing\n".to_owned(), vec![]),
        ("[]".to_owned(), vec![]),
        (one.clone(), vec!["local/one"]),
        (format!("- {one}\n- {two}"), vec!["local/one", "local/two"]),
        (format!("journals:\n- {one}\n- {two}"), vec!["local/one", "local/two"]),
        (format!("name: local/\nchildren:\n- {one}"), vec!["local/one"]),
        (format!("children:\n- children: [{one}]\n- {two}"), vec!["local/one", "local/two"]),
        (format!("- {two}\n- {one}"), vec!["local/two", "local/one"]),
        ("children: []".to_owned(), vec![]),
        ("comment: nothing yet".to_owned(), vec![]),
        (format!("journals:\n- spec: {one}\n  mod_revision: 7"), vec!["local/one"]),
        (
            format!("{{\"journals\": [{{\"spec\": {one}, \"modRevision\": \"7\"}}]}}"),
            vec!["local/one"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(names(&text).expect(&text), expected, "{text}");
    }
}

#[test]
fn revisions_are_conditions() {
    // Case: what is added to the spec, the condition
    let cases = [
        ("", Expect::Absent),
        ("revision: 0", Expect::Absent),
        ("revision: 7", Expect::At(7)),
        ("revision: -1", Expect::Any),
        ("delete: true\nrevision: 7", Expect::At(7)),
        ("delete: true\nrevision: -1", Expect::Any),
    ];
    for (more, expected) in cases {
        let found = changes("specs.yaml", &format!("{FULL}{more}")).expect(more);
        assert_eq!(found[0].expect(), expected, "{more}");
        assert_eq!(matches!(found[0], Change::Delete { .. }), more.contains("delete"), "{more}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let one = short("local/one");
    let two = short("local/two");
    let tree = |name: &str, more: &str| format!("name: {name}\nchildren: [{one}]\n{more}");
    // Case: the text, what the error names
    let cases = [
        ("just text".to_owned(), vec!["specs.yaml", "a tree of them"]),
        ("a: [".to_owned(), vec!["specs.yaml"]),
        (FULL.replace("flags", "flgas"), vec!["flgas", "line 1"]),
        (FULL.replace("length: 1048576", "lenght: 1"), vec!["lenght"]),
        (format!("{FULL}flags: O_RDWR"), vec!["duplicate", "flags"]),
        (FULL.replace("  length: 1048576\n", ""), vec!["local/log", "fragment.length", "missing"]),
        (FULL.replace("ZSTANDARD", "LZMA"), vec!["local/log", "LZMA"]),
        (FULL.replace("1m0s", "soon"), vec!["local/log", "refresh_interval", "soon"]),
        (FULL.replace("replication: 1", "replication: 9"), vec!["local/log", "Replication"]),
        (FULL.replace("replication: 1\n", ""), vec!["local/log", "replication: missing"]),
        (FULL.replace("value: b", "value: 1.50"), vec!["whole number"]),
        (FULL.replace("local/log", "x"), vec!["name", "length (1"]),
        (FULL.replace("O_RDWR", "O_APPEND"), vec!["local/log", "O_APPEND"]),
        (format!("- {one}\n- {one}"), vec!["local/one comes twice"]),
        (format!("{FULL}delete: true"), vec!["local/log", "delete needs a revision"]),
        (format!("{FULL}revision: -2"), vec!["local/log", "revision"]),
        // Case: the rules of names in a tree
        (tree("other/", ""), vec!["local/one", "must begin with other/"]),
        (tree("local", ""), vec!["local", "does not end in /"]),
        (tree("local/", "revision: 7"), vec!["local/", "revision"]),
        (tree("local/", "suspend: {level: FULL}"), vec!["local/", "suspended"]),
        ("name: local/".to_owned(), vec!["local/", "no children"]),
        (format!("children: [{two}, {one}]"), vec!["local/one", "ascending", "local/two"]),
        (format!("children: [{one}, {one}]"), vec!["local/one comes twice"]),
        (FULL.replace("local/log", "local/log/"), vec!["local/log/", "no children"]),
    ];
    for (text, words) in cases {
        let error = names(&text).unwrap_err();
        for word in words {
            assert!(error.contains(word), "nothing of {word} in: {error}");
        }
    }
}

/// The spec of the only journal of a text.
fn spec(text: &str) -> JournalSpec {
    match &changes("specs.yaml", text).expect(text)[..] {
        [Change::Upsert { spec, .. }] => (**spec).clone(),
        other => panic!("{other:?}"),
    }
}

const TREE: &str = "
name: local/
replication: 2
labels: [{name: one, value: a}, {name: tag, value: a}, {name: tag, value: b}]
fragment:
  length: 2048
  compression_codec: GZIP
  stores: ['file:///', 's3://bucket/']
  refresh_interval: 1m
  retention: 24h
flags: O_RDONLY
max_append_rate: 7
children:
- name: local/log
";

#[test]
fn children_take_what_they_leave_unset() {
    let all = spec(TREE);
    assert_eq!((all.replication, all.flags, all.max_append_rate), (2, Flags::ReadOnly, 7));
    assert_eq!((all.fragment.length, all.fragment.codec), (2048, Codec::Gzip));
    assert_eq!(all.labels.len(), 3);
    // Case: what the child says, and what its spec then is
    type Check = fn(&JournalSpec) -> bool;
    let cases: [(&str, Check); 10] = [
        ("replication: 1", |s| s.replication == 1 && s.fragment.length == 2048),
        ("flags: 4", |s| s.flags == Flags::ReadWrite),
        ("fragment: {length: 4096}", |s| s.fragment.length == 4096 && s.fragment.stores.len() == 2),
        ("fragment: {compression_codec: 1}", |s| s.fragment.codec == Codec::None),
        // Case: lists are taken whole
        ("fragment: {stores: ['file:///']}", |s| s.fragment.stores == ["file:///"]),
        // Case: labels name by name
        ("labels: [{name: tag, value: c}]", |s| {
            s.labels.values_of("tag").eq(["c"]) && s.labels.value_of("one") == Some("a")
        }),
        ("labels: [{name: new, value: 5}]", |s| {
            s.labels.value_of("new") == Some("5") && s.labels.len() == 4
        }),
        // Case: zero is unset, so that nothing is taken back
        ("max_append_rate: 0", |s| s.max_append_rate == 7),
        ("fragment: {retention: 0s}", |s| s.fragment.retention == Duration::from_secs(86_400)),
        ("suspend: {level: 2, offset: 9}", |s| s.suspend.is_some_and(|s| s.offset.get() == 9)),
    ];
    for (own, check) in cases {
        let found = spec(&format!("{TREE}  {own}\n"));
        assert!(check(&found), "{own}: {found:?}");
    }
}

#[test]
fn deletion_is_inherited_and_revisions_are_not() {
    let text = format!(
        "name: local/\ndelete: true\nchildren:
- {{name: local/a1, revision: 3}}
- {{name: local/b1/, children: [{{name: local/b1/c, revision: -1}}]}}
- {}",
        short("local/kept").replace('}', "").replace("name", "delete: false, name") + "}}"
    );
    let found = changes("specs.yaml", &text).expect(&text);
    let shown: Vec<(&str, bool, Expect)> = found
        .iter()
        .map(|c| (c.journal().as_str(), matches!(c, Change::Delete { .. }), c.expect()))
        .collect();
    let expected = [
        ("local/a1", true, Expect::At(3)),
        ("local/b1/c", true, Expect::Any),
        ("local/kept", false, Expect::Absent),
    ];
    assert_eq!(shown, expected);
}
