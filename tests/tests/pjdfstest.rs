//! pjdfstest on a mount of `courant up` and on a remote one: docs/PJDFSTEST.md has each case that
//! fails there, and no other fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::ground;
use tests::shell;
use tests::world::Up;

const PAGE: &str = include_str!("../../docs/PJDFSTEST.md");

/// It asks for some thousand files and waits between some: half a minute on a remote mount.
const LIMIT: Duration = Duration::from_secs(600);

/// What the file system is said to have, and users that every Debian has. The pause is that after
/// which a time may be another.
const CONFIGURATION: &str = "[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}

[settings]
naptime = 0.02

[dummy_auth]
entries = [['nobody', 'nogroup'], ['daemon', 'daemon'], ['bin', 'bin']]
";

/// How each case ended: `ok`, `FAILED` or `skipped`.
type Outcomes = BTreeMap<String, String>;

/// The program, at the version of which the page tells: `$PJDFSTEST`, or that of the PATH.
fn program() -> Command {
    let name = std::env::var_os("PJDFSTEST").unwrap_or_else(|| "pjdfstest".into());
    let version = Command::new(&name).arg("--version").output().unwrap_or_else(|error| {
        panic!(
            "{}: {error}: scripts/test installs it (cargo install pjdfstest@0.2.2 --locked)",
            name.display()
        )
    });
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), "pjdfstest 0.2.2");
    Command::new(name)
}

fn outcomes(mount: &Path) -> Outcomes {
    let folder = ground::folder("pjdfstest-");
    let configuration = folder.path().join("pjdfstest.toml");
    std::fs::write(&configuration, CONFIGURATION).expect("the folder takes files");
    let mut command = program();
    command.env("RUST_BACKTRACE", "0").arg("-c").arg(configuration).arg("-p").arg(mount);
    let ran = shell::run(&mut command, LIMIT);
    let outcome = |line: &str| {
        let (name, outcome) = line.split_once(char::is_whitespace)?;
        let outcome = outcome.trim();
        let is_one = name.contains("::") && ["ok", "FAILED", "skipped"].contains(&outcome);
        is_one.then(|| (name.to_owned(), outcome.to_owned()))
    };
    let outcomes: Outcomes = ran.text().lines().filter_map(outcome).collect();
    assert_eq!(outcomes.len(), 398, "it did not come to its end: {}", ran.stderr);
    outcomes
}

/// The cases that the page tells of.
fn told() -> BTreeSet<&'static str> {
    let names = PAGE.split('`').skip(1).step_by(2).filter(|name| name.contains("::"));
    let told: BTreeSet<&str> = names.clone().collect();
    assert_eq!(told.len(), names.count(), "a case has two reasons");
    told
}

fn check(mount: &Path) {
    let outcomes = outcomes(mount);
    let of = |outcome: &str| -> BTreeSet<&str> {
        let those = outcomes.iter().filter(|(_, ended)| *ended == outcome);
        those.map(|(name, _)| name.as_str()).collect()
    };
    let (failed, told) = (of("FAILED"), told());
    let new: Vec<_> = failed.difference(&told).collect();
    let gone: Vec<_> = told.difference(&failed).collect();
    assert!(new.is_empty() && gone.is_empty(), "fail and are not told: {new:?}; told: {gone:?}");
    let numbers = [
        format!("{} pass", of("ok").len()),
        format!("{} do not apply", failed.len()),
        format!("{} are not run", of("skipped").len()),
    ];
    for number in numbers {
        assert!(PAGE.contains(&number), "the page does not say: {number}");
    }
}

#[test]
fn a_mount_of_up_fails_where_posix_does_not_apply_alone() {
    let up = Up::start();
    check(up.mount().path());
}

#[test]
fn a_remote_mount_fails_where_posix_does_not_apply_alone() {
    let up = Up::start();
    check(up.second().mount().path());
}
