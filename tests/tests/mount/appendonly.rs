//! A journal beside a local file that `chattr +a` made append-only: the same operations on both
//! differ where the table of docs/SEMANTICS.md says so, and nowhere else.

use std::collections::BTreeMap;
use std::path::Path;
use tests::ground;
use tests::patience::LIMIT;
use tests::shell;
use tests::world::Up;

/// The heading of the table.
const HEADING: &str = "## Unlike a local append-only file";

/// What is so only where the kernel does not read the journal itself.
const DIRECT: &str = " (without passthrough)";

/// Operation, local answer, answer of a journal.
type Difference = (String, String, String);

fn answers(directory: &Path, further: &[&str]) -> BTreeMap<String, String> {
    let mut program = shell::python("appendonly.py");
    let ran = shell::run(program.arg(directory).args(further), LIMIT).ok();
    serde_json::from_slice(&ran.stdout).expect("the program prints JSON")
}

/// What the table has of all mounts, and of those that it says `addition` of.
fn documented(addition: &str) -> Vec<Difference> {
    let semantics = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SEMANTICS.md");
    let text = std::fs::read_to_string(semantics).unwrap();
    let (_, section) = text.split_once(HEADING).expect("the table has its heading");
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut differences: Vec<Difference> = rows
        .map(|row| {
            let cells: Vec<String> =
                row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
            let [operation, local, journal] = cells.try_into().expect("a row has three cells");
            (operation, local, journal)
        })
        .filter_map(|(operation, local, journal)| {
            let bare = operation.strip_suffix(DIRECT);
            let is_shown = bare.is_none() || addition == DIRECT;
            is_shown.then(|| (bare.unwrap_or(&operation).to_owned(), local, journal))
        })
        .collect();
    differences.sort();
    differences
}

#[test]
fn a_journal_differs_from_a_local_append_only_file_where_the_table_says() {
    let local = ground::folder("local-");
    let local = answers(local.path(), &["--chattr"]);
    // Case: how it is mounted, and what that adds to the name of an operation
    for (options, addition) in [(&[] as &[&str], ""), (&["--no-passthrough"], DIRECT)] {
        let up = Up::with(options);
        let journal = answers(up.mount().path(), &[]);
        assert_eq!(local.keys().collect::<Vec<_>>(), journal.keys().collect::<Vec<_>>());
        let differ = local.iter().filter(|(operation, answer)| journal[*operation] != **answer);
        let differences: Vec<Difference> = differ
            .map(|(operation, answer)| {
                (operation.clone(), answer.clone(), journal[operation].clone())
            })
            .collect();
        let documented = documented(addition);
        assert_eq!(differences, documented, "{options:?}");
    }
}
