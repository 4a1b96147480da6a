//! Specs as people write them, and as they get them wrong.

use super::*;

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
    // Case: the text, what the error names
    let cases = [
        ("just text".to_owned(), vec!["specs.yaml", "a list of journals"]),
        ("a: [".to_owned(), vec!["specs.yaml"]),
        (FULL.replace("flags", "flgas"), vec!["journal 1", "flgas"]),
        (FULL.replace("length: 1048576", "lenght: 1"), vec!["lenght"]),
        (FULL.replace("  length: 1048576\n", ""), vec!["local/log", "fragment.length", "missing"]),
        (FULL.replace("ZSTANDARD", "LZMA"), vec!["local/log", "LZMA"]),
        (FULL.replace("1m0s", "soon"), vec!["local/log", "refresh_interval", "soon"]),
        (FULL.replace("replication: 1", "replication: 9"), vec!["local/log", "Replication"]),
        (FULL.replace("local/log", "x"), vec!["name", "length (1"]),
        (FULL.replace("O_RDWR", "O_APPEND"), vec!["local/log", "O_APPEND"]),
        (format!("- {one}\n- {one}"), vec!["journal 2", "local/one comes twice"]),
        (format!("replication: 1\njournals: [{one}]"), vec!["`replication`", "inherited"]),
        (format!("{FULL}delete: true"), vec!["local/log", "delete needs a revision"]),
        (format!("{FULL}revision: -2"), vec!["local/log", "revision"]),
    ];
    for (text, words) in cases {
        let error = names(&text).unwrap_err();
        for word in words {
            assert!(error.contains(word), "nothing of {word} in: {error}");
        }
    }
}
