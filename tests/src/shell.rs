//! Commands that are run to their end, within a limit: the programs a user would use.

use crate::ground;
use crate::patience::LIMIT;
use crate::running::Running;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Ran {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    /// Its standard output as text, without white space at the end.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end().to_string()
    }

    /// Itself, if it succeeded; panics with what it said if not.
    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.code, Some(0), "it said: {} {}", self.stderr, self.text());
        self
    }

    /// The complaint of `courant`, one line, which it ends with; panics if it ended otherwise, or
    /// has panicked. The lines before are its log.
    #[track_caller]
    pub fn refusal(&self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "it said: {} {}", self.stderr, self.text());
        assert!(!self.stderr.contains("panicked at"), "it said: {}", self.stderr);
        let line = self.stderr.trim_end().lines().last().unwrap_or_default();
        assert!(!line.is_empty(), "it failed without a word");
        line.to_string()
    }
}

/// Runs a command; panics when it takes longer than the limit.
#[track_caller]
pub fn run(command: &mut Command, limit: Duration) -> Ran {
    let mut running = Running::start(command.stdin(Stdio::null()));
    let code = running.wait(limit).code();
    Ran { code, stdout: running.stdout(), stderr: running.stderr() }
}

/// Runs a line of bash in a directory. Its arguments are `$1` and so on.
#[track_caller]
pub fn bash(directory: &Path, line: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("bash");
    command.current_dir(directory).args(["-c", line, "bash"]).args(arguments);
    run(&mut command, LIMIT)
}

/// A program that signals end, whoever runs the tests: what a shell starts in the background
/// ignores SIGINT, and so would all that it starts.
pub fn with_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// A program of `tests/programs` in Python, ready to be run or started.
pub fn python(program: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(ground::program(program)).stdin(Stdio::null());
    command
}

/// The bytes of a file, read by cat: a read that hangs fails the test, and not this process.
#[track_caller]
pub fn cat(path: &Path) -> Vec<u8> {
    run(Command::new("cat").arg(path), LIMIT).ok().stdout
}
