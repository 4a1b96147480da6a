//! Daemons and writers that die at any moment, and come again: cases T11 and T23.

use std::process::{Command, Stdio};
use std::time::Duration;
use tests::ground;
use tests::model::History;
use tests::mountdir::MountDir;
use tests::patience::{pause, reached};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::Up;
use tests::writer::{Manner, Writer};

/// Rounds in CI; `ROUNDS` asks for more.
const ROUNDS: usize = 20;

/// A moment that differs from round to round, within `most` milliseconds.
pub(crate) fn moment(round: usize, most: u64) -> Duration {
    let round = u64::try_from(round).unwrap();
    Duration::from_millis(round.wrapping_mul(6_364_136_223_846_793_005) % most)
}

/// What happens to the second mount or the first in a round of T11.
#[derive(Debug, Clone, Copy)]
enum Blow {
    KillMount,
    StopMount,
    Unmount,
    KillUp,
    StopUp,
    /// Only the writers are killed.
    Writers,
}

const BLOWS: [Blow; 6] =
    [Blow::KillMount, Blow::StopMount, Blow::Unmount, Blow::KillUp, Blow::StopUp, Blow::Writers];

#[test]
fn t11_what_a_write_acknowledged_is_there_whatever_dies() {
    let mut up = Up::start();
    let mut second = up.second();
    let mut history = History::new();
    // Writers 1 and 2 write through the mounts; 3 does as 2, with duplicates that it closes.
    let mut next = [1, 1, 1];
    for round in 0..ground::number("ROUNDS", ROUNDS) {
        let blow = BLOWS[round % BLOWS.len()];
        let pause_between = Duration::from_millis(1);
        let plain =
            Manner { pause: pause_between, fill: 50 + 997 * (round % 7), ..Manner::default() };
        let manners = [plain, plain, Manner { further: &["--dup"], ..plain }];
        let files = [up.file("log"), second.file("log"), second.file("log")];
        let mut writers: Vec<Writer> = (0..3)
            .map(|at| {
                let id = u32::try_from(at).unwrap() + 1;
                Writer::start(&files[at], id, next[at], manners[at])
            })
            .collect();
        writers.iter_mut().for_each(Writer::until_acknowledged);
        pause(moment(round, 200));
        match blow {
            Blow::KillMount => second.daemon().kill(),
            Blow::StopMount => assert!(second.daemon().stop().success()),
            Blow::Unmount => unmount(second.mount()),
            Blow::KillUp => up.daemon().kill(),
            Blow::StopUp => assert!(up.daemon().stop().success()),
            Blow::Writers => {}
        }
        writers.iter_mut().for_each(Writer::strike);
        for (at, writer) in writers.into_iter().enumerate() {
            next[at] = writer.end(&mut history);
        }
        match blow {
            Blow::KillMount | Blow::StopMount | Blow::Unmount => second.again(),
            Blow::KillUp | Blow::StopUp => up.again(),
            Blow::Writers => {}
        }
        for file in [up.file("log"), second.file("log")] {
            let check = history.check(&cat(&file));
            check.unwrap_or_else(|wrong| panic!("round {round}, {blow:?}: {wrong}"));
        }
    }
    assert!(history.acknowledgements() > 0);
}

/// Takes the mount away under the daemon, as fusermount3 -u -z does while files are open.
fn unmount(mount: &MountDir) {
    let path = mount.path();
    shell::bash(path.parent().unwrap(), "umount -l \"$1\"", &[path.to_str().unwrap()]).ok();
}

#[test]
fn t23_the_same_command_brings_the_mount_back() {
    let mut up = Up::start();
    up.bash("echo first >> log", &[]).ok();
    for round in 0..ground::number("ROUNDS", ROUNDS) {
        // It appends through the mount that it holds, so the content grows from round to round.
        up.bash("for i in 1 2 3; do echo round $1 >> log; done", &[&round.to_string()]).ok();
        let before = cat(&up.file("log"));
        let mut holder = hold(&up);
        let mut tail = Command::new("tail");
        let mut tail = Running::start(tail.args(["-c", "+1", "-f"]).arg(up.file("log")));
        assert!(reached(Duration::from_secs(30), || tail.stdout() == before));

        up.daemon().kill();
        up.again();
        assert_eq!(up.mount().mounts().len(), 1, "round {round}: mounts are stacked");
        up.bash("echo after >> log", &[]).ok();
        let after = cat(&up.file("log"));
        assert_eq!(after, [before.as_slice(), b"after\n"].concat(), "round {round}");

        let left = release(&mut holder);
        assert_eq!(left["length"], before.len());
        for key in ["read", "mapping"] {
            assert_ne!(left[key], "wrong", "round {round}: {left}");
        }
        for key in ["stat", "write", "directory"] {
            assert_eq!(left[key], "ENOTCONN", "round {round}: {left}");
        }
        assert!(tail.kill(), "round {round}: tail hangs");
        assert!(before.starts_with(&tail.stdout()), "round {round}: tail printed other bytes");
    }
}

/// Starts a process that holds a file of the mount, mappings of it, and the directory.
#[track_caller]
fn hold(up: &Up) -> Running {
    let mut command = shell::python("holder.py");
    command.arg(up.mount().path()).arg("log").stdin(Stdio::piped());
    let mut holder = Running::start(&mut command);
    holder.until_prints("held");
    holder
}

/// What the holder finds is left of it.
#[track_caller]
fn release(holder: &mut Running) -> serde_json::Value {
    // The end of its input is the sign to go on.
    drop(holder.stdin());
    assert!(holder.wait(tests::patience::LIMIT).success(), "{}", holder.stderr());
    let said = String::from_utf8(holder.stdout()).unwrap();
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

#[test]
fn t23_sigterm_unmounts_even_with_followers_and_open_files() {
    let mut up = Up::start();
    let mut second = up.second();
    up.bash("echo first >> log", &[]).ok();
    let mut followers: Vec<Running> = Vec::new();
    for file in [up.file("log"), second.file("log")] {
        followers.push(Running::start(Command::new("tail").args(["-c", "+1", "-f"]).arg(file)));
    }
    for mount in [up.mount(), second.mount()] {
        let follow = mount.path().join(".courant/follow/log");
        followers.push(Running::start(Command::new("cat").arg(follow)));
    }
    let mut holder = hold(&up);
    for follower in &mut followers {
        reached(Duration::from_secs(10), || follower.stdout() == b"first\n");
    }

    assert!(second.daemon().stop().success());
    assert!(second.mount().mounts().is_empty());
    assert!(up.daemon().stop().success());
    assert!(up.mount().mounts().is_empty());
    for follower in &mut followers {
        assert!(follower.kill(), "a follower hangs");
    }
    let left = release(&mut holder);
    assert_eq!(left["stat"], "ENOTCONN", "{left}");
    assert_ne!(left["read"], "wrong", "{left}");

    up.again();
    assert_eq!(cat(&up.file("log")), b"first\n");
}

#[test]
fn t23_a_signal_that_is_told_twice_ends_it_kindly() {
    let mut up = Up::start();
    up.bash("echo first >> log", &[]).ok();
    // An open file keeps it for a second, in which the echo comes: `timeout` sends one.
    let mut holder = hold(&up);
    up.daemon().begin_stop();
    assert!(up.daemon().stop().success());
    assert!(up.mount().mounts().is_empty());
    assert_eq!(release(&mut holder)["length"], "first\n".len());
    up.again();
    assert_eq!(cat(&up.file("log")), b"first\n");
}

#[test]
fn t16_a_write_waits_for_a_broker_that_comes_back_and_is_there_once() {
    let mut up = Up::start();
    let second = up.second();
    up.bash("echo first >> log", &[]).ok();
    // Case: through a file that is open already, and through one that is looked up meanwhile.
    let lines = [
        "exec 3>> log; echo held; read -r; echo through >&3",
        "echo held; read -r; echo through >> log",
    ];
    for (round, line) in (1..).zip(lines) {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(second.mount().path()).stdin(Stdio::piped());
        let mut writer = Running::start(&mut command);
        writer.until_prints("held");
        up.daemon().kill();
        drop(writer.stdin());
        pause(Duration::from_millis(300));
        assert_eq!(writer.ended(), None, "it does not wait: {}", writer.stderr());
        up.again();
        assert!(writer.wait(tests::patience::LIMIT).success(), "{}", writer.stderr());
        let expected = format!("first\n{}", "through\n".repeat(round));
        assert_eq!(String::from_utf8(cat(&second.file("log"))).unwrap(), expected);
    }
}

#[test]
fn a_writer_that_waits_for_its_broker_can_be_killed() {
    use rustix::process::Signal;
    let mut up = Up::start();
    let second = up.second();
    up.bash("echo first >> log", &[]).ok();
    up.daemon().kill();
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let mut command = shell::python("writer.py");
        let mut writer = Running::start(command.arg(second.file("log")).args(["1", "1"]));
        pause(Duration::from_millis(500));
        assert_eq!(writer.ended(), None, "it does not wait: {}", writer.stderr());
        writer.signal(signal);
        // Python catches SIGINT, and goes on waiting: a write is not interrupted for a handler.
        let ends = signal != Signal::INT;
        assert_eq!(reached(Duration::from_secs(5), || writer.ended().is_some()), ends);
        assert!(writer.kill());
    }
    up.again();
    assert_eq!(cat(&second.file("log")), b"first\n");
}
