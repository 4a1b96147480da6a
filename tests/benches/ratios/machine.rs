//! The machine that is measured on.

use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tests::ground;
use tests::patience;
use tests::shell;

/// How long a daemon must have used next to no time of a core to count as idle.
const IDLE: Duration = Duration::from_millis(500);

/// Clock ticks (1/100 s) in that time up to which it is idle: its timers run on.
const IDLE_TICKS: u64 = 1;

/// What a reader of the numbers must know.
pub fn facts() -> Value {
    let ground = ground::folder("bench-");
    let cores = std::thread::available_parallelism().unwrap().get();
    json!({
        "cores": cores,
        "processor": line_of("/proc/cpuinfo", "model name"),
        "memory": line_of("/proc/meminfo", "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "file system": shell::bash(ground.path(), "stat -f -c %T .", &[]).ok().text(),
    })
}

/// Waits until a process has nothing left to do: what it does in the background is over.
pub fn until_idle(process: u32) {
    patience::until("the daemon is idle", || {
        let before = ticks(process);
        patience::pause(IDLE);
        ticks(process) - before <= IDLE_TICKS
    });
}

/// The time that a process has used, in clock ticks: fields 14 and 15 of `/proc/PID/stat`.
pub fn ticks(process: u32) -> u64 {
    let stat = read(format!("/proc/{process}/stat"));
    // The name before may hold anything, but the last parenthesis is its end.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().unwrap().parse::<u64>().unwrap();
    next() + next()
}

fn line_of(file: &str, name: &str) -> String {
    let text = read(file);
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
}

fn read(file: impl AsRef<Path>) -> String {
    std::fs::read_to_string(file).unwrap().trim_end().to_owned()
}
