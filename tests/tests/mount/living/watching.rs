//! inotify: `IN_MODIFY` for appends that come from elsewhere.

use std::path::Path;
use std::process::{Command, Stdio};
use tests::patience::{LIMIT, until};
use tests::running::Running;
use tests::shell;
use tests::world::Up;

/// A program that watches these paths, and does so already.
fn watch(paths: &[&Path]) -> Running {
    let mut watch = shell::python("watch.py");
    let mut watching = Running::start(watch.args(paths).stdin(Stdio::piped()));
    watching.until_prints("watching");
    watching
}

/// How many events of this line there were.
fn events(watching: &Running, line: &str) -> usize {
    let printed = String::from_utf8_lossy(&watching.stdout()).into_owned();
    printed.lines().filter(|it| *it == line).count()
}

fn name(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The helper processes of a daemon.
fn helpers(daemon: u32) -> Vec<u32> {
    let children = format!("/proc/{daemon}/task");
    let tasks = std::fs::read_dir(children).into_iter().flatten().flatten();
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let listed: Vec<String> = tasks.filter_map(|task| of_task(task).ok()).collect();
    let pids = listed.iter().flat_map(|list| list.split_whitespace());
    let pids = pids.filter_map(|pid| pid.parse::<u32>().ok());
    pids.filter(|pid| command_line(*pid).contains("notify-helper")).collect()
}

fn command_line(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

#[test]
fn appends_from_elsewhere_wake_who_watches_the_file_or_its_directory() {
    let up = Up::start();
    let second = up.second();
    shell::bash(up.mount().path(), "mkdir -p d; echo one >> log; echo one >> d/log", &[]).ok();
    shell::bash(second.mount().path(), "cat log d/log", &[]).ok();
    let (log, directory) = (second.file("log"), second.file("d"));
    let watching = watch(&[&log, &directory]);
    // Through the other mount, and over the network.
    let post = format!("echo more | curl -sS --fail -T - {}", up.journal_url("log"));
    for append in ["echo more >> log", &post] {
        let line = format!("{} -", name(&log));
        let before = events(&watching, &line);
        up.bash(append, &[]).ok();
        until("the file's watcher hears of it", || events(&watching, &line) > before);
    }
    let line = format!("{} log", name(&directory));
    until("the directory's watcher hears of it", || {
        up.bash("echo more >> d/log", &[]).ok();
        events(&watching, &line) > 0
    });
}

#[test]
fn both_nodes_of_a_journal_wake_their_watchers() {
    // The first mount gives the node that the kernel reads itself; the second one, that of this
    // process alone.
    let up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let mode = up.bash("getfattr --only-values -n user.courant.mode log", &[]).ok();
    assert_eq!(mode.text(), "passthrough");
    let direct = Up::with(&["--no-passthrough"]);
    direct.bash("echo one >> log", &[]).ok();
    for up in [up, direct] {
        let log = up.file("log");
        let watching = watch(&[&log]);
        let line = format!("{} -", name(&log));
        let post = format!("echo more | curl -sS --fail -T - {}", up.journal_url("log"));
        for _ in 0..2 {
            let before = events(&watching, &line);
            up.bash(&post, &[]).ok();
            until("the watcher hears of it", || events(&watching, &line) > before);
        }
    }
}

#[test]
fn appends_that_come_together_are_one_event() {
    let up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let log = up.file("log");
    let watching = watch(&[&log]);
    let line = format!("{} -", name(&log));
    let appends = format!(
        "for i in {{1..300}}; do echo url = {0}; echo data-binary = x$i; echo next; done \
         | sed '$d' | curl -sS --fail -X PUT -K -",
        up.journal_url("log")
    );
    up.bash(&appends, &[]).ok();
    until("the watcher hears of them", || events(&watching, &line) > 0);
    up.bash("sleep 1", &[]).ok();
    let heard = events(&watching, &line);
    assert!(heard < 150, "{heard} events for 300 appends");
}

#[test]
fn the_helper_is_there_for_watchers_only_and_ends_with_its_daemon() {
    let mut up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let post = format!("echo more | curl -sS --fail -T - {}", up.journal_url("log"));
    up.bash(&post, &[]).ok();
    let daemon = up.daemon().id();
    assert_eq!(helpers(daemon), [] as [u32; 0], "nobody watches");
    let log = up.file("log");
    let mut watching = watch(&[&log]);
    up.bash(&post, &[]).ok();
    until("an event", || events(&watching, &format!("{} -", name(&log))) > 0);
    let helper = helpers(daemon)[0];
    // It holds nothing of the mount: that can be taken away without force once nobody watches.
    drop(watching.stdin());
    watching.wait(tests::patience::LIMIT);
    shell::run(Command::new("umount").arg(up.mount().path()), tests::patience::LIMIT).ok();
    until("the helper ends with the mount", || !command_line(helper).contains("notify-helper"));

    // Case: kill -9 of the daemon.
    up.again();
    let daemon = up.daemon().id();
    let watching = watch(&[&log]);
    up.bash(&post, &[]).ok();
    until("an event", || events(&watching, &format!("{} -", name(&log))) > 0);
    let helper = helpers(daemon)[0];
    up.daemon().kill();
    until("the helper ends with it", || !Path::new(&format!("/proc/{helper}")).exists());
    let stat = Command::new("stat").arg("-f").arg(up.mount().path()).output().unwrap();
    let complaint = String::from_utf8_lossy(&stat.stderr).into_owned();
    assert!(complaint.contains("not connected"), "the mount is dead at once: {complaint}");
}

#[test]
fn events_can_be_left_out() {
    let mut up = Up::with(&["--no-notify"]);
    up.bash("echo one >> log", &[]).ok();
    let log = up.file("log");
    let watching = watch(&[&log]);
    let post = format!("echo more | curl -sS --fail -T - {}", up.journal_url("log"));
    up.bash(&post, &[]).ok();
    up.bash("sleep 5.5", &[]).ok();
    assert_eq!(events(&watching, &format!("{} -", name(&log))), 0);
    assert_eq!(helpers(up.daemon().id()), [] as [u32; 0]);
}

#[test]
fn an_event_is_raised_though_its_helper_is_killed() {
    let mut up = Up::start();
    let second = up.second();
    let log = up.file("log");
    up.bash("echo one >> log", &[]).ok();
    let watching = watch(&[&log]);
    let line = format!("{} -", name(&log));
    for append in ["echo two >> log", "echo three >> log"] {
        let before = events(&watching, &line);
        shell::bash(second.mount().path(), append, &[]).ok();
        until("the watcher hears of it", || events(&watching, &line) > before);
        for helper in helpers(up.daemon().id()) {
            shell::run(Command::new("kill").args(["-9", &helper.to_string()]), LIMIT).ok();
        }
    }
}
