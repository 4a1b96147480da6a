//! What a repair and a start say of what they do: a sound directory stays as it is, what was set
//! aside comes back, and what was put right is named.

use crate::rot::{Seen, Whole, files, flip_bit};
use std::fs;
use std::path::{Path, PathBuf};
use tests::world::Up;
use tests::{daemon, shell};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn bash(data: &Path, line: &str, arguments: &[&str]) -> String {
    shell::bash(data, line, arguments).ok().text()
}

/// What every name of the directory is, and when it was changed.
fn state(data: &Path) -> String {
    bash(data, "find . -printf '%p %y %m %s %T@ %C@\\n' | sort", &[])
}

#[test]
fn a_repair_of_a_sound_directory_changes_nothing() {
    let whole = Whole::make();
    let copy = whole.copy();
    let data = copy.path().join("data");
    // Case: it was killed, and it was stopped
    for stopped in [false, true] {
        if stopped {
            let mut up = Up::planned(&data, &[]);
            up.again();
            assert!(up.daemon().stop().success());
        }
        let before = state(&data);
        for arguments in [&["repair", text(&data)][..], &["repair", "--dry-run", text(&data)]] {
            let said = daemon::run(arguments).ok().text();
            assert!(said.contains("nothing was changed"), "{arguments:?}: {said}");
            assert_eq!(state(&data), before, "{arguments:?}, stopped: {stopped}");
        }
    }
}

#[test]
fn a_missing_mark_is_said() {
    let whole = Whole::make();
    let copy = whole.copy();
    let data = copy.path().join("data");
    fs::remove_file(data.join("format")).unwrap();
    let inspected = daemon::run(&["inspect", text(&data)]);
    assert_eq!(inspected.code, Some(1));
    assert!(inspected.text().contains("format is missing"), "{}", inspected.text());
    let would = daemon::run(&["repair", "--dry-run", text(&data)]).ok().text();
    assert!(would.contains("would be: format: made anew"), "{would}");
    assert!(!data.join("format").exists());
    // Case: a start does it, too
    let other = whole.copy();
    let started = other.path().join("data");
    fs::remove_file(started.join("format")).unwrap();
    let mut up = Up::planned(&started, &[]);
    up.again();
    assert!(up.daemon().log().contains("mark of the data directory"), "{}", up.daemon().log());
    let done = daemon::run(&["repair", text(&data)]).ok().text();
    assert!(done.contains("format: made anew"), "{done}");
    assert!(done.contains("no byte of a journal is gone"), "{done}");
}

#[test]
fn a_mirror_that_the_log_heals_is_named() {
    let whole = Whole::make();
    let copy = whole.copy();
    let data = copy.path().join("data");
    let len = |file: &PathBuf| fs::metadata(file).unwrap().len();
    let mirror = files(&data, "mirror").into_iter().max_by_key(len).unwrap();
    flip_bit(&mirror, 200_000, 4);
    let inspected = daemon::run(&["inspect", text(&data)]);
    assert_eq!(inspected.code, Some(1));
    let line = "DAMAGED: local/log 200000..200001 of the mirror";
    assert!(inspected.text().contains(line), "{}", inspected.text());
    let mut up = Up::planned(&data, &[]);
    up.again();
    let log = up.daemon().log();
    assert!(log.contains("healed") && log.contains("200000..200001"), "{log}");
    let told = daemon::run(&["status", "--broker", &up.url(), "-o", "json"]).ok().text();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let healed = &told["recovered"]["healed"][0];
    assert_eq!(healed["journal"], "local/log", "{told}");
    let told = daemon::run(&["status", "--broker", &up.url()]).ok().text();
    assert!(told.contains("healed at the start"), "{told}");
    assert!(up.daemon().stop().success());
    daemon::run(&["inspect", text(&data)]).ok();
}

#[test]
fn what_went_to_lost_and_found_comes_back_with_its_key_space() {
    let whole = Whole::make();
    // Case: a start, or a repair, puts it back
    for by_repair in [false, true] {
        let (copy, other) = (whole.copy(), tests::ground::folder("other-"));
        let data = copy.path().join("data");
        let mut stranger = Up::planned(&other.path().join("data"), &[]);
        stranger.again();
        assert!(stranger.daemon().stop().success());
        bash(
            &data,
            "cp keyspace.redb ../kept; cp \"$1\"/keyspace.redb .",
            &[text(stranger.data())],
        );
        let mut up = Up::planned(&data, &[]);
        up.again();
        assert!(up.daemon().log().contains("go to lost+found"), "{}", up.daemon().log());
        assert!(up.daemon().stop().success());
        bash(&data, "cp ../kept keyspace.redb", &[]);
        if by_repair {
            let done = daemon::run(&["repair", text(&data)]).ok().text();
            assert!(done.contains("local/log: taken back from lost+found"), "{done}");
            assert!(done.contains("no byte of a journal is gone"), "{done}");
        }
        assert!(matches!(whole.check(&data), Ok(())), "by a repair: {by_repair}");
        assert!(files(&data, "lost+found").is_empty(), "by a repair: {by_repair}");
    }
}

#[test]
fn a_start_after_the_repair_of_a_key_space_is_after_a_clean_stop() {
    let whole = Whole::make();
    let copy = whole.copy();
    let data = copy.path().join("data");
    fs::remove_file(data.join("keyspace.redb")).unwrap();
    let would = daemon::run(&["repair", "--dry-run", text(&data)]).ok().text();
    assert!(would.contains("would be: the key space: made anew for 1 journals"), "{would}");
    assert!(would.contains("nothing was changed"), "{would}");
    daemon::run(&["repair", text(&data)]).ok();
    let mut up = Up::planned(&data, &[]);
    up.again();
    let log = up.daemon().log();
    assert!(!log.contains("did not stop cleanly"), "{log}");
    drop(up);
    assert!(!matches!(whole.check(&data), Err(Seen::Wrong(_))));
}
