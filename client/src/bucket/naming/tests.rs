//! Journals told from paths: tables.

use super::*;

/// An object that holds `begin..end`; its content is told by `seed`.
fn object(dir: &str, begin: u32, end: u32, seed: u8) -> Object {
    let sum = Sum::new([seed; 20]);
    let path = format!("{dir}/{begin:016x}-{end:016x}-{sum}.raw");
    Object { path, mod_time: 7, len: u64::from(end - begin) }
}

/// Journals by name, each with the postfixes of its fragments in the order of their offsets.
fn told(objects: &[Object], postfix: &Postfix) -> Vec<(String, Vec<String>)> {
    let named = sort("file:///", objects, postfix);
    let postfixes = |fragments: Vec<Fragment>| {
        fragments.into_iter().map(|fragment| fragment.path_postfix).collect()
    };
    named.journals.into_iter().map(|(name, found)| (name.to_string(), postfixes(found))).collect()
}

#[test]
fn journals_are_told_by_paths_and_offsets() {
    type Case<'c> = (&'c [(&'c str, u32, u32)], &'c [(&'c str, &'c [&'c str])]);
    let cases: [Case<'_>; 12] = [
        // Case: no postfix.
        (&[("a/log", 0, 5), ("a/log", 5, 9)], &[("a/log", &["", ""])]),
        // Case: one postfix of two directories.
        (&[("a/log/date=1/hour=2", 0, 5)], &[("a/log", &["date=1/hour=2"])]),
        // Case: days that follow each other, one with hours.
        (
            &[("a/log/day=1/h15", 0, 5), ("a/log/day=1/h16", 5, 7), ("a/log/day=2/h00", 7, 9)],
            &[("a/log", &["day=1/h15", "day=1/h16", "day=2/h00"])],
        ),
        // Case: plain dates.
        (
            &[("a/log/2026/11", 0, 5), ("a/log/2026/12", 5, 9)],
            &[("a/log", &["2026/11", "2026/12"])],
        ),
        // Case: a journal that got its postfix later, and one that lost it.
        (&[("a/log", 0, 5), ("a/log/day=1", 5, 9)], &[("a/log", &["", "day=1"])]),
        (&[("a/log/day=1", 0, 5), ("a/log", 5, 9)], &[("a/log", &["day=1", ""])]),
        // Case: partitions, which all begin at 0.
        (
            &[("a/part=0", 0, 500), ("a/part=1", 0, 300), ("a/part=2", 0, 3)],
            &[("a/part=0", &[""]), ("a/part=1", &[""]), ("a/part=2", &[""])],
        ),
        // Case: partitions with days.
        (
            &[
                ("a/topic/part=0/day=1", 0, 5),
                ("a/topic/part=0/day=2", 5, 8),
                ("a/topic/part=1/day=1", 0, 6),
            ],
            &[("a/topic/part=0", &["day=1", "day=2"]), ("a/topic/part=1", &["day=1"])],
        ),
        // Case: nested journals, whose names look like no postfix.
        (&[("a/bc", 0, 5), ("a/bc/d", 5, 9)], &[("a/bc", &[""]), ("a/bc/d", &[""])]),
        // Case: a day that is missing leaves a gap in one journal.
        (&[("a/log/day=1", 0, 5), ("a/log/day=3", 7, 9)], &[("a/log", &["day=1", "day=3"])]),
        // Case: a gap against the order of the names.
        (
            &[("a/part=0", 70, 90), ("a/part=1", 10, 20)],
            &[("a/part=0", &[""]), ("a/part=1", &[""])],
        ),
        // Case: a fork at the border of two days.
        (&[("a/log/day=1", 0, 50), ("a/log/day=2", 45, 90)], &[("a/log", &["day=1", "day=2"])]),
    ];
    for (objects, expected) in cases {
        let objects: Vec<Object> = (0..)
            .zip(objects)
            .map(|(seed, (dir, begin, end))| object(dir, *begin, *end, seed))
            .collect();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(name, postfixes)| {
                (name.to_string(), postfixes.iter().map(|postfix| postfix.to_string()).collect())
            })
            .collect();
        assert_eq!(told(&objects, &Postfix::Guessed), expected);
    }
}

#[test]
fn the_same_content_under_two_postfixes_is_no_second_journal() {
    let objects = [
        object("a/log/h=1", 0, 50, 1),
        object("a/log/h=1", 50, 60, 2),
        object("a/log/h=2", 50, 60, 2),
    ];
    assert_eq!(told(&objects, &Postfix::Guessed).len(), 1);
}

#[test]
fn known_postfixes_are_taken_at_their_word() {
    let objects = [object("a/topic/part=0/d=1/h=2", 0, 5, 1), object("a/other", 0, 5, 1)];
    // Case: patterns, journal and postfix of the first object.
    let cases = [
        (&["d=*/h=?"] as &[&str], "a/topic/part=0", "d=1/h=2"),
        (&["h=*"], "a/topic/part=0/d=1", "h=2"),
        (&["*/x", "d=*/*"], "a/topic/part=0", "d=1/h=2"),
        (&[""], "a/topic/part=0/d=1/h=2", ""),
        (&["x=*"], "a/topic/part=0/d=1/h=2", ""),
        // Case: a pattern that leaves no name.
        (&["*/*/*/*/*"], "a/topic/part=0/d=1/h=2", ""),
    ];
    for (patterns, journal, postfix) in cases {
        let known = Postfix::Known(patterns.iter().map(|pattern| pattern.to_string()).collect());
        let told = told(&objects, &known);
        assert_eq!(told[1], (journal.to_owned(), vec![postfix.to_owned()]), "{patterns:?}");
        assert_eq!(told[0], ("a/other".to_owned(), vec![String::new()]), "{patterns:?}");
    }
}

#[test]
fn what_is_no_fragment_is_named_where_it_matters() {
    let strange = |path: &str| Object { path: path.to_owned(), mod_time: 7, len: 1 };
    let begin = "0000000000000005";
    let objects = [
        object("a/log", 0, 5, 1),
        strange("a/log/notes.txt"),
        strange("a/log/deep/below/notes.txt"),
        strange("README"),
        strange("elsewhere/README"),
        // Case: a broken name in a directory of its own.
        strange(&format!("lost/{begin}-xyz-0.raw")),
        // Case: a fragment whose directory can be no journal.
        object("x", 0, 5, 1),
        // Case: an offset without its padding.
        strange(&format!("a/log/5-9-{}.raw", Sum::new([1; 20]))),
    ];
    let named = sort("file:///", &objects, &Postfix::Guessed);
    let paths: Vec<&str> = named.strange.iter().map(|strange| strange.path.as_str()).collect();
    let broken = format!("lost/{begin}-xyz-0.raw");
    let unpadded = format!("a/log/5-9-{}.raw", Sum::new([1; 20]));
    assert_eq!(paths, [&unpadded, "x", "a/log/notes.txt", "a/log/deep/below/notes.txt", &broken]);
    assert_eq!((named.journals.len(), named.others), (1, 2));
}
