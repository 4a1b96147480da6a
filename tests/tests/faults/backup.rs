//! Backups while a broker runs on the directory, under load from two mounts and over HTTP, with
//! fragments stored and freed and journals made and deleted meanwhile: a copy has all that was
//! acknowledged before it began, and is a prefix of each journal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tests::daemon;
use tests::ground;
use tests::model::records;
use tests::patience::until;
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::{self, Second, Up};
use tests::writer::{Manner, Writer};

/// Rounds in CI; `ROUNDS` asks for more.
const ROUNDS: usize = 3;

const JOURNALS: [&str; 3] = ["small", "large", "disk"];

/// Makes and deletes journals, one after the other.
const CHURN: &str = "i=0; while echo \"$i\" >> churn-$((i % 7)); do \
                     rm -f churn-$(((i + 3) % 7)); i=$((i + 1)); done";

/// The writers of a round, each with the journal that it is of.
fn start(up: &Up, second: &Second, round: usize) -> Vec<(usize, Writer)> {
    let first = u64::try_from(round).unwrap() * 1_000_000 + 1;
    let writer = |file: &Path, id, fill, pause| {
        let manner = Manner { fill, pause: Duration::from_millis(pause), ..Manner::default() };
        Writer::start(file, id, first, manner)
    };
    vec![
        (0, writer(&up.file("small"), 1, 60, 1)),
        (0, writer(&second.file("small"), 2, 3000, 1)),
        (1, writer(&second.file("large"), 3, 200_000, 20)),
        (2, Writer::over_http(&up.address(), "/local/disk", 4, first)),
    ]
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Whether some of a journal is in the store alone.
fn is_freed(up: &Up, name: &str) -> bool {
    let told = daemon::run(&["status", "--broker", &up.url(), "-o", "json", name]).ok().text();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    told["local_bytes"].as_u64().unwrap() < told["head"].as_u64().unwrap()
}

#[test]
fn a_backup_under_load_has_all_that_was_acknowledged() {
    let folder = ground::folder("backup-");
    let mut up = Up::with(&["--local-budget", "32M", "--allow-delete"]);
    let second = up.second();
    JOURNALS.iter().for_each(|name| world::apply(&up, name, 256 << 10, "ZSTANDARD"));
    for round in 0..ground::number("ROUNDS", ROUNDS) {
        let mut writers = start(&up, &second, round);
        let mut churn = Command::new("bash");
        let churn = Running::start(churn.current_dir(up.mount().path()).args(["-c", CHURN]));
        writers.iter_mut().for_each(|(_, writer)| writer.until_acknowledged());
        until("some is freed", || is_freed(&up, "local/large"));
        let before: Vec<_> = writers.iter().map(|(_, writer)| writer.acknowledged()).collect();
        let copy = folder.path().join(format!("copy-{round}"));
        daemon::run(&["backup", text(up.data()), text(&copy)]).ok();
        for (_, writer) in &mut writers {
            assert!(writer.lives(), "round {round}: {}", writer.last_word());
            writer.kill();
        }
        drop(churn);
        daemon::run(&["inspect", text(&copy)]).ok();
        let copied = Up::planned(&copy, &["--local-budget", "32M"]);
        let contents = read(&up, copied, round);
        for ((journal, writer), numbers) in writers.iter().zip(before) {
            let found = records(&contents[*journal]).unwrap_or_else(|e| panic!("{round}: {e}"));
            let is_there = |number: &u64| {
                found.iter().any(|of| of.writer == writer.id() && of.number == *number)
            };
            let lost: Vec<_> = numbers.into_iter().filter(|number| !is_there(number)).collect();
            assert!(lost.is_empty(), "round {round}: writer {} lost {lost:?}", writer.id());
        }
    }
    assert!(up.daemon().stop().success());
}

/// What a copy has of each journal, which the original begins with, once it was appended to.
fn read(up: &Up, mut copied: Up, round: usize) -> Vec<Vec<u8>> {
    copied.again();
    let of = |name: &&str| {
        let (now, then) = (cat(&up.file(name)), cat(&copied.file(name)));
        assert!(!then.is_empty() && now.starts_with(&then), "round {round}: {name} differs");
        copied.bash("echo more >> \"$1\"", &[name]).ok();
        assert_eq!(cat(&copied.file(name)), [&then, &b"more\n"[..]].concat(), "round {round}");
        then
    };
    let contents = JOURNALS.iter().map(of).collect();
    assert!(copied.daemon().stop().success());
    // Recovery set nothing aside: what the copy has of deleted journals is gone.
    let lost: Vec<PathBuf> = entries(&copied.data().join("lost+found"));
    assert!(lost.is_empty(), "round {round}: {lost:?}");
    contents
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_stopped_directory_is_copied_whole() {
    let folder = ground::folder("backup-");
    let mut up = Up::start();
    world::apply(&up, "log", 65_536, "ZSTANDARD");
    up.bash("seq 30000 >> log; echo kept >> other; sync log other", &[]).ok();
    // Case: how it was stopped
    for (at, is_clean) in [true, false].into_iter().enumerate() {
        let before = ["log", "other"].map(|name| cat(&up.file(name)));
        if is_clean {
            assert!(up.daemon().stop().success());
        } else {
            up.daemon().kill();
        }
        let copy = folder.path().join(format!("copy-{at}"));
        // An empty directory is taken, and gets the mode of the original.
        std::fs::create_dir(&copy).unwrap();
        let modes = shell::bash(up.data(), "chmod 700 .; stat -c %a .", &[]).ok().text();
        let away = format!("http://127.0.0.1:{}", ground::free_port());
        let broker = ["--broker", &away];
        let made = daemon::run(&[&["backup", text(up.data()), text(&copy)], &broker[..]].concat());
        // Nobody runs on it, so no broker is asked, and that is said.
        assert!(
            made.stderr.contains(&away) && made.stderr.contains("not asked"),
            "{}",
            made.stderr
        );
        made.ok();
        assert_eq!(shell::bash(&copy, "stat -c %a .", &[]).ok().text(), modes);
        daemon::run(&["inspect", text(&copy)]).ok();
        let mut copied = Up::planned(&copy, &[]);
        copied.again();
        let after = ["log", "other"].map(|name| cat(&copied.file(name)));
        assert!(before == after, "stopped cleanly: {is_clean}");
        up.again();
    }
}

#[test]
fn a_backup_that_cannot_be_made_says_why_and_leaves_nothing() {
    let folder = ground::folder("backup-");
    let (up, other) = (Up::start(), Up::start());
    up.bash("echo one >> log", &[]).ok();
    other.bash("echo two >> log; echo three >> more", &[]).ok();
    std::fs::create_dir(folder.path().join("taken")).unwrap();
    std::fs::write(folder.path().join("taken/file"), "1").unwrap();
    std::fs::create_dir(folder.path().join("begun.partial")).unwrap();
    let away = format!("http://127.0.0.1:{}", ground::free_port());
    let inside = format!("{}/copy", text(up.data()));
    let (data, none) = (text(up.data()), folder.path().join("none"));
    let within = |up: &Up| text(&up.file("copy")).to_owned();
    std::os::unix::fs::symlink(up.data(), folder.path().join("link")).unwrap();
    let at = |name: &str| text(&folder.path().join(name)).to_owned();
    // Case: the directory, the destination, the broker that is named, what is said
    let cases: [(&str, String, Option<&str>, &str); 10] = [
        (data, at("taken"), None, "not empty"),
        (data, at("begun"), None, "begun.partial"),
        (data, inside, None, "lie in each other"),
        (data, at("link/copy"), None, "lie in each other"),
        (data, within(&up), None, "lies in the mount"),
        (data, within(&other), None, "lies in the mount"),
        (data, at("none/new"), None, "none/new: No such file"),
        (text(&none), at("new"), None, "none"),
        (data, at("new"), Some(&away), "--broker"),
        (data, at("new"), Some(&other.url()), "another directory"),
    ];
    for (data, to, broker, said) in cases {
        let mut arguments = vec!["backup", data, &to];
        arguments.extend(broker.into_iter().flat_map(|url| ["--broker", url]));
        let refusal = daemon::refused(&arguments);
        assert!(refusal.contains(said), "{arguments:?}: {refusal}");
    }
    let left = shell::bash(folder.path(), "ls -A", &[]).ok().text();
    assert_eq!(left, "begun.partial\nlink\ntaken");
    assert_eq!(up.bash("ls", &[]).ok().text(), "log");
    assert_eq!(other.bash("ls", &[]).ok().text(), "log\nmore");
    // Nothing is held any more.
    daemon::run(&["backup", data, &at("new")]).ok();
}

#[test]
fn a_copy_over_a_store_that_went_on_takes_nothing_until_its_head_is_reset() {
    let (folder, store) = (ground::folder("backup-"), ground::folder("store-"));
    let options = ["--file-root", text(store.path()), "--write-timeout", "2s"];
    let mut up = Up::with(&options);
    world::apply(&up, "log", 4096, "NONE");
    up.bash("seq 3000 >> log", &[]).ok();
    let copy = folder.path().join("copy");
    daemon::run(&["backup", text(up.data()), text(&copy)]).ok();
    up.bash("seq 3001 9000 >> log", &[]).ok();
    let end = |up: &Up| {
        let told = daemon::run(&["status", "--broker", &up.url(), "-o", "json", "local/log"]).ok();
        let told: serde_json::Value = serde_json::from_str(&told.text()).unwrap();
        told["persisted"].as_u64().unwrap()
    };
    let backed_up = cat(&up.file("log"));
    until("most of it is stored", || end(&up) > 40_000);
    // The original is gone for good, and its store is not.
    up.daemon().kill();
    let mut copied = Up::planned(&copy, &options);
    copied.again();
    // The first listing of its store finds that out, which nothing waits for.
    until("what the store has beyond is found", || {
        let status = ["status", "--broker", &copied.url(), "-o", "json", "local/log"];
        let told: serde_json::Value =
            serde_json::from_str(&daemon::run(&status).ok().text()).unwrap();
        told["second_writer"].is_string()
    });
    let refused = copied.bash("echo more >> log", &[]);
    assert_ne!(refused.code, Some(0), "an append was acknowledged");
    world::journals(&copied, &["reset-head", "-l", "name=local/log"]).ok();
    let found = cat(&copied.file("log"));
    assert!(found.len() > 40_000 && backed_up.starts_with(&found), "{} bytes", found.len());
    copied.bash("echo more >> log", &[]).ok();
    assert_eq!(cat(&copied.file("log")), [&found, &b"more\n"[..]].concat());
}
