//! docs/SEMANTICS.md is kept honest: its sentences are numbered in order, each names tests that are
//! there, and its table of errors is that of the code. The tests that docs/COMPATIBILITY.md names
//! are there, too.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// One promise.
#[derive(Debug, PartialEq, Eq)]
struct Sentence {
    number: usize,
    /// Files and the test functions in them.
    tests: Vec<(String, String)>,
}

#[track_caller]
fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The sentences of a page: items of a list that begin with a bold number.
fn sentences(page: &str) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = Vec::new();
    let mut is_within = false;
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("* **S") {
            let (number, _) =
                rest.split_once(".** ").unwrap_or_else(|| panic!("no number: {line}"));
            let number = number.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            sentences.push(Sentence { number, tests: Vec::new() });
            is_within = true;
        } else if !line.starts_with("  ") {
            is_within = false;
        }
        if let Some(sentence) = sentences.last_mut().filter(|_| is_within) {
            sentence.tests.extend(tests(line));
        }
    }
    sentences
}

/// What a line names as tests: `` `path/to/file.rs: function` ``.
fn tests(line: &str) -> impl Iterator<Item = (String, String)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| {
        let (file, function) = quoted.split_once(": ")?;
        file.ends_with(".rs").then(|| (file.to_owned(), function.to_owned()))
    })
}

/// Whether the text of a file has the function as a test: its attribute stands right above it.
fn has_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let names = [format!("fn {function}("), format!("async fn {function}(")];
    (0..lines.len()).any(|at| {
        names.iter().any(|name| lines[at].starts_with(name.as_str()))
            && lines[..at].iter().rev().take_while(|line| line.starts_with("#[")).any(is_test)
    })
}

fn is_test(attribute: &&str) -> bool {
    ["#[test]", "#[tokio::test"].iter().any(|test| attribute.starts_with(test))
}

#[test]
fn every_sentence_is_numbered_and_kept_by_tests_that_are_there() {
    let sentences = sentences(&read("docs/SEMANTICS.md"));
    assert!(sentences.len() > 50, "only {} sentences were found", sentences.len());
    let mut wrong = Vec::new();
    for (expected, Sentence { number, tests }) in (1..).zip(&sentences) {
        if *number != expected {
            wrong.push(format!("S{number} stands where S{expected} should"));
        }
        if tests.is_empty() {
            wrong.push(format!("S{number} names no test"));
        }
        for (file, function) in tests {
            if !has_test(&read(file), function) {
                wrong.push(format!("S{number}: {file} has no test {function}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_test_that_compatibility_names_is_there() {
    let page = read("docs/COMPATIBILITY.md");
    let named: Vec<_> = page.lines().flat_map(tests).collect();
    assert!(named.len() > 30, "only {} tests were found", named.len());
    let is_missing = |(file, function): &&(String, String)| !has_test(&read(file), function);
    let missing: Vec<_> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Each row of a fault says what Gazette does, what Courant does, and which test shows that.
    let faults = page.split("## ").find(|part| part.starts_with("Faults")).expect("a section");
    let rows = faults.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| fault"));
    let bare: Vec<_> = rows.filter(|row| tests(row).next().is_none()).collect();
    assert!(bare.is_empty(), "{bare:?}");
}

#[test]
fn the_table_of_errors_is_that_of_the_code() {
    // `Errno` leaves the first letter of its names out, and writes one of them out.
    let code = read("fs/src/error.rs");
    let names = code.split("Errno::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
        format!("E{}", &rest[..end]).replace("EACCESS", "EACCES")
    });
    let page = read("docs/SEMANTICS.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `E")?.split('`').next());
    let rows: BTreeSet<String> = rows.map(|name| format!("E{name}")).collect();
    assert_eq!(rows, names.collect());
}

#[test]
fn a_page_is_read_as_it_is_written() {
    let page = "## Names\n\n* **S1.** A name. `a/b.rs: one`,\n  `a/c.rs: two`, not `x: y`\n\
                * **S3.** None.\n\nText `d.rs: three`.\n* **Other** `e.rs: four`\n";
    let test = |file: &str, function: &str| (file.to_owned(), function.to_owned());
    let expected = [
        Sentence { number: 1, tests: vec![test("a/b.rs", "one"), test("a/c.rs", "two")] },
        Sentence { number: 3, tests: vec![] },
    ];
    assert_eq!(sentences(page), expected);
    // Case: the text of a file, whether it has a test `f`
    let cases = [
        ("#[test]\nfn f() {", true),
        ("    #[tokio::test(start_paused = true)]\n    async fn f() {", true),
        ("#[test]\n#[ignore]\nfn f() {", true),
        ("fn f() {", false),
        ("#[test]\nfn first() {}\n\nfn f() {", false),
        ("#[test]\nfn f_and_more() {", false),
        ("// fn f() {", false),
    ];
    for (text, expected) in cases {
        assert_eq!(has_test(text, "f"), expected, "{text}");
    }
}
