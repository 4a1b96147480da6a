//! Transactions on trial, without storage: what each comes to, and what it leaves as it was.

use super::*;
use crate::{CHANGES_MAX, Expect, Template, life};
use protocol::{Offset, Suspend, SuspendLevel};

const CLUSTER: u64 = 7;

fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

fn spec(name: &str) -> JournalSpec {
    Templates::default().spec_for(&journal(name)).expect("a name nobody refuses")
}

fn upsert(name: &str, expect: Expect) -> Change {
    Change::Upsert { spec: spec(name), expect }
}

fn delete(name: &str, expect: Expect) -> Change {
    Change::Delete { journal: journal(name), expect }
}

/// Logs `a` (put at 2 and 4) and `b` (put at 3).
fn state() -> State {
    let mut state = State::new(1, Templates::default(), vec![]);
    for change in ["logs/a", "logs/b", "logs/a"].map(|name| upsert(name, Expect::Any)) {
        run(&mut state, vec![change]);
    }
    state
}

/// Plans and publishes; what must be written is written.
fn run(state: &mut State, changes: Vec<Change>) {
    match state.plan(CLUSTER, changes).expect("a plan") {
        Plan::Write { revision, rows } => state.publish(revision, rows),
        other => panic!("nothing to write: {other:?}"),
    }
}

fn revisions(state: &State, name: &str) -> Option<(i64, i64)> {
    state.get(&journal(name)).map(|entry| (entry.create_revision, entry.mod_revision))
}

#[test]
fn revisions_count_transactions() {
    let mut state = state();
    assert_eq!(state.revision, 4);
    assert_eq!(revisions(&state, "logs/a"), Some((2, 4)));
    assert_eq!(revisions(&state, "logs/b"), Some((3, 3)));

    // Case: several changes share one revision
    run(&mut state, vec![delete("logs/a", Expect::At(4)), upsert("logs/c", Expect::Absent)]);
    assert_eq!(state.revision, 5);
    assert_eq!(revisions(&state, "logs/a"), None);
    assert_eq!(revisions(&state, "logs/c"), Some((5, 5)));

    // Case: a journal that is created again has another life
    let old = life(CLUSTER, &journal("logs/a"), 2, 0);
    run(&mut state, vec![upsert("logs/a", Expect::Absent)]);
    assert_eq!(revisions(&state, "logs/a"), Some((6, 6)));
    assert_ne!(state.get(&journal("logs/a")).unwrap().life, old);
}

#[test]
fn a_compare_that_fails_ends_the_transaction() {
    let state = state();
    // Case: changes, the journal whose compare fails
    for (changes, name) in [
        (vec![upsert("logs/a", Expect::Absent)], Some("logs/a")),
        (vec![upsert("logs/a", Expect::At(2))], Some("logs/a")),
        (vec![upsert("logs/c", Expect::At(4))], Some("logs/c")),
        (vec![delete("logs/c", Expect::At(4))], Some("logs/c")),
        (vec![delete("logs/a", Expect::At(3))], Some("logs/a")),
        (vec![upsert("logs/c", Expect::Any), delete("logs/b", Expect::At(4))], Some("logs/b")),
        (vec![upsert("logs/a", Expect::At(4)), delete("logs/b", Expect::At(3))], None),
    ] {
        let expected = name.map(journal);
        let plan = state.plan(CLUSTER, changes).expect("a plan");
        let failed = match plan {
            Plan::Conflict(journal) => Some(journal),
            Plan::Nothing | Plan::Write { .. } => None,
        };
        assert_eq!(failed, expected);
    }
}

#[test]
fn what_changes_nothing_has_no_revision() {
    let state = state();
    for changes in [vec![], vec![delete("logs/c", Expect::Any)]] {
        assert_eq!(state.plan(CLUSTER, changes).expect("a plan"), Plan::Nothing);
    }
}

#[test]
fn requests_that_are_wrong_in_themselves_fail() {
    let state = state();
    let many = |count| (0..count).map(|n| upsert(&format!("logs/n{n}"), Expect::Any)).collect();
    assert!(state.plan(CLUSTER, many(CHANGES_MAX)).is_ok());
    let failed = state.plan(CLUSTER, many(CHANGES_MAX + 1));
    assert!(matches!(failed, Err(Error::TooManyChanges { changes: 129, limit: 128 })));

    let twice = vec![upsert("logs/c", Expect::Any), delete("logs/c", Expect::Any)];
    let failed = state.plan(CLUSTER, twice);
    assert!(matches!(failed, Err(Error::Repeated { journal: j }) if j == journal("logs/c")));

    let failed = state.plan(CLUSTER, vec![delete("logs/c", Expect::Absent)]);
    assert!(matches!(failed, Err(Error::Invalid(_))), "{failed:?}");

    let spec = JournalSpec { replication: 0, ..spec("logs/c") };
    let failed = state.plan(CLUSTER, vec![Change::Upsert { spec, expect: Expect::Any }]);
    assert!(matches!(failed, Err(Error::Invalid(_))), "{failed:?}");
}

#[test]
fn names_that_nest_are_refused_at_creation() {
    let state = state();
    let nested = |name: &str, other: &str| {
        Some(Refused::Nested { journal: journal(name), other: other.into() })
    };
    // Case: changes, why they are refused
    for (changes, refused) in [
        (vec![upsert("logs", Expect::Any)], nested("logs", "logs/a")),
        (vec![upsert("logs/a/b", Expect::Any)], nested("logs/a/b", "logs/a")),
        (
            vec![upsert("x/yz", Expect::Any), upsert("x/yz/q", Expect::Any)],
            nested("x/yz", "x/yz/q"),
        ),
        // Deleted by the same transaction.
        (vec![delete("logs/a", Expect::Any), upsert("logs/a/b", Expect::Any)], None),
        (
            vec![delete("logs/a", Expect::Any), upsert("logs", Expect::Any)],
            nested("logs", "logs/b"),
        ),
        (vec![upsert("logs/ab", Expect::Any)], None),
    ] {
        let failed = match state.plan(CLUSTER, changes) {
            Ok(_) => None,
            Err(Error::Refused(refused)) => Some(refused),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(failed, refused);
    }
    let mut reserved = spec("logs/c");
    reserved.name = journal("logs/.journal");
    let change = Change::Upsert { spec: reserved, expect: Expect::Any };
    let failed = state.plan(CLUSTER, vec![change]);
    assert!(matches!(failed, Err(Error::Refused(Refused::Reserved { .. }))), "{failed:?}");
    assert!(state.may_create(&journal("logs/a/b")).is_err());
    assert!(state.may_create(&journal("logs/a.b")).is_ok());
}

#[test]
fn names_that_nest_already_can_be_changed() {
    let entry = |name: &str, revision: i64| Entry {
        spec: spec(name),
        create_revision: revision,
        mod_revision: revision,
        life: life(CLUSTER, &journal(name), revision, 0),
        nonce: 0,
    };
    let entries = vec![entry("logs/a", 2), entry("logs/a/b", 3)];
    let mut state = State::new(3, Templates::default(), entries);
    run(&mut state, vec![upsert("logs/a", Expect::At(2)), upsert("logs/a/b", Expect::At(3))]);
    run(&mut state, vec![delete("logs/a", Expect::At(4))]);
    assert_eq!(revisions(&state, "logs/a/b"), Some((3, 4)));
}

#[test]
fn a_life_that_is_taken_is_given_to_nobody_else() {
    let mut state = state();
    let name = journal("logs/c");
    // Two journals, made up, that have the first two lives of the next one.
    state.lives.extend([life(CLUSTER, &name, 5, 0), life(CLUSTER, &name, 5, 1)]);
    run(&mut state, vec![upsert("logs/c", Expect::Absent)]);
    let entry = state.get(&name).unwrap();
    assert_eq!((entry.nonce, entry.life), (2, life(CLUSTER, &name, 5, 2)));
    assert!(state.lives.contains(&entry.life));

    // Case: the nonce stays with the spec, and the life comes back when the journal is deleted
    let taken = entry.life;
    run(&mut state, vec![upsert("logs/c", Expect::Any)]);
    assert_eq!(state.get(&name).map(|entry| (entry.nonce, entry.life)), Some((2, taken)));
    run(&mut state, vec![delete("logs/c", Expect::Any)]);
    assert!(!state.lives.contains(&taken));
}

#[test]
fn a_spec_without_suspend_keeps_the_one_there() {
    let mut state = state();
    let suspend = Some(Suspend { level: SuspendLevel::Full, offset: Offset::from(77) });
    let change =
        Change::Upsert { spec: JournalSpec { suspend, ..spec("logs/a") }, expect: Expect::Any };
    run(&mut state, vec![change]);
    run(&mut state, vec![upsert("logs/a", Expect::Any)]);
    assert_eq!(state.get(&journal("logs/a")).unwrap().spec.suspend, suspend);

    // Case: not over a deletion, which begins another life
    run(&mut state, vec![delete("logs/a", Expect::Any)]);
    run(&mut state, vec![upsert("logs/a", Expect::Any)]);
    assert_eq!(state.get(&journal("logs/a")).unwrap().spec.suspend, None);
}

#[test]
fn lists_are_by_name_and_of_one_revision() {
    let state = state();
    // Case: selector, names
    let cases: [(&str, &[&str]); 5] = [
        ("", &["logs/a", "logs/b"]),
        ("name=logs/b", &["logs/b"]),
        ("name in (logs/b, logs/a, logs/x)", &["logs/a", "logs/b"]),
        ("name:prefix=logs/", &["logs/a", "logs/b"]),
        ("name!=logs/a", &["logs/b"]),
    ];
    for (selector, names) in cases {
        let listing = state.list(&selector.parse().expect("a valid selector"));
        let found: Vec<&str> = listing.entries.iter().map(|e| e.spec.name.as_str()).collect();
        assert_eq!((listing.revision, &*found), (4, names), "{selector}");
    }
}

#[test]
fn the_built_in_template_is_there_from_the_start() {
    let template = state().templates.of(&journal("any/name")).clone();
    assert_eq!(template, Template::built_in());
}
