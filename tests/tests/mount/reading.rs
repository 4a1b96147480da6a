//! Reading to the end, and following, with unmodified programs: cases T08 and T09.

use crate::pins::local_bytes;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::patience::{LIMIT, reached, until};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::{Up, apply, attribute, journals};

/// The sizes of T09: none, one, about a page, about a read, about a write, and some more.
const SIZES: [usize; 8] = [0, 1, 4095, 4096, 131_073, 1_048_577, 3_000_000, 9 << 20];

/// Bytes that are nowhere alike, in lines.
fn content(size: usize) -> Vec<u8> {
    let lines = (0..).flat_map(|number: u64| format!("line {number} of a journal\n").into_bytes());
    lines.take(size).collect()
}

/// Each prints what it read; `$1` is the file, `$2` a program of ours, `$3` the size.
const COPIES: [&str; 17] = [
    "cat \"$1\"",
    "busybox cat \"$1\"",
    "dd if=\"$1\" bs=512 status=none",
    "dd if=\"$1\" bs=1M status=none",
    "head -c $(($3 + 10)) \"$1\"",
    "tail -c +1 \"$1\"",
    "less -E \"$1\"",
    "f=$(mktemp) && cp \"$1\" \"$f\" && cat \"$f\" && rm \"$f\"",
    "f=$(mktemp) && busybox cp \"$1\" \"$f\" && cat \"$f\" && rm \"$f\"",
    "tar -cf - -C \"$(dirname \"$1\")\" \"$(basename \"$1\")\" | tar -xOf -",
    "d=$(mktemp -d) && rsync \"$1\" \"$d/f\" && cat \"$d/f\" && rm -r \"$d\"",
    "gzip -c < \"$1\" | gzip -dc",
    "python3 \"$2\" sendfile \"$1\"",
    "python3 \"$2\" splice \"$1\"",
    "python3 \"$2\" readv \"$1\"",
    "python3 \"$2\" private-mapping \"$1\"",
    "head -c $(($3 / 2)) \"$1\"; tail -c +$(($3 / 2 + 1)) \"$1\"",
];

/// Each prints the size.
const COUNTS: [&str; 4] =
    ["wc -c < \"$1\"", "wc -c \"$1\" | cut -d' ' -f1", "stat -c %s \"$1\"", "cat \"$1\" | wc -c"];

/// Each prints the number of lines; the first does not count one without its newline.
const LINES: [&str; 3] =
    ["wc -l < \"$1\"", "grep -c '' \"$1\" || true", "awk 'END { print NR }' \"$1\""];

/// Reads a file with every program.
#[track_caller]
fn assert_reads(file: &Path, expected: &[u8]) {
    let (program, size) = (tests::ground::program("copies.py"), expected.len());
    let arguments = [file.to_str().unwrap(), program.to_str().unwrap(), &size.to_string()];
    let run = |line: &str| shell::bash(Path::new("/"), line, &arguments).ok();
    for line in COPIES {
        let read = run(line).stdout;
        assert!(
            read == expected,
            "{line}: {} bytes of {size} through {}, first wrong at {:?}",
            read.len(),
            file.display(),
            read.iter().zip(expected).position(|(one, other)| one != other),
        );
    }
    for line in COUNTS {
        assert_eq!(run(line).text(), size.to_string(), "{line}");
    }
    let newlines = expected.iter().filter(|byte| **byte == b'\n').count();
    let partial = usize::from(expected.last().is_some_and(|byte| *byte != b'\n'));
    for (line, extra) in LINES.into_iter().zip([0, partial, partial]) {
        assert_eq!(run(line).text(), (newlines + extra).to_string(), "{line} of {size}");
    }
}

/// Appends bytes to a file of the mount by cat.
#[track_caller]
pub fn append(up: &Up, name: &str, content: &[u8]) {
    let source = up.data().with_file_name("content");
    std::fs::write(&source, content).unwrap();
    up.bash("cat \"$1\" >> \"$2\"", &[source.to_str().unwrap(), name]).ok();
}

#[test]
fn t09_every_program_reads_to_the_end_and_no_further() {
    let up = Up::start();
    let second = up.second();
    for size in SIZES {
        let name = format!("log-{size}");
        let expected = content(size);
        append(&up, &name, &expected);
        assert_reads(&up.file(&name), &expected);
        // An empty file is a placeholder, which only its own mount shows.
        if size > 0 {
            assert_reads(&second.file(&name), &expected);
        }
    }
}

#[test]
fn t09_what_is_half_in_the_store_and_half_local_is_one_file() {
    const STORED: usize = 5 << 20;
    // What was stored does not fit beside what comes after it, so that its local bytes go.
    let up = Up::with(&["--local-budget", "6M"]);
    let second = up.second();
    let expected = content(9 << 20);
    // Case: a fragment that is read by a ranged get, and one that is decompressed.
    for codec in ["NONE", "ZSTANDARD"] {
        let name = format!("half-{codec}");
        apply(&up, &name, STORED, codec);
        append(&up, &name, &expected[..STORED]);
        let stored = || attribute(&up, &name, "persisted");
        until("half of it is stored", || stored() == STORED.to_string());
        append(&up, &name, &expected[STORED..]);
        until("its begin is only in the store", || local_bytes(&up, &name) < STORED as u64);
        assert_eq!(attribute(&up, &name, "mode"), "direct");
        assert_eq!(stored(), STORED.to_string());
        for file in [up.file(&name), second.file(&name)] {
            assert_reads(&file, &expected);
        }
        up.bash("for i in 1 2 3; do echo more >> \"$1\"; done", &[&name]).ok();
        assert!(cat(&second.file(&name)).ends_with(b"more\nmore\nmore\n"));
        // The next one needs the room.
        journals(&up, &["delete", "--purge", "--yes", &format!("local/{name}")]).ok();
    }
}

#[test]
fn what_a_handle_has_open_is_not_freed_before_it_is_closed() {
    const STORED: usize = 5 << 20;
    let up = Up::with(&["--local-budget", "12M"]);
    let expected = content(STORED);
    apply(&up, "log", STORED, "ZSTANDARD");
    append(&up, "log", &expected);
    until("it is stored", || attribute(&up, "log", "persisted") == STORED.to_string());

    let line = "exec 3< log; echo held >&2; read -r; cat <&3";
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(up.mount().path()).stdin(Stdio::piped());
    let mut holder = Running::start(&mut command);
    until("it is open", || holder.stderr().contains("held"));
    // It is within its half of the budget, which no store's bytes of others use up: looks for what
    // can go find nothing.
    let others = "dd if=/dev/zero of=other bs=1000000 count=8 status=none";
    up.bash(others, &[]).ok();
    tests::patience::pause(Duration::from_secs(8));
    assert_eq!(attribute(&up, "log", "mode"), "passthrough");
    assert_eq!(local_bytes(&up, "log"), STORED as u64);
    drop(holder.stdin());
    assert!(holder.wait(LIMIT).success(), "{}", holder.stderr());
    assert!(holder.stdout() == expected, "{} bytes were read", holder.stdout().len());
    until("it is only in the store", || local_bytes(&up, "log") == 0);
    assert_eq!(attribute(&up, "log", "mode"), "direct");
    assert!(cat(&up.file("log")) == expected);
}

/// Who follows the file `$1`, whose follow view is `$2`.
const FOLLOWERS: [(&str, &str); 8] = [
    ("tail -f", "exec tail -n +1 -f \"$1\""),
    ("tail -F", "exec tail -n +1 -F \"$1\""),
    ("tail -c", "exec tail -c +1 -f \"$1\""),
    ("busybox tail", "exec busybox tail -n +1 -f \"$1\""),
    ("less +F", "exec python3 \"$3\" less -d +F \"$1\""),
    ("tail on a terminal", "exec python3 \"$3\" tail -n +1 -f \"$1\""),
    ("cat of the follow view", "exec cat \"$2\""),
    ("grep of the follow view", "exec grep --line-buffered '' \"$2\""),
];

/// The numbers of the lines in what a follower printed, in their order. What a terminal adds to
/// lines is left out.
fn numbers(printed: &[u8]) -> Vec<u64> {
    let printed = String::from_utf8_lossy(printed);
    let lines = printed.split(['\n', '\r']);
    lines.filter_map(|line| line.trim().strip_prefix("number ")?.parse().ok()).collect()
}

#[test]
fn t08_followers_see_every_line_once_and_in_order() {
    const LINES: u64 = 100;
    let up = Up::start();
    let second = up.second();
    up.bash("echo number 1 >> log", &[]).ok();
    let program = tests::ground::program("terminal.py");
    let mut followers: Vec<(String, Running)> = Vec::new();
    for mount in [up.mount(), second.mount()] {
        let file = mount.path().join("log");
        let follow = mount.path().join(".courant/follow/log");
        for (name, line) in FOLLOWERS {
            let mut command = Command::new("bash");
            command.args(["-c", line, "bash"]).args([&file, &follow, &program]);
            let name = format!("{name} through {}", mount.path().display());
            followers.push((name, Running::start(command.stdin(Stdio::null()))));
        }
    }
    let writer = "for i in $(seq 2 $1); do echo number $i >> log; sleep 0.1; done";
    up.bash(writer, &[&LINES.to_string()]).ok();

    let expected: Vec<u64> = (1..=LINES).collect();
    for (name, follower) in &mut followers {
        reached(LIMIT, || numbers(&follower.stdout()).len() >= expected.len());
        let mut seen = numbers(&follower.stdout());
        if name.starts_with("less") {
            // It paints the last lines again as it likes.
            seen.sort_unstable();
            seen.dedup();
        }
        assert_eq!(seen, expected, "{name}: {}", follower.stderr());
        assert_eq!(follower.ended(), None, "{name} has ended");
        assert!(follower.kill(), "{name} can't be killed");
    }
}

#[test]
fn t08_a_waiting_follower_ends_at_each_signal() {
    use rustix::process::Signal;
    let up = Up::start();
    let second = up.second();
    up.bash("echo first >> log", &[]).ok();
    for mount in [up.mount(), second.mount()] {
        let file = mount.path().join("log");
        let follow = mount.path().join(".courant/follow/log");
        let followers: [&[&str]; 3] = [&["cat"], &["grep", ""], &["tail", "-c", "+1", "-f"]];
        for follower in followers {
            for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
                let target = if follower[0] == "tail" { &file } else { &follow };
                let mut command = shell::with_signals("stdbuf");
                command.arg("-o0").args(follower).arg(target);
                let mut running = Running::start(command.stdin(Stdio::null()));
                running.until_prints("first");
                // It has come to the head, and waits there.
                tests::patience::pause(Duration::from_millis(300));
                assert_eq!(running.ended(), None, "{follower:?} did not wait");
                running.signal(signal);
                let ended = reached(LIMIT, || running.ended().is_some());
                assert!(ended, "{follower:?} survives {signal:?} on {}", target.display());
            }
        }
    }
    // The mount goes on after all of them.
    up.bash("echo second >> log", &[]).ok();
    assert_eq!(cat(&second.file("log")), b"first\nsecond\n");
}

/// A notification that is lost shows once in some thousands of rounds.
#[test]
fn each_append_is_told_to_who_polls_whoever_asks_how() {
    let up = Up::start();
    let second = up.second();
    let program = tests::ground::program("polling.py");
    let program = program.to_str().expect("it is ours");
    let mounts = [(up.mount().path(), "one", "3000"), (second.mount().path(), "two", "500")];
    for (mount, file, rounds) in mounts {
        shell::bash(mount, "echo first >> \"$1\"", &[file]).ok();
        for how in ["poll", "level", "edge"] {
            let line = "python3 \"$1\" \"$2\" .courant/follow/\"$3\" \"$3\" \"$4\"";
            shell::bash(mount, line, &[program, how, file, rounds]).ok();
        }
    }
}
