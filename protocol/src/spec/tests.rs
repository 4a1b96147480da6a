//! Tables for the rules of specs: one edit of a valid message, one refusal.

use super::*;
use prost_types::Duration;

fn message() -> gazette::JournalSpec {
    gazette::JournalSpec {
        name: "foo/bar".into(),
        replication: 3,
        labels: Some(labels(&[("content-type", "text/plain"), ("tag", "a")])),
        fragment: Some(gazette::journal_spec::Fragment {
            length: 1 << 10,
            compression_codec: 2,
            stores: vec!["file:///".into(), "s3://bucket/x/".into()],
            refresh_interval: Some(seconds(1)),
            retention: Some(seconds(7)),
            flush_interval: Some(seconds(60)),
            path_postfix_template: r#"h{{ .Spool.FirstAppendTime.Format "15" }}"#.into(),
        }),
        flags: 4,
        max_append_rate: 1,
        suspend: Some(gazette::journal_spec::Suspend { level: 1, offset: 5 }),
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}

fn labels(pairs: &[(&str, &str)]) -> gazette::LabelSet {
    let label = |(name, value): &(&str, &str)| gazette::Label {
        name: name.to_string(),
        value: value.to_string(),
        prefix: false,
    };
    gazette::LabelSet { labels: pairs.iter().map(label).collect() }
}

type Edit = fn(&mut gazette::JournalSpec);

fn refusal(edit: Edit) -> Option<String> {
    let mut message = message();
    edit(&mut message);
    JournalSpec::try_from(message).err().map(|invalid| invalid.to_string())
}

fn check(cases: &[(Edit, Option<&str>)]) {
    for (at, (edit, expected)) in cases.iter().enumerate() {
        assert_eq!(refusal(*edit).as_deref(), *expected, "case {at}");
    }
}

#[test]
fn rules_of_the_spec() {
    check(&[
        (|_| (), None),
        (|s| s.name = "foo/bar;x".into(), Some("Name: not a valid path (foo/bar;x)")),
        (|s| s.replication = 0, Some("invalid Replication (0; expected 1 <= Replication <= 5)")),
        (|s| s.replication = 6, Some("invalid Replication (6; expected 1 <= Replication <= 5)")),
        // Case: a spec without fragment fails first where Gazette does.
        (
            |s| (s.replication, s.fragment) = (0, None),
            Some("invalid Replication (0; expected 1 <= Replication <= 5)"),
        ),
        (
            |s| s.fragment = None,
            Some("Fragment: invalid Length (0; expected 1024 <= Length <= 17179869184)"),
        ),
        (|s| s.flags = 0, None),
        (|s| s.flags = 3, Some("invalid Flags combination (3)")),
        (|s| s.max_append_rate = 0, None),
        (
            |s| s.max_append_rate = -1,
            Some("invalid MaxAppendRate (-1; expected 0 <= MaxAppendRate <= MaxInt64)"),
        ),
        (|s| s.suspend = None, None),
        (
            |s| s.suspend = Some(gazette::journal_spec::Suspend { level: 1, offset: -1 }),
            Some("Suspend: invalid Offset (-1; expected 0 <= Offset <= MaxInt64)"),
        ),
    ]);
}

#[test]
fn rules_of_labels() {
    check(&[
        (|s| s.labels = None, None),
        (
            |s| s.labels = Some(labels(&[("tag", "b"), ("tag", "a")])),
            Some("Labels.Labels[1]: labels must be unique and sorted (tag=a after tag=b)"),
        ),
        (
            |s| s.labels = Some(labels(&[("name", "foo/bar")])),
            Some("Labels: Labels cannot include label \"name\""),
        ),
        (
            |s| s.labels = Some(labels(&[("prefix", "foo/")])),
            Some("Labels: Labels cannot include label \"prefix\""),
        ),
        (
            |s| s.labels = Some(labels(&[("content-type", "a/b"), ("content-type", "c/d")])),
            Some("Labels: expected single-value Label has multiple values (content-type: 2)"),
        ),
        (
            |s| {
                s.labels =
                    Some(labels(&[("app.gazette.dev/tag", "a"), ("app.gazette.dev/tag", "b")]))
            },
            None,
        ),
        (
            |s| s.labels = Some(labels(&[("content-type", "none")])),
            Some(
                "Labels: parsing content-type (none): \
                 mime parse error: a slash (/) was missing between the type and subtype",
            ),
        ),
        (
            |s| s.labels = Some(labels(&[("app.gazette.dev/message-type", "T")])),
            Some("Labels: expected content-type label alongside app.gazette.dev/message-type"),
        ),
        (
            |s| {
                s.labels = Some(labels(&[
                    ("app.gazette.dev/message-subtype", "S"),
                    ("content-type", "text/csv"),
                ]));
            },
            Some(
                "Labels: expected app.gazette.dev/message-type label alongside \
                 app.gazette.dev/message-subtype",
            ),
        ),
    ]);
}

fn fragment(spec: &mut gazette::JournalSpec) -> &mut gazette::journal_spec::Fragment {
    spec.fragment.as_mut().expect("the base message has one")
}

#[test]
fn rules_of_fragments() {
    check(&[
        (
            |s| fragment(s).length = 1023,
            Some("Fragment: invalid Length (1023; expected 1024 <= Length <= 17179869184)"),
        ),
        (|s| fragment(s).length = 1 << 34, None),
        (
            |s| fragment(s).length = -1,
            Some("Fragment: invalid Length (-1; expected 1024 <= Length <= 17179869184)"),
        ),
        (
            |s| fragment(s).compression_codec = 0,
            Some("Fragment.CompressionCodec: invalid CompressionCodec (0)"),
        ),
        (
            |s| fragment(s).stores[1] = "s3://bucket/x".into(),
            Some("Fragment.Stores[1]: path component doesn't end in '/' (/x)"),
        ),
        (|s| fragment(s).stores.clear(), None),
        // Case: a file is never unpacked on the way out; as second store it is only read.
        (
            |s| fragment(s).compression_codec = 5,
            Some("Fragment: GZIP_OFFLOAD_DECOMPRESSION is incompatible with file store (file:///)"),
        ),
        (
            |s| {
                fragment(s).compression_codec = 5;
                fragment(s).stores.reverse();
            },
            None,
        ),
        (
            |s| fragment(s).refresh_interval = None,
            Some("Fragment: invalid RefreshInterval (0s; expected 1s <= interval <= 24h0m0s)"),
        ),
        (
            |s| fragment(s).refresh_interval = Some(seconds(86_401)),
            Some("Fragment: invalid RefreshInterval (24h0m1s; expected 1s <= interval <= 24h0m0s)"),
        ),
        (
            |s| fragment(s).refresh_interval = Some(seconds(-1)),
            Some("Fragment.RefreshInterval: invalid Duration (-1s and 0ns)"),
        ),
        (|s| fragment(s).flush_interval = None, None),
        (
            |s| fragment(s).flush_interval = Some(seconds(59)),
            Some("Fragment: invalid FlushInterval (59s; expected 0 or >= 1m0s)"),
        ),
        (|s| fragment(s).retention = Some(seconds(-5)), None),
        (
            |s| fragment(s).path_postfix_template = "{{ .Spool }}".into(),
            Some("Fragment.PathPostfixTemplate: unsupported template ({{ .Spool }})"),
        ),
        // Case: a template that parses and gives paths no listing would find.
        (
            |s| fragment(s).path_postfix_template = "x/".into(),
            Some("Fragment.PathPostfixTemplate: must be a clean path (x/)"),
        ),
    ]);
}

#[test]
fn a_name_that_no_file_can_have_is_not_storable_in_files() {
    // Case: length of a part, the store, whether it is storable
    for (len, store, is_storable) in
        [(255, "file:///", true), (256, "file:///", false), (256, "s3://bucket/x/", true)]
    {
        let mut message = message();
        message.name = format!("foo/{}", "x".repeat(len));
        fragment(&mut message).stores = vec![store.into()];
        let spec = JournalSpec::try_from(message).expect("valid");
        assert_eq!(spec.check_storable().is_ok(), is_storable, "{len} {store}");
    }
}

#[test]
fn a_spec_comes_back_as_it_was_applied() {
    let message = message();
    let spec = JournalSpec::try_from(message.clone()).expect("valid");
    assert_eq!(gazette::JournalSpec::from(spec.clone()), message);
    assert_eq!(spec.content_type(), Some("text/plain"));
    assert_eq!(spec.validate(), Ok(()));
}

#[test]
fn fewer_replicas_are_wanted_while_suspended() {
    let mut message = message();
    message.labels = None;
    let mut spec = JournalSpec::try_from(message).expect("valid");
    assert_eq!(spec.desired_replicas(), 1);
    spec.suspend = Some(Suspend { level: SuspendLevel::Full, offset: crate::Offset::ZERO });
    assert_eq!(spec.desired_replicas(), 0);
    spec.suspend = None;
    assert_eq!(spec.desired_replicas(), 3);
}

#[test]
fn a_label_says_how_many_bytes_are_kept() {
    let labelled = |value: Option<&str>| {
        let mut spec = JournalSpec::try_from(message()).expect("valid");
        if let Some(value) = value {
            spec.labels = spec.labels.with(RETAIN_BYTES, value).expect("a label");
        }
        spec
    };
    // Case: the label's value, how many are kept
    let cases = [(None, None), (Some("1"), Some(1)), (Some("1073741824"), Some(1 << 30))];
    for (value, expected) in cases {
        assert_eq!(labelled(value).retain_bytes(), Ok(expected), "{value:?}");
    }
    for value in ["0", "-1", "1GiB"] {
        let spec = labelled(Some(value));
        let invalid = spec.retain_bytes().expect_err(value);
        let text = invalid.to_string();
        assert!(text.starts_with("foo/bar: its label courant/retain-bytes"), "{text}");
        assert_eq!((spec.max_bytes(), spec.check_bytes()), (Ok(None), Err(invalid)));
    }
    let mut limited = labelled(None);
    limited.labels = limited.labels.with(MAX_BYTES, "12").expect("a label");
    assert_eq!((limited.max_bytes(), limited.check_bytes()), (Ok(Some(12)), Ok(())));
}
