//! Stores that are not there: what is told, by whom, and how it goes on once they are.

use crate::serve::{SETTINGS, Serve, assert_tells};
use std::fs;
use tests::daemon;
use tests::patience;

/// A journal whose store is a directory below the broker's root that nobody made.
fn create_elsewhere(serve: &Serve) {
    let specs = format!("name: local/log\n{SETTINGS}").replace("file:///", "file:///sub/dir/");
    serve.journals_of(&["apply"], specs).ok();
}

#[test]
fn an_append_tells_at_once_which_directory_is_missing() {
    let serve = Serve::start();
    create_elsewhere(&serve);
    let missing = serve.path("data/store/sub/dir");
    let remedy = format!("mkdir -p {}", missing.display());
    // An append that waits for the store says so on a line of its own.
    let refused = serve.journals_of(&["append", "local/log"], "lost\n");
    assert_tells(&refused.refusal(1), &["local/log", "file:///sub/dir/", &remedy]);
    assert_eq!(refused.stderr.lines().count(), 1, "it waited: {}", refused.stderr);
    let status = daemon::run(&["status", "--broker", &serve.url()]).ok().text();
    assert_tells(&status, &["LAST FAILURE", &remedy]);
    let unhealthy = serve.journals(&["store-health", "file:///sub/dir/"]).refusal(1);
    assert_tells(&unhealthy, &[&remedy]);
    // Case: the remedy helps, without a restart
    fs::create_dir_all(&missing).unwrap();
    patience::until("the store is found", || {
        serve.journals_of(&["append", "local/log"], "kept\n").code == Some(0)
    });
    assert_eq!(serve.content("local/log"), "kept\n");
    let status = daemon::run(&["status", "--broker", &serve.url()]).ok().text();
    assert!(!status.contains(&remedy), "{status}");
}

#[test]
fn a_head_is_not_reset_without_a_look_at_the_store() {
    let serve = Serve::start();
    let here = serve.path("data/store/sub");
    fs::create_dir_all(here.join("dir")).unwrap();
    create_elsewhere(&serve);
    serve.create(&["other"], "");
    serve.journals_of(&["append", "local/log", "--lines"], "hello\n").ok();
    let told = serve.journals(&["reset-head", "local/log"]).ok().text();
    assert_tells(&told, &["local/log", "at 6", "nothing to reset"]);
    // Case: the store of one of two journals is away
    let away = serve.path("away");
    fs::rename(&here, &away).unwrap();
    let ran = serve.journals(&["reset-head", "-l", "name:prefix=local/"]);
    assert_tells(&ran.refusal(1), &["local/log: nothing was reset", "mkdir -p"]);
    assert_tells(&ran.text(), &["local/other: its head is at 0"]);
    assert!(!ran.text().contains("local/log"), "{}", ran.text());
    // Case: it is back, with a fragment of another broker above the head
    fs::rename(&away, &here).unwrap();
    let folder = here.join("dir/local/log");
    fs::create_dir_all(&folder).unwrap();
    let sum = "f572d396fae9206628714fb2ce00f72e94f2258f";
    fs::write(folder.join(format!("{:016x}-{:016x}-{sum}.raw", 6, 12)), "hello\n").unwrap();
    let told = serve.journals(&["reset-head", "local/log"]).ok().text();
    assert_eq!(told, "local/log: its head was moved to 12, where its store ends");
    serve.journals_of(&["append", "local/log"], "again\n").ok();
    assert_eq!(serve.content("local/log"), "hello\nhello\nagain\n");
}

#[test]
fn a_store_that_is_not_there_can_t_be_mounted_or_checked() {
    let serve = Serve::start();
    let point = serve.path("mount");
    let url = format!("file://{}/none/", serve.folder().display());
    let remedy = format!("mkdir -p {}/none", serve.folder().display());
    let mount = ["mount", "--bucket", &url, point.to_str().unwrap()];
    for command in [&mount[..], &["fsck", "--store", &url]] {
        let complaint = daemon::refused(command);
        assert_tells(&complaint, &["is not there", &remedy]);
        assert!(!complaint.contains("later"), "{complaint}");
    }
}

#[test]
fn a_dry_run_of_a_deletion_tells_what_no_store_has() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    let nowhere = format!("name: local/here\n{SETTINGS}").replace("['file:///']", "[]");
    serve.journals_of(&["apply"], nowhere).ok();
    for journal in ["local/log", "local/here"] {
        serve.journals_of(&["append", journal], "hello\n").ok();
    }
    // Case: the journal, whether it is purged, what would become of its bytes
    let cases = [
        ("local/log", false, "6 B that no store has yet would be stored first"),
        ("local/log", true, "6 B that no store has yet would be gone for ever"),
        ("local/here", false, "6 B that no store has yet would be gone for ever"),
    ];
    for (journal, is_purged, expected) in cases {
        let purge = if is_purged { &["--purge"][..] } else { &[] };
        let arguments = [&["delete", "--dry-run", journal], purge].concat();
        assert_tells(&serve.journals(&arguments).ok().text(), &["would delete", expected]);
    }
}
