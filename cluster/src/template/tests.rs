//! Templates on trial: which one counts, what it refuses, and how it is stored.

use super::*;

fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

fn template(prefix: &str, replication: i32) -> Template {
    let mut template = Template { prefix: prefix.into(), ..Template::built_in() };
    template.defaults.replication = replication;
    template
}

#[test]
fn the_longest_prefix_wins() {
    let mut templates = Templates::default();
    for (prefix, replication) in [("logs/", 2), ("logs/app", 3), ("logs/app/z", 4), ("m", 5)] {
        templates.put(template(prefix, replication));
    }
    // Case: name, the replication of the template that counts
    for (name, replication) in [
        ("logs/app/x", 3),
        ("logs/app/zz", 4),
        ("logs/apple", 3),
        ("logs/b", 2),
        ("logsy", 1),
        ("metrics/a", 5),
        ("other", 1),
    ] {
        let spec = templates.spec_for(&journal(name)).unwrap();
        assert_eq!(spec.replication, replication, "{name}");
        assert_eq!(spec.name, journal(name));
    }
    templates.put(template("", 2));
    assert_eq!(templates.of(&journal("other")).defaults.replication, 2);
    templates.remove("");
    assert_eq!(templates.of(&journal("other")), &Template::built_in());
}

#[test]
fn file_names_tell_the_content_type() {
    let mut templates = Templates::default();
    let mut fixed = template("fixed/", 1);
    fixed.defaults.labels = LabelSet::default().with(CONTENT_TYPE, "text/plain").unwrap();
    templates.put(fixed);
    // Case: name, content type
    for (name, content_type) in [
        ("a/b.ndjson", Some("application/x-ndjson")),
        ("a/b.jsonl", Some("application/x-ndjson")),
        ("a/b.csv", Some("text/csv")),
        ("a/b.log", None),
        ("a.csv/b", None),
        ("fixed/b.csv", Some("text/plain")),
    ] {
        let spec = templates.spec_for(&journal(name)).unwrap();
        assert_eq!(spec.labels.value_of(CONTENT_TYPE), content_type, "{name}");
    }
}

#[test]
fn names_of_temporary_files_are_refused() {
    let templates = Templates::default();
    // Case: name, the pattern that refuses it
    for (name, pattern) in [
        ("a/.app.log.AbC123", Some(".*.??????")),
        ("a/sedAbC123", Some("sed??????")),
        ("a/app.log.gawk.AbC123", Some("*.gawk.??????")),
        ("a/app.log.tmp", Some("*.tmp")),
        ("a/app.log%7E", Some("*~")),
        ("a/.app.log.swp", Some(".*.sw?")),
        ("a/4913", Some("4913")),
        ("a/.%23app.log", Some(".#*")),
        ("a/app.log", None),
        ("a/sediments", Some("sed??????")),
        ("a/sediment", None),
        ("a/.hidden", None),
        ("x.tmp/app.log", None),
        ("4913/a", None),
    ] {
        let name = journal(name);
        let expected = match pattern {
            Some(pattern) => {
                Err(Refused::Pattern { journal: name.clone(), pattern: Pattern::new(pattern) })
            }
            None => Ok(name.clone()),
        };
        assert_eq!(templates.spec_for(&name).map(|spec| spec.name), expected);
    }
}

#[test]
fn reserved_parts_are_refused_by_every_template() {
    let mut templates = Templates::default();
    templates.put(Template { refuse: vec![], ..template("a/", 1) });
    let refused = templates.spec_for(&journal("a/.courant"));
    assert!(matches!(refused, Err(Refused::Reserved { part: ".courant", .. })), "{refused:?}");
}

#[test]
fn templates_come_back_as_they_were_put() {
    let mut one = template("logs/", 3);
    one.defaults.labels = LabelSet::default().with("tag", "x").unwrap();
    one.defaults.max_append_rate = 1 << 20;
    one.defaults.fragment.retention = Duration::from_secs(86_400);
    for template in [one, Template::built_in(), Template { refuse: vec![], ..template("m", 1) }] {
        let bytes = template.encode();
        assert_eq!(Template::decode(template.prefix.clone(), &bytes), Ok(template));
    }
}

#[test]
fn defaults_that_no_journal_can_have_are_refused() {
    assert_eq!(Template::built_in().check(), Ok(()));
    assert!(template("a/", 0).check().is_err());
    assert!(Template::decode("a/".into(), &[0xff]).is_err());
}
