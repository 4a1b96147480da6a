//! A remote mount whose broker is away: killed, stopped, or behind a network that drops what it is
//! given. What waits, for how long, and what goes on when the broker is back.

use rustix::process::Signal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::daemon;
use tests::detour::Detour;
use tests::patience::{LIMIT, pause, until};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::{Second, Up};

/// How a broker goes, and comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    Killed,
    Stopped,
    Blocked,
}

const WAYS: [Away; 3] = [Away::Killed, Away::Stopped, Away::Blocked];

/// A broker, and a mount of it by a way that can be blocked.
struct Ground {
    up: Up,
    detour: Detour,
}

impl Ground {
    fn start() -> Ground {
        let up = Up::start();
        let detour = Detour::to(&up.address());
        Ground { up, detour }
    }

    #[track_caller]
    fn mount(&self, timeout: &str, further: &[&str]) -> Second {
        let options = [&["--write-timeout", timeout], further].concat();
        self.up.second_by(&self.detour.url(), &options)
    }

    fn go(&mut self, away: Away) {
        match away {
            Away::Killed => self.up.daemon().kill(),
            Away::Stopped => self.up.daemon().signal(Signal::STOP),
            Away::Blocked => self.detour.block(),
        }
    }

    fn come_back(&mut self, away: Away) {
        match away {
            Away::Killed => self.up.again(),
            Away::Stopped => self.up.daemon().signal(Signal::CONT),
            Away::Blocked => self.detour.open(),
        }
    }
}

/// A program that is about to make a call on a file of a mount.
#[track_caller]
fn caller(call: &str, file: &Path) -> Running {
    let mut command = shell::python("calls.py");
    let mut running = Running::start(command.arg(call).arg(file).stdin(Stdio::piped()));
    running.until_prints("held");
    running
}

/// What became of the call, once it has ended.
#[track_caller]
fn outcome(caller: &mut Running) -> String {
    assert!(caller.wait(LIMIT).success(), "{}", caller.stderr());
    let said = String::from_utf8(caller.stdout()).unwrap();
    said.lines().last().unwrap().to_owned()
}

#[track_caller]
fn text(file: &Path) -> String {
    String::from_utf8(cat(file)).unwrap()
}

/// The calls, and what each comes to.
const CALLS: [(&str, &str); 12] = [
    ("stat", "ETIMEDOUT"),
    ("open", "ETIMEDOUT"),
    ("create", "ETIMEDOUT"),
    ("echo", "ETIMEDOUT"),
    ("ls", "ETIMEDOUT"),
    ("mkdir", "ETIMEDOUT"),
    ("getxattr", "ETIMEDOUT"),
    ("write", "ETIMEDOUT"),
    ("fsync", "ETIMEDOUT"),
    ("close", "ok"),
    ("read", "ETIMEDOUT"),
    ("fstat", "ETIMEDOUT"),
];

#[test]
fn each_call_ends_while_the_broker_is_away_and_is_made_once_at_most() {
    let mut ground = Ground::start();
    let mounts = [ground.mount("2s", &[]), ground.mount("2s", &["--no-passthrough"])];
    for away in WAYS {
        // Each call has a file of its own: the kernel lets writers of one file wait for each other.
        let file = |mount: usize, call: &str| mounts[mount].file(&format!("{away:?}-{call}"));
        for (call, _) in CALLS {
            ground.up.bash("echo one >> $1", &[&format!("{away:?}-{call}")]).ok();
        }
        let mut callers = Vec::new();
        for (call, expected) in CALLS {
            for mount in 0..2 {
                callers.push((call, expected, caller(call, &file(mount, call))));
            }
        }
        ground.go(away);
        callers.iter_mut().for_each(|(_, _, caller)| drop(caller.stdin()));
        // The broker is away until all have ended.
        for (call, expected, caller) in &mut callers {
            let told = outcome(caller);
            let is_as_expected = told == *expected;
            assert!(is_as_expected, "{call}, {away:?}: {told} and not {expected}");
        }
        ground.come_back(away);
        for (call, _) in CALLS {
            // What was told to have failed may have been made, and once by each mount at most.
            let (told, most) = match call {
                "write" | "echo" => ("one\n".to_owned(), 2),
                "close" => ("one\nbefore\nbefore\n".to_owned(), 0),
                _ => ("one\n".to_owned(), 0),
            };
            until("it goes on", || {
                let line = "echo on >> \"$1\"";
                let path = file(1, call);
                let ran = shell::bash(mounts[1].mount().path(), line, &[path.to_str().unwrap()]);
                ran.code == Some(0)
            });
            for mount in 0..2 {
                let found = text(&file(mount, call));
                let rest = found.strip_prefix(&told).unwrap_or_else(|| panic!("{call}: {found}"));
                let again = rest.matches(&format!("{call}\n")).count();
                assert!(again <= most, "{call}, {away:?}: {found}");
            }
        }
    }
}

#[test]
fn a_call_of_several_requests_waits_no_longer_than_one() {
    let mut ground = Ground::start();
    let (short, long) = (ground.mount("2s", &[]), ground.mount("3500ms", &[]));
    for away in WAYS {
        for (name, call) in [("a", "echo"), ("b", "stat"), ("c", "fsync")] {
            ground.up.bash("echo one >> \"$1\"", &[name]).ok();
            // The kernel knows the name.
            shell::bash(short.mount().path(), "stat \"$1\"", &[name]).ok();
            let mut caller = caller(call, &short.file(name));
            let mut witness = self::caller("write", &long.file(name));
            ground.go(away);
            drop((witness.stdin(), caller.stdin()));
            // Two waits of the one are longer than one of the other.
            assert_eq!(outcome(&mut caller), "ETIMEDOUT", "{call}, {away:?}");
            assert_eq!(witness.ended(), None, "{call}, {away:?}");
            assert_eq!(outcome(&mut witness), "ETIMEDOUT", "{away:?}");
            ground.come_back(away);
            until("it is back", || {
                shell::bash(long.mount().path(), "stat \"$1\"", &[name]).code == Some(0)
            });
        }
    }
}

#[test]
fn followers_wait_for_the_broker_and_go_on() {
    let mut ground = Ground::start();
    let mounts = [ground.mount("2s", &[]), ground.mount("2s", &["--no-passthrough"])];
    ground.up.bash("echo 0 >> log", &[]).ok();
    let mut followers = Vec::new();
    for mount in &mounts {
        for line in ["tail -n +1 -f log", "tail -n +1 -F log", "cat .courant/follow/log"] {
            let mut command = Command::new("bash");
            command.args(["-c", &format!("exec {line}")]).current_dir(mount.mount().path());
            let mut follower = Running::start(&mut command);
            follower.until_prints("0");
            followers.push((line, follower));
        }
    }
    let mut expected = "0\n".to_owned();
    for (round, away) in (1..).zip(WAYS) {
        ground.go(away);
        // Others give up several times meanwhile.
        for _ in 0..2 {
            let mut other = caller("ls", &mounts[0].file("log"));
            drop(other.stdin());
            assert_eq!(outcome(&mut other), "ETIMEDOUT", "{away:?}");
        }
        for (line, follower) in &mut followers {
            assert_eq!(follower.ended(), None, "{line}, {away:?}: {}", follower.stderr());
        }
        ground.come_back(away);
        let line = round.to_string();
        expected += &format!("{line}\n");
        ground.up.bash("echo $1 >> log", &[&line]).ok();
        for (line, follower) in &mut followers {
            let said = || String::from_utf8(follower.stdout()).unwrap();
            until(&format!("{line} goes on, {away:?}"), || said().len() >= expected.len());
            assert_eq!(said(), expected, "{line}, {away:?}");
        }
    }
    // Case: a mount that is taken away while the broker is away lets them go
    ground.go(Away::Killed);
    let [mut first, mut second] = mounts;
    assert!(first.daemon().stop().success() && second.daemon().stop().success());
    for (line, follower) in &mut followers {
        assert!(follower.kill(), "{line} hangs");
    }
}

#[test]
fn the_log_and_the_status_tell_that_a_broker_is_away_and_back() {
    let mut ground = Ground::start();
    let mut mounts = [ground.mount("2s", &[]), ground.mount("2s", &[])];
    for (round, away) in (1..).zip(WAYS) {
        ground.go(away);
        for mount in &mut mounts {
            let log = mount.daemon();
            until("it is told", || log.log().matches("what is asked of it waits").count() == round);
            assert!(log.log().contains(&format!("the broker at {} is away", ground.detour.url())));
            let status = text(&mount.file(".courant/status"));
            assert!(status.contains("broker-away-because "), "{away:?}: {status}");
            let table = daemon::run(&["status", "--mounts"]).ok().text();
            let path = mount.mount().path().to_str().unwrap();
            let row = table.lines().find(|row| row.starts_with(path)).unwrap();
            assert!(row.contains("no broker for "), "{table}");
        }
        // Seconds of it are no further lines.
        pause(Duration::from_secs(2));
        ground.come_back(away);
        for mount in &mut mounts {
            let log = mount.daemon();
            until("it is back", || log.log().matches("is back after").count() == round);
            assert_eq!(log.log().matches("what is asked of it waits").count(), round, "{away:?}");
            assert!(!text(&mount.file(".courant/status")).contains("broker-away"));
        }
    }
}
