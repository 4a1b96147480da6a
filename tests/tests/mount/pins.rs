//! What open files keep: half of the local budget at most, and not for ever.

use crate::held::{holder, let_read};
use crate::reading::append;
use serde_json::Value;
use std::time::Duration;
use tests::patience::{pause, until};
use tests::shell::cat;
use tests::world::{Up, apply, attribute};

const MIB: usize = 1 << 20;

/// Bytes that are nowhere alike, in lines.
fn content(size: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|number: u64| format!("line {number} of pins\n").into_bytes());
    lines.take(size).collect()
}

/// Bytes of a journal that are not only in its store.
#[track_caller]
pub fn local_bytes(up: &Up, name: &str) -> u64 {
    let journal = format!("local/{name}");
    let url = up.url();
    let told = tests::daemon::run(&["status", &journal, "--broker", &url, "-o", "json"]).ok();
    let status: Value = serde_json::from_str(&told.text()).unwrap();
    status["local_bytes"].as_u64().unwrap()
}

/// A number of `.courant/status`.
#[track_caller]
fn told(up: &Up, name: &str) -> usize {
    let status = String::from_utf8(cat(&up.file(".courant/status"))).unwrap();
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    status.lines().find_map(value).unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Bytes that the mirrors take on disk.
#[track_caller]
fn on_disk(up: &Up) -> usize {
    let line = "du -s --block-size=1 \"$1\" | cut -f1";
    let mirrors = up.data().join("mirror");
    up.bash(line, &[mirrors.to_str().unwrap()]).ok().text().parse().unwrap()
}

/// Appends to another journal, a MiB at a time: none of it may be refused.
#[track_caller]
fn append_elsewhere(up: &Up, mebibytes: usize) {
    let piece = vec![b'x'; MIB];
    for _ in 0..mebibytes {
        append(up, "other", &piece);
        // The room is looked at each second.
        pause(Duration::from_millis(500));
    }
}

#[test]
fn files_beyond_half_the_budget_are_read_through_the_daemon() {
    let up = Up::with(&["--local-budget", "8M"]);
    let expected = content(3 * MIB);
    append(&up, "one", &expected);
    append(&up, "two", &expected);
    let mut first = holder("open", &up.file("one"));
    until("one is lent", || told(&up, "pins") == 1);
    assert_eq!(attribute(&up, "one", "mode"), "passthrough");
    assert_eq!(attribute(&up, "two", "mode"), "direct");
    assert!(cat(&up.file("two")) == expected);
    assert!(let_read(&mut first) == expected);
    until("two may be lent", || attribute(&up, "two", "mode") == "passthrough");
}

#[test]
fn who_holds_more_than_half_the_budget_gives_way_to_appends() {
    let expected = content(10 * MIB);
    // Case: the helper process tells the kernel; whoever looks the name up next does.
    for options in [&["--local-budget", "16M"][..], &["--local-budget", "16M", "--no-notify"]] {
        let up = Up::with(options);
        apply(&up, "held", 5 * MIB, "NONE");
        append(&up, "held", &expected[..6 * MIB]);
        let mut reader = holder("open", &up.file("held"));
        let mut sender = holder("send", &up.file("held"));
        let mut mapper = holder("map", &up.file("held"));
        // Its descriptor is closed: nothing tells of it but the file system below.
        until("the two others are known", || told(&up, "pins") == 2);
        append(&up, "held", &expected[6 * MIB..]);
        let stored = (10 * MIB).to_string();
        until("all of it is stored", || attribute(&up, "held", "persisted") == stored);

        append_elsewhere(&up, 5);
        until("both are given up", || told(&up, "revoked") == 2);
        assert_eq!(local_bytes(&up, "held"), 10 * MIB as u64, "nothing goes before it is closed");
        assert!(cat(&up.file("held")) == expected, "a new open reads what is there");
        assert_eq!(String::from_utf8_lossy(&let_read(&mut reader)).trim_end(), "EIO");
        assert_eq!(let_read(&mut sender), expected[..1 << 16], "what is not refused is right");
        assert_eq!(told(&up, "pins"), 0);

        append_elsewhere(&up, 7);
        until("its bytes are only in the store", || local_bytes(&up, "held") < 10 * MIB as u64);
        assert_eq!(attribute(&up, "held", "mode"), "direct");
        assert!(cat(&up.file("held")) == expected);
        // What is mapped has all its bytes, and they go when it is not.
        assert!(let_read(&mut mapper) == expected[..6 * MIB], "what was mapped stays");
        until("the budget is kept", || on_disk(&up) <= 17 * MIB);
        assert!(cat(&up.file("held")) == expected);
    }
}
