//! Reading: from an offset, by age, on from a file of offsets, and many journals for ever.

use crate::serve::{SETTINGS, Serve, assert_tells};
use rustix::process::Signal;
use std::io::BufRead;
use std::time::{SystemTime, UNIX_EPOCH};
use tests::patience::{self, LIMIT};
use tests::running::Running;

#[test]
fn reading_begins_where_it_is_told() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    serve.journals_of(&["append", "local/log"], "0123456789\n").ok();
    // Case: further arguments, what is read
    let cases: [(&[&str], &str); 6] = [
        (&[], "0123456789\n"),
        (&["--from", "4"], "456789\n"),
        (&["--offset", "4"], "456789\n"),
        (&["--from", "11"], ""),
        (&["--tail"], ""),
        (&["--since", "1h"], "0123456789\n"),
    ];
    for (more, expected) in cases {
        let read = serve.journals(&[&["read", "local/log"], more].concat()).ok();
        assert_eq!(String::from_utf8(read.stdout).unwrap(), expected, "{more:?}");
    }
    // Case: an offset that is not there; one that is a time for gazctl
    let complaint = serve.journals(&["read", "local/log", "--from", "12"]).refusal(1);
    assert_tells(&complaint, &["local/log", "12", "11"]);
    let complaint = serve.journals(&["read", "local/log", "--from", "1700000000"]).refusal(1);
    assert_tells(&complaint, &["--from-time"]);
    let none = serve.journals(&["read", "-l", "name:prefix=none/"]).refusal(1);
    assert_tells(&none, &["name:prefix=none/", "courant journals list"]);
}

#[test]
fn reading_begins_with_what_was_stored_lately() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    let old = "old\n".repeat(300);
    serve.journals_of(&["append", "local/log"], &old).ok();
    serve.journals_of(&["append", "local/log"], "new\n").ok();
    serve.until_stored("local/log", 1);
    let now = || SystemTime::now_by_file(&serve);
    let stored = now();
    patience::until("the next second", || now() > stored + 1);
    let later = (stored + 2).to_string();
    let read = serve.journals(&["read", "local/log", "--from-time", &later]).ok();
    assert_eq!(read.text(), "new", "the stored fragment is left out");
    let read = serve.journals(&["read", "local/log", "--from-time", "1"]).ok();
    assert_eq!(String::from_utf8(read.stdout).unwrap(), old + "new\n");
}

/// The time of day in Unix seconds, as the file system tells it.
trait ByFile {
    fn now_by_file(serve: &Serve) -> u64;
}

impl ByFile for SystemTime {
    fn now_by_file(serve: &Serve) -> u64 {
        let path = serve.file("now", "");
        let modified = std::fs::metadata(path).unwrap().modified().unwrap();
        modified.duration_since(UNIX_EPOCH).unwrap().as_secs()
    }
}

#[test]
fn offsets_say_where_to_go_on() {
    let serve = Serve::start();
    serve.create(&["one", "two"], "");
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    serve.journals_of(&["append", "local/two"], "two 1\n").ok();
    let seen = serve.path("seen.json").to_str().unwrap().to_owned();
    let on = ["read", "-l", "name:prefix=local/", "--offsets-out", &seen, "--offsets", &seen];
    // Case: the first time there is no file
    assert_eq!(serve.journals(&on).ok().text(), "one 1\ntwo 1");
    let offsets: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    assert_eq!(offsets, serde_json::json!({"local/one": 6, "local/two": 6}));
    serve.journals_of(&["append", "local/two"], "two 2\n").ok();
    assert_eq!(serve.journals(&on).ok().text(), "two 2");
    assert_eq!(serve.journals(&on).ok().text(), "");
    // Case: a file that is none
    let wrong = serve.file("wrong.json", "[]");
    let complaint = serve.journals(&["read", "local/one", "--offsets", &wrong]).refusal(1);
    assert_tells(&complaint, &["wrong.json", r#"{"journal": offset}"#]);
    // Case: an offset of another journal of that name, which this one does not reach
    let beyond = serve.file("beyond.json", r#"{"local/one": 7}"#);
    for from in [["local/one", "--offsets"], ["--selector=name:prefix=local/", "--offsets"]] {
        let complaint = serve.journals(&["read", from[0], from[1], &beyond]).refusal(1);
        assert_tells(&complaint, &["local/one", "offset 7", "end, 6", "--offsets"]);
    }
}

#[test]
fn offsets_are_written_to_what_is_there() {
    let serve = Serve::start();
    serve.create(&["one"], "");
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    let read = |out: &str| serve.journals(&["read", "local/one", "--offsets-out", out]);
    // Case: standard output; its name
    for out in ["-", "/dev/stdout"] {
        assert_eq!(read(out).ok().text(), "one 1\n{\n  \"local/one\": 6\n}", "{out}");
    }
    // Case: a link, which stays one
    let (link, file) = (serve.path("link.json"), serve.path("file.json"));
    std::os::unix::fs::symlink(serve.file("file.json", "old"), &link).unwrap();
    read(link.to_str().unwrap()).ok();
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"local/one\": 6"));
    // Case: a pipe, which another program reads
    let pipe = serve.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let mut reader = Running::start(std::process::Command::new("cat").arg(&pipe));
    read(pipe.to_str().unwrap()).ok();
    assert!(reader.wait(LIMIT).success());
    assert!(String::from_utf8(reader.stdout()).unwrap().contains("\"local/one\": 6"));
}

#[test]
fn one_journal_is_followed() {
    let serve = Serve::start();
    serve.create(&["one"], "");
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    let mut read = Running::start(&mut serve.command(&["read", "-b", "local/one"]));
    read.until_prints("one 1\n");
    serve.journals_of(&["append", "local/one"], "one 2\n").ok();
    read.until_prints("one 2\n");
    assert!(read.ended().is_none());
}

#[test]
fn who_waits_for_more_ends_when_nobody_reads() {
    let serve = Serve::start();
    serve.create(&["one"], "");
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    // Case: the command; nothing more ever comes that a write could fail for
    let cases: [&[&str]; 3] = [
        &["read", "-b", "local/one"],
        &["read", "-b", "-l", "name=local/one"],
        &["list", "--watch"],
    ];
    for arguments in cases {
        let (ours, theirs) = std::io::pipe().unwrap();
        let mut child = serve.command(arguments).stdout(theirs).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(ours).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{arguments:?}: {line:?}");
        patience::until("it ends", || child.try_wait().unwrap().is_some());
        assert!(child.wait().unwrap().success(), "{arguments:?}");
    }
}

#[test]
fn journals_that_may_not_be_read_are_told() {
    let serve = Serve::start();
    serve.create(&["one"], "");
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    serve.journals_of(&["apply"], format!("name: wo/x\nflags: O_WRONLY\n{SETTINGS}")).ok();
    serve.journals_of(&["apply"], format!("name: ro/x\nflags: O_RDONLY\n{SETTINGS}")).ok();
    // Case: the command, and what it says, which names the journal once
    let complaint = serve.journals(&["read", "wo/x"]).refusal(1);
    assert_tells(&complaint, &["wo/x", "O_WRONLY", "journals edit"]);
    let complaint = serve.journals_of(&["append", "ro/x"], "content\n").refusal(1);
    assert_tells(&complaint, &["read-only"]);
    assert_eq!(complaint.matches("ro/x").count(), 1, "{complaint}");
    serve.journals(&["fragments", "wo/x"]).refusal(1);
    // Case: of all journals, it is passed over
    let all = serve.journals(&["fragments"]).ok();
    assert_tells(&all.stderr, &["wo/x", "write-only"]);
    assert!(all.text().contains("local/one"), "{}", all.text());
}

#[test]
fn a_selector_is_followed_as_journals_come_and_go() {
    let mut serve = Serve::start();
    serve.create(&["one"], "");
    let seen = serve.path("seen.json").to_str().unwrap().to_owned();
    let all = "name:prefix=local/";
    let mut command = serve.command(&["read", "-b", "-l", all, "--offsets-out", &seen]);
    let mut read = Running::start(&mut command);
    serve.journals_of(&["append", "local/one"], "one 1\n").ok();
    read.until_prints("one 1\n");
    serve.create(&["two"], "");
    serve.journals_of(&["append", "local/two"], "two 1\n").ok();
    read.until_prints("two 1\n");
    serve.journals(&["delete", "--yes", "local/one"]).ok();
    serve.journals_of(&["append", "local/two"], "two 2\n").ok();
    read.until_prints("two 2\n");
    // Case: the broker is killed, and it goes on with the next one
    serve.daemon().kill();
    serve.again();
    serve.journals_of(&["append", "local/two"], "two 3\n").ok();
    read.until_prints("two 3\n");
    read.signal(Signal::INT);
    assert!(read.wait(LIMIT).success(), "it said: {}", read.stderr());
    let offsets: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&seen).unwrap()).unwrap();
    assert_eq!(offsets["local/two"], 18);
}

#[test]
fn appends_of_many_journals_are_not_torn() {
    let serve = Serve::start();
    let names = ["a1", "b1", "c1"];
    serve.create(&names, "");
    let line = |name: &str| format!("{}\n", name.repeat(20_000));
    let mut command = serve.command(&["read", "-b", "-l", "name:prefix=local/"]);
    let mut read = Running::start(&mut command);
    let inputs: Vec<String> =
        names.iter().map(|name| serve.file(&format!("{name}.in"), line(name))).collect();
    let mut writers = Vec::new();
    for _ in 0..3 {
        for (name, input) in names.iter().zip(&inputs) {
            let journal = format!("local/{name}");
            writers.push(Running::start(&mut serve.command(&["append", &journal, "-i", input])));
        }
    }
    for writer in &mut writers {
        assert!(writer.wait(LIMIT).success(), "it said: {}", writer.stderr());
    }
    let total = 9 * line("a1").len();
    patience::until("all is read", || read.stdout().len() >= total);
    let text = String::from_utf8(read.stdout()).unwrap();
    for found in text.lines() {
        let name = &found[..2];
        assert!(found == name.repeat(20_000), "a torn line of {name}");
    }
    assert!(read.ended().is_none());
}
