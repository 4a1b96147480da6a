//! Specs: listed in each form, applied, edited, watched.

use crate::serve::{SETTINGS, Serve, assert_tells};
use std::os::unix::fs::PermissionsExt;
use tests::patience::LIMIT;
use tests::running::Running;
use tests::shell;

#[test]
fn what_list_shows_apply_takes_in_each_form() {
    let serve = Serve::start();
    serve.create(&["app/one", "app/two", "log"], "labels: [{name: tag, value: a}]");
    let all = ["local/app/one", "local/app/two", "local/log"];
    for (format, old, new) in [("yaml", 2, 3), ("json", 3, 4)] {
        let text = serve.journals(&["list", "-o", format]).ok().stdout;
        // Case: at their revisions nothing has changed, so that all can be put again
        let told = serve.journals_of(&["apply"], &text).ok().text();
        for name in all {
            let put = format!("put {name} (at revision {new})");
            assert!(told.contains(&put), "{format}: {told}");
        }
        // Case: those revisions are gone then
        let complaint = serve.journals_of(&["apply"], &text).refusal(1);
        let changed = format!("local/app/one is at revision {new}, and not at {old} any more");
        assert_tells(&complaint, &[&changed, "nothing was applied", "courant journals list"]);
    }
    let yaml = serve.journals(&["list", "-o", "yaml"]).ok().text();
    assert!(yaml.starts_with("name: local/\nreplication: 1\n"), "{yaml}");
    assert_eq!(yaml.matches("compression_codec").count(), 1, "said once for all: {yaml}");
    let proto = serve.journals(&["list", "-l", "name=local/log", "-o", "proto"]).ok().text();
    assert!(proto.contains("name: \"local/log\""), "{proto}");
    let json = serve.json(&["list", "-o", "json"]);
    assert_eq!(json["journals"][2]["spec"]["fragment"]["length"], "1024");
    assert_eq!(json["status"], "OK");

    let table = serve.journals(&["list", "-L", "tag", "--rf", "--stores", "-p", "-r"]).ok().text();
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "PRIMARY", "REPLICAS", "RF", "STORES", "TAG"]);
    assert_eq!((rows[3][0], rows[3][3], rows[3][5]), ("local/log", "1", "a"));
    // Case: a selector
    let some = serve.journals(&["list", "-l", "name:prefix=local/app/, tag in (a, b)"]).ok().text();
    assert_eq!(some, "NAME\nlocal/app/one\nlocal/app/two");
}

#[test]
fn a_spec_without_a_revision_must_be_new() {
    let serve = Serve::start();
    let specs = format!("name: local/log\n{SETTINGS}");
    let told = serve.journals_of(&["apply"], &specs).ok().text();
    assert_eq!(told, "create local/log (at revision 2)");
    // Case: the same again
    let complaint = serve.journals_of(&["apply"], &specs).refusal(1);
    let remedies = ["revision: 2", "courant journals edit local/log"];
    assert_tells(&complaint, &["local/log exists, at revision 2", "nothing was applied"]);
    assert_tells(&complaint, &remedies);
    // Case: one of them helps
    let told = serve.journals_of(&["apply"], format!("{specs}revision: 2\n")).ok().text();
    assert_eq!(told, "put local/log (at revision 3)");
    // Case: a revision of a journal that is not there
    let specs = format!("name: local/gone\nrevision: 7\n{SETTINGS}");
    let complaint = serve.journals_of(&["apply"], specs).refusal(1);
    assert_tells(&complaint, &["local/gone does not exist", "revision 7"]);
    // Case: nothing at all
    assert_tells(&serve.journals_of(&["apply"], "").ok().stderr, &["nothing was applied"]);
}

#[test]
fn a_dry_run_asks_nobody() {
    let serve = Serve::start();
    let specs = format!("name: local/log\n{SETTINGS}");
    let path = serve.file("specs.yaml", specs);
    let nowhere = ["journals", "--broker=http://127.0.0.1:1", "apply", "--dry-run", "--specs"];
    let told = tests::daemon::run(&[&nowhere[..], &[&path]].concat()).ok().text();
    assert!(told.starts_with("# create local/log\nchanges: [{\n  upsert {"), "{told}");
    assert!(told.contains("compression_codec: NONE"), "{told}");
    // Case: what is wrong names the file and the key
    let path = serve.file("wrong.yaml", format!("name: local/log\nrefresh: 1s\n{SETTINGS}"));
    let complaint = serve.journals(&["apply", "--specs", &path]).refusal(1);
    assert_tells(&complaint, &["wrong.yaml", "refresh"]);
}

#[test]
fn many_journals_go_in_several_transactions() {
    let serve = Serve::start();
    let children: String = (0..130).map(|at| format!("- name: local/j{at:03}\n")).collect();
    let specs = format!("name: local/\n{SETTINGS}children:\n{children}");
    let complaint = serve.journals_of(&["apply"], &specs).refusal(1);
    assert_tells(&complaint, &["130", "limit 128", "--max-txn-size"]);
    let told = serve.journals_of(&["apply", "--max-txn-size", "100"], &specs).ok().text();
    assert_eq!(told.lines().count(), 130);
    // Case: more pages of a list than one
    assert_eq!(serve.journals(&["list"]).ok().text().lines().count(), 131);
}

/// An editor that runs a line of shell on the file.
fn editor(serve: &Serve, name: &str, line: &str) -> String {
    let path = serve.file(name, format!("#!/bin/sh\n{line}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn an_editor_changes_specs() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    let edit = |editor: &str| {
        let mut command = serve.command(&["edit", "local/log"]);
        shell::run(command.env("GAZ_EDITOR", editor), LIMIT)
    };
    let longer = editor(&serve, "longer", "sed -i s/1024/4096/ \"$1\"");
    assert!(edit(&longer).ok().text().contains("put local/log"));
    let length = |serve: &Serve| {
        serve.json(&["list", "-o", "json"])["journals"][0]["spec"]["fragment"]["length"].clone()
    };
    assert_eq!(length(&serve), "4096");
    // Case: nothing is changed, so nothing is applied
    assert!(edit("true").ok().text().is_empty());
    // Case: nothing is left of the text, so nothing is applied, which is told
    assert_tells(&edit("truncate -s 0").ok().stderr, &["nothing was applied"]);
    assert_eq!(length(&serve), "4096");
    // Case: the editor fails, and there is nothing to keep
    let complaint = edit("false").refusal(1);
    assert_tells(&complaint, &["the editor false failed", "nothing was applied", "EDITOR"]);
    // Case: what is wrong is told in the text, which is opened again and mended there
    let twice = "if grep -q '^# wrong: .*length' \"$1\"\n\
        then sed -i -e s/4095x/2048/ \"$1\"\nelse sed -i s/4096/4095x/ \"$1\"\nfi";
    edit(&editor(&serve, "twice", twice)).ok();
    assert_eq!(length(&serve), "2048");
    // Case: it stays wrong, and the text stays for who wrote it
    let wrong = editor(&serve, "wrong", "sed -i s/2048/2x/ \"$1\"");
    let complaint = edit(&wrong).refusal(1);
    assert_tells(&complaint, &["nothing was applied", "length", "courant-journals-"]);
    std::fs::remove_file(complaint.rsplit(' ').next().unwrap()).unwrap();
    // Case: a script that writes the same wrong text each time
    let draft = serve.file("draft.yaml", "name: local/log\nlength: 2x\n");
    let again = editor(&serve, "again", &format!("cp {draft} \"$1\""));
    let complaint = edit(&again).refusal(1);
    assert_tells(&complaint, &["nothing was applied", "length", "courant-journals-"]);
    let kept = complaint.rsplit(' ').next().unwrap();
    let text = std::fs::read_to_string(kept).unwrap();
    assert!(text.ends_with("name: local/log\nlength: 2x\n"), "{text}");
    std::fs::remove_file(kept).unwrap();
    // Case: one that is never right, and never the same
    let worse = editor(&serve, "worse", "echo 'length: 2x' >> \"$1\"");
    let complaint = edit(&worse).refusal(1);
    assert_tells(&complaint, &["nothing was applied", "20 times"]);
    std::fs::remove_file(complaint.rsplit(' ').next().unwrap()).unwrap();
}

#[test]
fn a_watch_shows_each_change() {
    let mut serve = Serve::start();
    serve.create(&["one"], "");
    let mut watch = Running::start(&mut serve.command(&["list", "--watch"]));
    watch.until_prints("NAME\nlocal/one\n");
    serve.create(&["two"], "");
    watch.until_prints("\nNAME\nlocal/one\nlocal/two\n");
    // Case: the broker is another process then
    serve.daemon().kill();
    serve.again();
    serve.create(&["zoo"], "");
    watch.until_prints("\nNAME\nlocal/one\nlocal/two\nlocal/zoo\n");
}
