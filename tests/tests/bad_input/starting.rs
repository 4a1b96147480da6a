//! Starts that can't succeed. Each says why in one line, ends with 1, and leaves no mount.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use tests::daemon::{self, Daemon};
use tests::filesystem::Filesystem;
use tests::ground;
use tests::patience::LIMIT;
use tests::shell::{self, cat};
use tests::world::Up;

/// A command that is not started, with data of its own.
fn planned() -> (tempfile::TempDir, Up) {
    let ground = ground::folder("start-");
    let up = Up::planned(&ground.path().join("data"), &[]);
    (ground, up)
}

#[track_caller]
fn assert_tells(complaint: &str, words: &[&str]) {
    for word in words {
        assert!(complaint.contains(word), "nothing of {word} in: {complaint}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let cases: [&[&str]; 7] = [
        &["mount", "--bucket", "file:///", "--broker", "http://h:1", "m"],
        &["fsck", "--store", "file:///", "--broker", "http://h:1"],
        &["no-such-command"],
        &["up", "--no-such-option"],
        &["up", "--durability", "sometimes"],
        &["up", "--listen", "no address"],
        &["mount"],
    ];
    for arguments in cases {
        let ran = daemon::run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("error:"), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let (_ground, up) = planned();
    let _taken = TcpListener::bind(up.address()).unwrap();
    assert_tells(&up.refused(), &[&up.address(), "in use"]);
    assert!(up.mount().mounts().is_empty());
}

#[test]
fn a_mount_point_must_be_an_empty_directory() {
    let (_ground, up) = planned();
    let path = up.mount().path();
    let name = path.to_str().unwrap();
    fs::write(path, "a file").unwrap();
    assert_tells(&up.refused(), &[name, "not a directory"]);
    assert_eq!(fs::read(path).unwrap(), b"a file");
    fs::remove_file(path).unwrap();

    fs::create_dir(path).unwrap();
    fs::write(path.join("kept"), "").unwrap();
    assert_tells(&up.refused(), &[name, "not empty", "kept"]);
    assert!(path.join("kept").exists());
}

#[test]
fn a_mount_in_use_is_named_and_stays() {
    let up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    let (_ground, _) = planned();
    let command: Vec<String> =
        ["mount", "--broker", &up.url(), "--prefix", "local/", up.mount().path().to_str().unwrap()]
            .map(String::from)
            .into();
    assert_tells(&daemon::refused(&command), &["already mounted"]);
    assert_eq!(up.mount().mounts().len(), 1);
    assert_eq!(cat(&up.file("log")), b"kept\n");
}

#[test]
fn a_missing_fuse_device_is_named_with_its_remedy() {
    // Case: no device at all, and a wrong one in its place, each in a mount namespace of its own.
    let cases = [
        ("mount -t tmpfs none /dev", "modprobe fuse"),
        ("mount --bind /dev/null /dev/fuse", "mknod"),
    ];
    for (hide, remedy) in cases {
        let (_ground, up) = planned();
        let line = format!("{hide} && exec \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "bash", "-c", &line, "bash"]);
        command.arg(daemon::binary()).args(up.command());
        let complaint = shell::run(&mut command, LIMIT).refusal(1);
        assert_tells(&complaint, &["/dev/fuse", remedy]);
    }
}

#[test]
fn data_in_use_by_a_running_broker_stay_its_own() {
    let up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    let data = up.data().to_str().unwrap();
    let address = format!("127.0.0.1:{}", ground::free_port());
    let complaint = daemon::refused(&["serve", "--data", data, "--listen", &address]);
    assert_tells(&complaint, &["in use"]);
    up.bash("echo more >> log", &[]).ok();
    assert_eq!(cat(&up.file("log")), b"kept\nmore\n");
}

#[test]
fn data_of_a_newer_format_are_refused_by_name_and_left_alone() {
    let mut up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    assert!(up.daemon().stop().success());
    let format = up.data().join("format");
    let known = fs::read_to_string(&format).unwrap();
    let newer: String = known.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_ne!(known, newer);
    fs::write(&format, newer).unwrap();
    assert_tells(&up.refused(), &["format 9", "newer"]);

    fs::write(&format, known).unwrap();
    up.again();
    assert_eq!(cat(&up.file("log")), b"kept\n");
}

#[test]
fn data_on_a_file_system_without_holes_are_refused() {
    let filesystem = Filesystem::without_holes();
    let up = Up::planned(&filesystem.path().join("data"), &[]);
    assert_tells(&up.refused(), &["hole punching", "data"]);
}

#[test]
fn data_that_can_t_be_made_are_named() {
    let ground = ground::folder("start-");
    fs::write(ground.path().join("file"), "").unwrap();
    let up = Up::planned(&ground.path().join("file/data"), &[]);
    assert_tells(&up.refused(), &["file/data"]);
}

#[test]
fn a_broker_that_is_not_there_is_named() {
    let (_ground, up) = planned();
    let path = up.mount().path().to_str().unwrap();
    let complaint = daemon::refused(&["mount", "--broker", &up.url(), path]);
    assert_tells(&complaint, &[&up.address()]);
    assert!(up.mount().mounts().is_empty());
}

#[test]
fn umount_of_what_is_no_mount_of_ours_is_refused() {
    let ground = ground::folder("umount-");
    let path = ground.path().to_str().unwrap();
    assert_tells(&daemon::refused(&["umount", path]), &[path, "not mounted"]);
    assert_tells(&daemon::refused(&["umount", "/proc"]), &["/proc", "proc"]);
    assert!(Path::new("/proc/self").exists());
    let missing = ground.path().join("missing/m");
    daemon::refused(&["umount", missing.to_str().unwrap()]);
}

#[test]
fn umount_takes_a_mount_away() {
    let up = Up::start();
    let mut second = up.second();
    daemon::run(&["umount", second.mount().path().to_str().unwrap()]).ok();
    assert!(second.mount().mounts().is_empty());
    // Its daemon has nothing to serve any more.
    tests::patience::until("the mount's daemon ends", || !second.daemon().lives());
    up.bash("echo on >> log", &[]).ok();
}

#[test]
fn a_daemon_says_where_it_serves() {
    let mut up = Up::start();
    let ready = up.daemon().ready_line();
    let expected =
        format!("ready: journals at {}, broker at {}", up.mount().path().display(), up.url());
    assert_eq!(ready, expected);
    let _: &mut Daemon = up.daemon();
}
