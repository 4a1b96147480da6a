//! Appends: whole, by records, to many journals, and over a broker that is killed.

use crate::serve::{Serve, assert_tells};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;
use tests::patience::{self, LIMIT};
use tests::running::Running;

#[test]
fn input_is_appended_whole_or_by_records() {
    let serve = Serve::start();
    serve.create(&["fixed", "log"], "");
    serve.journals_of(&["append", "local/log"], "all\nof it").ok();
    serve.journals_of(&["append", "-l", "name=local/log", "-f", "lines"], "\none\ntwo").ok();
    assert_eq!(serve.content("local/log"), "all\nof it\none\ntwo\n");
    let frame = b"\x66\x33\x93\x36\x03\x00\x00\x00abc";
    serve.journals_of(&["append", "local/fixed", "-f", "fixed"], frame).ok();
    assert_eq!(serve.journals(&["read", "local/fixed"]).ok().stdout, frame);
    // Case: what is no frame is told with its place, and what came before is there
    let cut = [&frame[..], b"no frame"].concat();
    let complaint = serve.journals_of(&["append", "local/fixed", "-f", "fixed"], cut).refusal(1);
    assert_tells(&complaint, &["byte 11", "no frame"]);
    // Case: a journal that is not there
    let complaint = serve.journals_of(&["append", "local/none"], "x").refusal(1);
    assert_tells(&complaint, &["local/none", "courant journals apply"]);
}

#[test]
fn records_go_where_their_keys_say() {
    let serve = Serve::start();
    serve.create(&["part-000", "part-001", "part-002"], "");
    let append = |mapping: &str, input: &str| {
        let all = "name:prefix=local/part-";
        serve.journals_of(&["append", "-l", all, "--lines", "-m", mapping], input)
    };
    append("direct", "local/part-001\nrecord\nlocal/part-000\nother\n").ok();
    assert_eq!(serve.content("local/part-001"), "record\n");
    assert_eq!(serve.content("local/part-000"), "other\n");
    for mapping in ["modulo", "rendezvous"] {
        append(mapping, "key\nfirst\nother key\nx\nkey\nsecond\n").ok();
    }
    let all: Vec<String> = (0..3).map(|at| serve.content(&format!("local/part-00{at}"))).collect();
    // Case: records of one key stay in order, in one journal
    let both = all.iter().filter(|content| content.contains("first\n"));
    both.for_each(|content| assert!(content.contains("second\n"), "{all:?}"));
    assert_eq!(all.concat().matches("first\n").count(), 2);
    assert_tells(&append("direct", "local/log\nx\n").refusal(1), &["local/log"]);
    assert_tells(&append("modulo", "key\n").refusal(1), &["key", "last record"]);
}

/// How many lines are appended over the kills, and after which of them the broker is killed.
const LINES: usize = 400;
const KILLS: [usize; 3] = [100, 200, 300];

#[test]
fn lines_survive_a_broker_that_is_killed() {
    let mut serve = Serve::start();
    serve.create(&["log"], "");
    let mut command = serve.command(&["append", "local/log", "--lines"]);
    let mut append = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = append.stdin().unwrap();
    let mut write = |append: &mut Running, number: usize| {
        let written = writeln!(stdin, "line {number}");
        written.unwrap_or_else(|error| panic!("{error}: it said: {}", append.stderr()));
    };
    // A broker that is not there when the command begins is not waited for.
    write(&mut append, 0);
    patience::until("the first line is there", || serve.content("local/log") == "line 0\n");
    for number in 1..LINES {
        if KILLS.contains(&number) {
            // Some of what was written is under way, some is not sent yet.
            serve.daemon().kill();
            write(&mut append, number);
            patience::pause(Duration::from_millis(50));
            serve.again();
        } else {
            write(&mut append, number);
        }
        if number % 10 == 0 {
            patience::pause(Duration::from_millis(5));
        }
    }
    drop(stdin);
    let status = append.wait(LIMIT);
    assert!(status.success(), "it said: {}", append.stderr());
    let expected: String = (0..LINES).map(|number| format!("line {number}\n")).collect();
    assert!(serve.content("local/log") == expected, "lines are lost, repeated or out of order");
}

/// Lines of a flood: many groups of them are under way at any time.
const FLOOD: usize = 400_000;

#[test]
fn a_flood_of_lines_survives_a_broker_that_is_killed() {
    let mut serve = Serve::start();
    serve.create(&["log"], "");
    let mut command = serve.command(&["append", "local/log", "--lines", "--durability", "memory"]);
    let mut append = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = append.stdin().unwrap();
    let line = |number: usize| format!("line {number}\n");
    stdin.write_all(line(0).as_bytes()).unwrap();
    patience::until("the first line is there", || serve.content("local/log") == line(0));
    let writing = std::thread::spawn(move || {
        (1..FLOOD).try_for_each(|number| stdin.write_all(line(number).as_bytes()))
    });
    for _ in KILLS {
        let before = serve.content("local/log").len();
        patience::until("more is there", || serve.content("local/log").len() > before);
        serve.daemon().kill();
        serve.again();
    }
    writing.join().unwrap().unwrap_or_else(|error| panic!("{error}: {}", append.stderr()));
    let status = append.wait(LIMIT);
    assert!(status.success(), "it said: {}", append.stderr());
    let expected: String = (0..FLOOD).map(line).collect();
    assert!(serve.content("local/log") == expected, "lines are lost, repeated or out of order");
}
