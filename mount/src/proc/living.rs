//! A child process for the tests of /proc: it is killed when the test ends, however that is.

use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A child that lives until `end`, or until it is dropped.
pub(super) struct Living {
    child: RefCell<Child>,
}

impl Living {
    pub(super) fn start(program: &str, arguments: &[&str]) -> Living {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        Living { child: RefCell::new(child) }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.borrow().id()
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.borrow()), signal).unwrap();
    }

    pub(super) fn end(&self) {
        let mut child = self.child.borrow_mut();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until it holds, half a minute at most.
    pub(super) fn until(&self, holds: impl Fn() -> bool) {
        for _ in 0..3000 {
            if holds() {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "another process needs real time")]
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("process {} did not come to it in half a minute", self.id());
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}
