//! What runs out: a disk that is full fails appends whole, with ENOSPC, a process without
//! descriptors makes no new journals; and what was acknowledged is there.

use std::fs;
use tests::filesystem::Filesystem;
use tests::model::History;
use tests::patience::LIMIT;
use tests::shell::{self, cat};
use tests::world::Up;

/// Runs writer.py until the disk is full; what it said. `fill` is a record's.
#[track_caller]
fn until_full(up: &Up, id: u32, fill: usize) -> String {
    let mut writer = shell::python("writer.py");
    writer.arg(up.file("log")).args([id.to_string(), "1".into(), format!("--fill={fill}")]);
    let ran = shell::run(&mut writer, 2 * LIMIT);
    let said = ran.text();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(said.ends_with("ENOSPC"), "the writer ended with {:?}", said.lines().last());
    assert!(!said.contains("short"), "a part was written");
    said
}

#[test]
fn a_full_disk_refuses_appends_whole_and_keeps_what_it_has() {
    let small = Filesystem::small(48);
    // The store is on the same disk: nothing can be freed by persisting.
    let mut up = Up::planned(&small.path().join("data"), &["--min-free", "0"]);
    up.again();
    let mut history = History::new();
    // Case: pieces that go to staging files, and such that go into the log.
    for (id, fill) in [(1, 300_000), (2, 500)] {
        let said = until_full(&up, id, fill);
        for line in said.lines() {
            if let Some(number) = line.strip_prefix("ack ") {
                history.acknowledge(id, number.parse().unwrap());
            }
        }
        history.check(&cat(&up.file("log"))).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    assert!(history.acknowledgements() > 10);

    // The shell says so too, and readers are unharmed.
    let ran = up.bash("head -c 1000000 /dev/zero >> log", &[]);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
    let before = cat(&up.file("log"));

    up.daemon().kill();
    up.again();
    let after = cat(&up.file("log"));
    assert!(after == before, "{} bytes before, {} after", before.len(), after.len());
    history.check(&after).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn a_disk_with_room_again_takes_appends_again() {
    let small = Filesystem::small(64);
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![1; 40 << 20]).unwrap();
    let mut up = Up::planned(&small.path().join("data"), &["--min-free", "0"]);
    up.again();
    until_full(&up, 1, 300_000);
    fs::remove_file(&ballast).unwrap();
    tests::patience::until("an append succeeds", || {
        up.bash("echo '<2 1 0>' >> log", &[]).code == Some(0)
    });
    let seen = cat(&up.file("log"));
    let records = tests::model::records(&seen).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(records.last().map(|record| record.writer), Some(2));
}

#[test]
fn descriptors_that_run_out_stop_new_journals_and_nothing_else() {
    let mut up = Up::with(&["--write-timeout", "1s"]);
    up.bash("echo one >> log", &[]).ok();
    let daemon = up.daemon().id().to_string();
    // Each journal keeps its mirror open. What is open stays so.
    up.bash("prlimit --pid \"$1\" --nofile=10:10", &[&daemon]).ok();
    let ran = up.bash("echo lost >> new", &[]);
    assert!(ran.stderr.contains("Connection timed out"), "{}", ran.stderr);
    up.bash("echo two >> log", &[]).ok();
    assert_eq!(cat(&up.file("log")), b"one\ntwo\n");
    assert!(up.daemon().stop().success());
    assert!(up.mount().mounts().is_empty(), "the mount stays");
    up.again();
    assert_eq!(cat(&up.file("log")), b"one\ntwo\n");
}
