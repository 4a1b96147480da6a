//! What goes for ever: pruned fragments, purged journals; and that a dry run says which.

use crate::serve::{Serve, assert_tells};
use std::path::Path;
use std::time::Duration;
use tests::patience;

/// The objects of a journal in the file store.
fn objects(serve: &Serve, journal: &str) -> Vec<String> {
    let folder = serve.path("data").join("store").join(journal);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The names of objects that a command listed.
fn listed(text: &str) -> Vec<String> {
    let objects = text.lines().filter_map(|line| line.strip_prefix("  "));
    let name = |path: &str| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = objects.map(name).collect();
    names.sort();
    names
}

/// The SHA-1 of `0xxxx`.
const SUM_OF_SMALL: &str = "9936f02f3f0b5dcbd9911a289159bb3e4545890e";

#[test]
fn what_is_older_than_its_retention_is_pruned() {
    let serve = Serve::start();
    serve.create(&["log"], "  retention: 1s\n");
    serve.create(&["kept"], "");
    for journal in ["local/log", "local/kept"] {
        for round in 0..4 {
            let content = format!("{round}{}\n", "x".repeat(2000));
            serve.journals_of(&["append", journal], content).ok();
        }
        serve.until_stored(journal, 3);
    }
    // Case: a small fragment, whose bytes are in a larger one too
    let small = format!("{:016x}-{:016x}-{SUM_OF_SMALL}.raw", 0, 5);
    serve.file(&format!("data/store/local/log/{small}"), "0xxxx");
    patience::pause(Duration::from_secs(3));
    let before = objects(&serve, "local/log");
    let dry = serve.journals(&["prune", "--dry-run", "local/log"]).ok().text();
    assert_tells(&dry, &["local/log: would delete", "older than 1s"]);
    let would = listed(&dry);
    assert!(would.len() >= 2 && would.contains(&small), "{dry}");
    assert_eq!(objects(&serve, "local/log"), before, "a dry run deletes nothing");

    let told = serve.journals(&["prune", "-l", "name:prefix=local/"]).ok().text();
    assert_tells(&told, &["local/log: deleted", "local/kept: kept for ever"]);
    let left = objects(&serve, "local/log");
    assert!(would.iter().all(|name| !left.contains(name)), "{would:?} {left:?}");
    assert!(!left.is_empty(), "the last fragment stays");
    // Case: the head stays, and what is left is read from its first byte
    let read = serve.journals(&["read", "local/log"]).ok();
    assert!(read.stderr.contains("are gone"), "{}", read.stderr);
    assert!(read.text().contains(&format!("3{}", "x".repeat(2000))));
    assert_eq!(serve.content("local/kept").len(), 4 * 2002);
    let again = serve.journals(&["prune", "local/log"]).ok().text();
    assert_tells(&again, &["objects: 0"]);
}

#[test]
fn what_is_further_below_the_head_than_its_size_is_pruned() {
    let serve = Serve::start();
    serve.create(&["log"], "labels: [{name: courant/retain-bytes, value: '3000'}]\n");
    for round in 0..4 {
        let content = format!("{round}{}\n", "x".repeat(2000));
        serve.journals_of(&["append", "local/log"], content).ok();
    }
    serve.until_stored("local/log", 3);
    let before = objects(&serve, "local/log");
    let dry = serve.journals(&["prune", "--dry-run", "local/log"]).ok().text();
    assert_tells(&dry, &["local/log: would delete", "more than 2.9 KiB below its head"]);
    let would = listed(&dry);
    assert!(!would.is_empty(), "{dry}");
    assert_eq!(objects(&serve, "local/log"), before, "a dry run deletes nothing");
    let told = serve.journals(&["prune", "local/log"]).ok().text();
    assert_tells(&told, &["local/log: deleted"]);
    let left = objects(&serve, "local/log");
    assert!(would.iter().all(|name| !left.contains(name)), "{would:?} {left:?}");
    let read = serve.journals(&["read", "local/log"]).ok().text();
    assert!(read.len() >= 3000 && read.ends_with(&"x".repeat(2000)), "{}", read.len());
}

#[test]
fn a_purge_takes_the_objects_that_a_dry_run_named() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    for _ in 0..3 {
        serve.journals_of(&["append", "local/log"], "x".repeat(2000)).ok();
    }
    serve.until_stored("local/log", 2);
    let dry = serve.journals(&["delete", "--purge", "--dry-run", "local/log"]).ok().text();
    assert!(listed(&dry).len() >= 2, "{dry}");
    assert_eq!(listed(&dry), objects(&serve, "local/log"));
    // Case: nobody has said yes
    let complaint = serve.journals(&["delete", "--purge", "local/log"]).refusal(1);
    assert_tells(&complaint, &["--yes", "--dry-run"]);
    serve.journals(&["delete", "--purge", "--yes", "local/log"]).ok();
    assert!(objects(&serve, "local/log").is_empty());
    let complaint = serve.journals(&["read", "local/log"]).refusal(1);
    assert_tells(&complaint, &["local/log", "does not exist"]);
}
