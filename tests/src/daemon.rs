//! The `courant` binary: started, waited for, ended kindly or not.

use crate::ground;
use crate::patience::{self, LIMIT};
use crate::running::Running;
use crate::shell::{self, Ran};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a daemon may take to end after SIGTERM: it answers what is held, syncs and unmounts.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A running `courant up`, `serve` or `mount`.
#[derive(Debug)]
pub struct Daemon {
    running: Running,
}

impl Daemon {
    /// Starts it, and waits for the line that says that it serves.
    #[track_caller]
    pub fn start(arguments: &[impl AsRef<OsStr>]) -> Daemon {
        let mut running = Running::start(courant(arguments).stdin(Stdio::null()));
        running.until_prints("ready:");
        Daemon { running }
    }

    /// The line that said that it serves.
    pub fn ready_line(&self) -> String {
        let printed = String::from_utf8_lossy(&self.running.stdout()).into_owned();
        printed.lines().find(|line| line.starts_with("ready:")).unwrap_or_default().to_string()
    }

    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Its log.
    pub fn log(&self) -> String {
        self.running.stderr()
    }

    /// Whether it has not ended.
    pub fn lives(&mut self) -> bool {
        self.running.ended().is_none()
    }

    /// kill -9.
    #[track_caller]
    pub fn kill(&mut self) {
        assert!(self.running.kill(), "daemon {} survives SIGKILL", self.id());
    }

    /// Sends it a signal that does not end it, such as SIGSTOP.
    pub fn signal(&mut self, signal: Signal) {
        self.running.signal(signal);
    }

    /// SIGTERM, until it has begun to end.
    #[track_caller]
    pub fn begin_stop(&mut self) {
        self.running.signal(Signal::TERM);
        patience::until("it begins to end", || self.log().contains("ending"));
    }

    /// SIGTERM, and its end.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        self.running.signal(Signal::TERM);
        self.running.wait(STOP_LIMIT)
    }

    /// The memory that it has resident, in bytes.
    pub fn resident(&self) -> u64 {
        self.bytes("VmRSS")
    }

    /// The most memory it has had resident, in bytes.
    pub fn resident_max(&self) -> u64 {
        self.bytes("VmHWM")
    }

    /// A field of its /proc/PID/status that is in kB.
    fn bytes(&self, field: &str) -> u64 {
        let resident = self.status(field);
        let kibibytes = resident.strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
        kibibytes.expect("/proc/PID/status has it in kB") << 10
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.status("Threads").parse().expect("/proc/PID/status has Threads as a number")
    }

    /// A field of its /proc/PID/status.
    fn status(&self, field: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("the daemon lives");
        let value =
            |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned());
        status.lines().find_map(value).expect("the field is one of proc(5)")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(&self.log());
        }
    }
}

#[expect(clippy::print_stderr, reason = "the log explains the test's failure")]
fn report(log: &str) {
    let from = log.char_indices().rev().nth(8000).map_or(0, |(at, _)| at);
    eprintln!("--- the daemon's log ends with ---\n{}", &log[from..]);
}

/// Runs `courant` with these arguments to its end.
#[track_caller]
pub fn run(arguments: &[impl AsRef<OsStr>]) -> Ran {
    shell::run(&mut courant(arguments), LIMIT)
}

/// Runs `courant` with these arguments, which must fail with exit code 1; its complaint.
#[track_caller]
pub fn refused(arguments: &[impl AsRef<OsStr>]) -> String {
    run(arguments).refusal(1)
}

/// The binary with arguments, ready to be started.
pub fn courant(arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    command
}

/// `$COURANT_BIN`, or the binary of the profile that the tests were built with.
pub fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("COURANT_BIN") {
        return named.into();
    }
    let beside = ground::profile().join("courant");
    assert!(
        beside.exists(),
        "{} is not built: run cargo build -p courant with the profile of the tests, or name a \
         binary in COURANT_BIN",
        beside.display()
    );
    beside
}
