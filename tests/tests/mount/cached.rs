//! A remote mount with its cache: what was read once is local, what is whole is read by the kernel,
//! and neither ever shows a byte that is not the journal's.

use crate::held::{holder, let_read};
use std::path::Path;
use std::process::{Command, Stdio};
use tests::daemon;
use tests::filesystem::Filesystem;
use tests::patience::{LIMIT, reached, until};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::{Second, Up};

/// Bytes that are nowhere alike, in lines.
fn content(seed: u64, size: usize) -> Vec<u8> {
    let line = |number: u64| format!("line {number} of journal {seed}\n").into_bytes();
    (0..).flat_map(line).take(size).collect()
}

/// Makes a file of the broker's own mount of these bytes.
#[track_caller]
fn put(up: &Up, name: &str, content: &[u8]) {
    let source = up.data().with_file_name("content");
    std::fs::write(&source, content).unwrap();
    up.bash("cat \"$1\" >> \"$2\"", &[source.to_str().unwrap(), name]).ok();
}

#[track_caller]
fn mode(file: &Path) -> String {
    let line = "getfattr --only-values -n user.courant.mode \"$1\"";
    shell::bash(Path::new("/"), line, &[file.to_str().unwrap()]).ok().text()
}

/// A number of `.courant/status`.
#[track_caller]
fn told(second: &Second, name: &str) -> usize {
    let status = cat(&second.file(".courant/status"));
    let status = String::from_utf8(status).unwrap();
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    status.lines().find_map(value).unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Bytes that the cache takes on disk.
fn allocated(second: &Second) -> usize {
    let line = "du -s --block-size=1 \"$1\" | cut -f1";
    let ran = shell::bash(Path::new("/"), line, &[second.cache().to_str().unwrap()]).ok();
    ran.text().parse().unwrap()
}

#[test]
fn what_was_read_once_is_read_by_the_kernel_though_the_broker_stands_still() {
    use rustix::process::Signal;
    let mut up = Up::start();
    let second = up.second_with(&["--cache-size", "1G"]);
    let expected = content(1, 64 << 20);
    put(&up, "log", &expected);
    let file = second.file("log");
    assert_eq!(mode(&file), "direct");
    assert!(cat(&file) == expected);
    assert_eq!(mode(&file), "passthrough");
    assert_eq!(told(&second, "cache-bytes"), expected.len());
    let mut holder = holder("open", &file);
    assert_eq!(told(&second, "cache-lent-journals"), 1);
    up.daemon().signal(Signal::STOP);
    let read = let_read(&mut holder);
    up.daemon().signal(Signal::CONT);
    assert!(read == expected, "{} bytes of {}", read.len(), expected.len());
    until("it is given back", || told(&second, "cache-lent-journals") == 0);
}

#[test]
fn appends_of_all_mounts_are_read_once_and_in_order() {
    const LINES: usize = 60;
    let up = Up::start();
    let second = up.second();
    let file = second.file("log");
    up.bash("echo number 0 >> log", &[]).ok();
    assert_eq!(cat(&file), b"number 0\n");
    assert_eq!(mode(&file), "passthrough");
    let follow = second.file(".courant/follow/log");
    let lines = ["exec tail -n +1 -f \"$1\"", "exec tail -c +1 -F \"$1\"", "exec cat \"$2\""];
    let mut followers = lines.map(|line| {
        let mut command = Command::new("bash");
        command.args(["-c", line, "bash"]).args([&file, &follow]).stdin(Stdio::null());
        Running::start(&mut command)
    });
    let mut expected = "number 0\n".to_string();
    for number in 1..=LINES {
        let line = format!("number {number}\n");
        // Each mount writes, and each write is in both when it returns.
        let mount = if number % 2 == 0 { up.mount() } else { second.mount() };
        shell::bash(mount.path(), "echo number $1 >> log", &[&number.to_string()]).ok();
        expected.push_str(&line);
        assert_eq!(String::from_utf8_lossy(&cat(&file)), expected);
    }
    for follower in &mut followers {
        reached(LIMIT, || follower.stdout().len() >= expected.len());
        assert_eq!(String::from_utf8_lossy(&follower.stdout()), expected);
        assert!(follower.kill());
    }
}

#[test]
fn a_handle_of_the_kernels_sees_appends_that_nobody_asks_for() {
    let up = Up::start();
    let second = up.second();
    put(&up, "log", b"first\n");
    assert_eq!(cat(&second.file("log")), b"first\n");
    assert_eq!(mode(&second.file("log")), "passthrough");
    // It reads and never asks for the size.
    let script = "import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
at = 0
while at < 13:
    got = os.pread(fd, 99, at)
    os.write(1, got)
    at += len(got)
    time.sleep(0.01)";
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(second.file("log")).stdin(Stdio::null());
    let mut reader = Running::start(&mut command);
    reader.until_prints("first");
    up.bash("echo second >> log", &[]).ok();
    assert!(reader.wait(LIMIT).success());
    assert_eq!(reader.stdout(), b"first\nsecond\n");
}

#[test]
fn no_reader_of_a_growing_file_meets_a_wrong_byte() {
    let up = Up::start();
    let second = up.second();
    put(&up, "log", b"\x01");
    assert_eq!(cat(&second.file("log")), b"\x01");
    let (written, read) = (up.file("log"), second.file("log"));
    let mut command = shell::python("growing.py");
    command.args([&written, &read]).arg("6");
    let ran = shell::run(&mut command, LIMIT).ok();
    assert_eq!(ran.text(), "0 0 True\n".repeat(6).trim_end());
    assert!(cat(&read) == cat(&written));
}

#[test]
fn a_clean_stop_keeps_the_cache_and_a_kill_drops_it() {
    let up = Up::start();
    let mut second = up.second();
    let expected = content(2, 3 << 20);
    put(&up, "log", &expected);
    assert!(cat(&second.file("log")) == expected);
    assert!(second.daemon().stop().success());
    second.again();
    assert_eq!(told(&second, "cache-bytes"), expected.len());
    // What came meanwhile is read, and nothing else.
    up.bash("echo more >> log", &[]).ok();
    let grown = [&expected[..], b"more\n"].concat();
    assert!(cat(&second.file("log")) == grown);
    assert_eq!(mode(&second.file("log")), "passthrough");

    let mut holder = holder("open", &second.file("log"));
    second.daemon().kill();
    second.again();
    assert_eq!(told(&second, "cache-bytes"), 0);
    assert!(allocated(&second) < 1 << 20, "files of the last life are removed");
    assert_eq!(mode(&second.file("log")), "direct");
    assert!(cat(&second.file("log")) == grown);
    // A handle of the last life reads on, from its own file.
    assert!(let_read(&mut holder) == grown);
}

#[test]
fn two_mounts_can_not_share_a_cache() {
    let up = Up::start();
    let second = up.second();
    let other = tests::mountdir::MountDir::new();
    let complaint = daemon::refused(&second.command(other.path()));
    for word in ["cache", "in use by another mount", second.cache().to_str().unwrap()] {
        assert!(complaint.contains(word), "nothing of {word} in: {complaint}");
    }
    assert!(other.mounts().is_empty());
}

#[test]
fn a_journal_that_was_made_anew_shows_its_own_bytes_only() {
    let up = Up::with(&["--allow-delete"]);
    let second = up.second();
    let (old, new) = (content(3, 200_000), content(4, 100_000));
    put(&up, "log", &old);
    let file = second.file("log");
    assert!(cat(&file) == old);
    assert_eq!(mode(&file), "passthrough");
    let mut holder = holder("open", &file);
    std::fs::remove_file(up.file("log")).unwrap();
    put(&up, "log", &new);
    assert!(cat(&file) == new);
    assert!(cat(&file) == new);
    // Only the kernel's handle of the old one goes on, with the old bytes.
    assert!(let_read(&mut holder) == old);
    until("the old one's bytes are gone", || told(&second, "cache-bytes") == new.len());
}

#[test]
fn the_cache_keeps_to_its_size_and_the_mount_to_its_memory() {
    const SIZE: usize = 8 << 20;
    const MEMORY_MAX: u64 = 160 << 20;
    let up = Up::start();
    let mut second = up.second_with(&["--cache-size", "8M"]);
    let expected = content(5, 40 << 20);
    for name in ["one", "two"] {
        put(&up, name, &expected);
    }
    for name in ["one", "two", "one"] {
        assert!(cat(&second.file(name)) == expected);
        assert_eq!(mode(&second.file(name)), "direct", "more than half the size is not lent");
        assert!(told(&second, "cache-bytes") <= SIZE);
        assert!(allocated(&second) <= SIZE + (1 << 20), "{}", allocated(&second));
    }
    // Reads all over it are right too.
    let line =
        "for i in $(seq 1 97 4000); do dd if=\"$1\" bs=9973 skip=$i count=1 status=none; done";
    let ran =
        |file: &Path| shell::bash(Path::new("/"), line, &[file.to_str().unwrap()]).ok().stdout;
    assert!(ran(&second.file("two")) == ran(&up.file("two")));
    let resident = second.daemon().resident_max();
    assert!(resident <= MEMORY_MAX, "{resident} bytes");
}

#[test]
fn a_file_that_outgrows_the_cache_gives_way() {
    let up = Up::start();
    let second = up.second_with(&["--cache-size", "8M"]);
    let expected = content(9, 12 << 20);
    let (first, more) = expected.split_at(2 << 20);
    put(&up, "log", first);
    let file = second.file("log");
    assert!(cat(&file) == first);
    let mut reader = holder("open", &file);
    until("it is lent", || told(&second, "cache-lent-journals") == 1);
    put(&up, "log", more);
    until("it is given up", || told(&second, "revoked") == 1);
    assert_eq!(String::from_utf8_lossy(&let_read(&mut reader)).trim_end(), "EIO");
    until("the size is kept", || allocated(&second) <= 9 << 20);
    assert!(cat(&file) == expected);
    assert_eq!(mode(&file), "direct");
}

#[test]
fn a_full_local_disk_costs_the_cache_alone() {
    let up = Up::start();
    let expected = content(6, 12 << 20);
    put(&up, "log", &expected);
    let small = Filesystem::small(4);
    let cache = small.path().join("cache");
    let second = up.second_with(&["--cache-size", "1G", "--cache", cache.to_str().unwrap()]);
    assert!(cat(&second.file("log")) == expected);
    assert!(cat(&second.file("log")) == expected);
    assert_eq!(mode(&second.file("log")), "direct");
}

#[test]
fn a_handle_of_the_kernels_goes_on_when_there_is_room_again() {
    let up = Up::start();
    let small = Filesystem::small(8);
    let cache = small.path().join("cache");
    let second = up.second_with(&["--cache-size", "1G", "--cache", cache.to_str().unwrap()]);
    let (first, more) = (content(7, 2 << 20), content(8, 1 << 20));
    put(&up, "log", &first);
    let file = second.file("log");
    assert!(cat(&file) == first);
    assert_eq!(mode(&file), "passthrough");
    let script = "import os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
at = 0
while at < int(sys.argv[2]):
    got = os.pread(fd, 1 << 20, at)
    os.write(1, got)
    at += len(got)
    time.sleep(0.02)";
    let len = first.len() + more.len();
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(&file).arg(len.to_string()).stdin(Stdio::null());
    let mut reader = Running::start(&mut command);
    until("it has read what there is", || reader.stdout().len() == first.len());

    let filling = small.path().join("filling");
    let fill = "dd if=/dev/zero of=\"$1\" bs=4096 status=none";
    let filled = shell::bash(Path::new("/"), fill, &[filling.to_str().unwrap()]);
    assert!(filled.stderr.contains("No space left"), "{}", filled.stderr);
    put(&up, "log", &more);
    let grown = [first, more].concat();
    // Whoever opens it is served by the daemon.
    assert!(cat(&file) == grown);
    assert_eq!(mode(&file), "direct");
    assert_eq!(reader.ended(), None);
    assert!(grown.starts_with(&reader.stdout()));
    std::fs::remove_file(filling).unwrap();
    assert!(reader.wait(LIMIT).success(), "{}", reader.stderr());
    assert!(reader.stdout() == grown);
}
