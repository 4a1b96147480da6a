//! `courant status`: what is mounted here, who has it open, and what that keeps.

use serde_json::{Value, json};
use std::process::Command;
use tests::daemon;
use tests::patience::until;
use tests::running::Running;
use tests::world::Up;

/// What `courant status --mounts` says of the mount of a broker.
fn mount(up: &Up) -> Value {
    let told = daemon::run(&["status", "--mounts", "-o", "json"]).ok().text();
    let mounts: Value = serde_json::from_str(&told).unwrap();
    let path = up.mount().path().to_str().unwrap();
    let mut list = mounts.as_array().unwrap().iter();
    list.find(|mount| mount["mount"] == path).unwrap_or_else(|| panic!("{path}: {told}")).clone()
}

/// A node of a journal that one handle has open.
fn open(mode: &str, journal: &str, pins: u64) -> Value {
    json!({"mode": mode, "handles": 1, "pins": pins, "journal": journal})
}

#[test]
fn mounts_tell_what_is_open_and_who_follows() {
    let mut up = Up::start();
    up.bash("echo one >> log; echo one >> other", &[]).ok();
    let idle = mount(&up);
    assert_eq!((&idle["state"], &idle["source"]), (&"serving".into(), &up.url().into()));
    assert_eq!(idle["status"]["open"], Value::Array(Vec::new()));
    assert_eq!(idle["status"]["prefix"], "local/");

    let hold = "exec 3< log 4>> other; cat .courant/follow/log";
    let mut holding = Command::new("bash");
    let _holding = Running::start(holding.current_dir(up.mount().path()).args(["-c", hold]));
    until("the follower waits", || mount(&up)["status"]["followers"] == 1);
    let busy = mount(&up);
    let open_journals = busy["status"]["open"].as_array().unwrap();
    assert!(open_journals.contains(&open("passthrough", "local/log", 1)), "{busy}");
    assert!(open_journals.contains(&open("follow", "local/log", 0)), "{busy}");
    let pins = busy["status"]["pins"].as_u64().unwrap();
    let table = daemon::run(&["status", "--mounts"]).ok().text();
    assert!(table.contains("passthrough") && table.contains(&up.url()), "{table}");

    // What open files keep from being freed is told by the broker.
    let status = daemon::run(&["status", "-o", "json", "--broker", &up.url()]).ok().text();
    let status: Value = serde_json::from_str(&status).unwrap();
    let kept = &status["open_for_passthrough"];
    assert_eq!((&kept["count"], &kept["local_bytes"]), (&pins.into(), &(4 * pins).into()));

    // Case: a daemon that is gone, or does not answer.
    up.daemon().signal(rustix::process::Signal::STOP);
    let silent = mount(&up);
    up.daemon().signal(rustix::process::Signal::CONT);
    assert_eq!((&silent["state"], &silent["status"]), (&"silent".into(), &Value::Null));
    up.daemon().kill();
    assert_eq!(mount(&up)["state"], "dead");
}
