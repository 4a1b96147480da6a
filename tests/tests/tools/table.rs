//! The table at the end of docs/SEMANTICS.md: made of the cases, and never by hand.

use crate::case::{Case, Group, Shown};
use crate::{appending, copying, editing, languages, logging, packing, python, reading};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Begins the part of the page that is made here; nothing comes after it.
const HEADING: &str = "## Tools\n";

/// Begins each table.
const COLUMNS: &str = "| tool | what it does | what happens |\n|---|---|---|\n";

/// In the order of the page.
const GROUPS: [&[Group]; 8] = [
    appending::GROUPS,
    logging::GROUPS,
    copying::GROUPS,
    packing::GROUPS,
    editing::GROUPS,
    reading::GROUPS,
    python::GROUPS,
    languages::GROUPS,
];

fn groups() -> impl Iterator<Item = &'static Group> {
    GROUPS.into_iter().flatten()
}

fn cases() -> impl Iterator<Item = &'static Case> {
    groups().flat_map(|group| group.cases)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page() -> PathBuf {
    root().join("docs/SEMANTICS.md")
}

/// The part of the page, with its heading.
fn rendered() -> String {
    let mut text = format!(
        "{HEADING}\nWhat programs do on a mount, and what happens. Each row was run by \
         `tests/tests/tools`, which makes this table, with the versions of\nDebian 12, or is kept \
         by the test that it names.\n"
    );
    for group in groups() {
        write!(text, "\n### {}\n\n{COLUMNS}", group.heading).unwrap();
        for case in group.cases {
            let Case { tool, does, happens, shown } = case;
            let elsewhere = match shown {
                Shown::By(_) => String::new(),
                Shown::Elsewhere(test) => format!(" (`{test}`)"),
            };
            writeln!(text, "| {tool} | {does} | {happens}{elsewhere} |").unwrap();
        }
    }
    text
}

#[test]
fn the_table_is_made_of_the_cases() {
    let text = std::fs::read_to_string(page()).unwrap();
    let before = text.split(HEADING).next().unwrap();
    let expected = format!("{}\n\n{}", before.trim_end(), rendered());
    if std::env::var_os("UPDATE_TABLE").is_some() {
        std::fs::write(page(), &expected).unwrap();
        return;
    }
    let differs = text.lines().zip(expected.lines()).find(|(is, should)| is != should);
    assert!(
        text == expected,
        "docs/SEMANTICS.md differs from the cases, first here: {differs:?}. \
         UPDATE_TABLE=1 writes this:\n{}",
        rendered()
    );
}

#[test]
fn rows_are_rows() {
    for Case { tool, does, happens, .. } in cases() {
        for cell in [tool, does, happens] {
            assert!(!cell.is_empty() && !cell.contains(['|', '\n']), "{tool}: {cell}");
        }
        assert!(happens.ends_with('.') && !does.ends_with('.'), "{tool}: {does}: {happens}");
    }
}

#[test]
fn tests_that_rows_name_are_there() {
    let named = cases().filter_map(|case| match case.shown {
        Shown::Elsewhere(test) => Some(test),
        Shown::By(_) => None,
    });
    for test in named {
        let (file, function) = test.split_once(": ").unwrap();
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {function}(")), "{test} is not there");
    }
}
