//! A child process: its output is collected while it runs, and it is ended with its owner.

use crate::patience::{self, LIMIT};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a killed process may take to be gone. One that waits for a dead mount takes for ever:
/// it is left behind, and freed when the mount's connection is aborted (see `mountdir`).
const END_LIMIT: Duration = Duration::from_secs(10);

/// A process in a group of its own.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    stdout: Collected,
    stderr: Collected,
}

impl Running {
    /// Starts it, without standard input unless the command says otherwise.
    #[track_caller]
    pub fn start(command: &mut Command) -> Running {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start ({error}): see scripts/setup"));
        let stdout = Collected::from(child.stdout.take().expect("it is piped"));
        let stderr = Collected::from(child.stderr.take().expect("it is piped"));
        Running { child, name, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed.
    pub fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.bytes()).into_owned()
    }

    /// Closes its standard input, where that was piped, or hands it over for writing.
    pub fn stdin(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Sends a signal to the process alone. One that has ended gets none: its number may be that of
    /// another process by then.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// Waits for its end and all its output; panics past the limit.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let in_time = patience::reached(limit, || self.ended().is_some());
        assert!(in_time, "{} still runs after {limit:?}; it said: {}", self.name, self.stderr());
        // A child of its own may hold the pipes open: then what is there must do.
        patience::reached(END_LIMIT, || self.stdout.is_whole() && self.stderr.is_whole());
        self.ended().expect("it has ended")
    }

    /// Waits until its output holds `text`.
    #[track_caller]
    pub fn until_prints(&mut self, text: &str) {
        let holds =
            |running: &Running| String::from_utf8_lossy(&running.stdout.bytes()).contains(text);
        let printed = patience::reached(LIMIT, || holds(self) || self.ended().is_some());
        assert!(
            printed
                && patience::reached(END_LIMIT, || holds(self) || self.stdout.is_whole())
                && holds(self),
            "{} printed no {text:?}, but {:?}; it said: {}",
            self.name,
            String::from_utf8_lossy(&self.stdout()),
            self.stderr(),
        );
    }

    /// Sends it and whatever it started kill -9, without waiting for their end. As with `signal`,
    /// nobody gets one when it has ended.
    pub fn strike(&mut self) {
        if self.ended().is_none() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }

    /// Ends it and whatever it started, at once. Whether it is gone.
    pub fn kill(&mut self) -> bool {
        self.strike();
        patience::reached(END_LIMIT, || self.ended().is_some())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The output of a pipe, read by a thread of its own so that the process never waits for us.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> Collected {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let filled = bytes.clone();
        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                let mut bytes = filled.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.extend_from_slice(&buffer[..length]);
            }
        });
        Collected { bytes, reader }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_whole(&self) -> bool {
        self.reader.is_finished()
    }
}
