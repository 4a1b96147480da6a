//! Whether a caller whose request is held has a signal, so that it must be let go.
//!
//! fuser has no hook for the kernel's INTERRUPT, and a held caller would ignore even SIGKILL.

use super::field;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// /proc/TID/status is about 1.5 KiB; the signal masks stand in the middle of it.
const STATUS_MAX: usize = 8192;

/// The signals of one thread, asked again and again: its status file is kept open, which makes a
/// look about half as dear as opening it each time.
#[derive(Debug)]
pub struct SignalWatch {
    /// `None` when the thread was gone already.
    status: Option<File>,
}

impl SignalWatch {
    /// Watches the thread `tid`, as a FUSE request names it.
    pub fn of(tid: u32) -> SignalWatch {
        SignalWatch { status: File::open(format!("/proc/{tid}/status")).ok() }
    }

    /// Whether a signal waits that the thread will see: neither blocked nor ignored. True also when
    /// the thread is gone. False when /proc tells nothing, since an `EINTR` without a signal breaks
    /// programs.
    pub fn signal_waits(&self) -> bool {
        self.asks(|pending| pending.seen != 0)
    }

    /// Whether such a signal will also end the thread: it is not caught, and its default is not to
    /// stop. What such a caller is answered nobody sees.
    pub fn is_dying(&self) -> bool {
        self.asks(|pending| pending.seen & !pending.caught & !STOPS != 0)
    }

    fn asks(&self, question: impl Fn(Pending) -> bool) -> bool {
        let Some(status) = &self.status else { return true };
        let mut text = [0; STATUS_MAX];
        match status.read_at(&mut text, 0) {
            Ok(length) => parse(&String::from_utf8_lossy(&text[..length])).is_some_and(question),
            Err(error) => is_gone(&error),
        }
    }
}

/// Reading the status of a thread that ended gives ESRCH.
fn is_gone(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::SRCH)
}

/// Signals of one thread, signal *n* as bit *n - 1*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    /// That wait and are neither blocked nor ignored.
    seen: u64,
    /// For which the program has a handler.
    caught: u64,
}

/// SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU, whose default is to stop (signal(7)).
const STOPS: u64 = 0b1111 << 18;

/// Of a status file's text: (SigPnd | ShdPnd) less SigBlk and SigIgn, and SigCgt. Signals whose
/// default is to be ignored never wait: the kernel drops them when they are sent.
fn parse(status: &str) -> Option<Pending> {
    let mask = |key| u64::from_str_radix(field(status, key)?, 16).ok();
    let pending = mask("SigPnd")? | mask("ShdPnd")?;
    let seen = pending & !mask("SigBlk")? & !mask("SigIgn")?;
    Some(Pending { seen, caught: mask("SigCgt")? })
}

#[cfg(test)]
mod tests {
    use super::super::living::Living;
    use super::*;
    use rustix::process::Signal;

    fn status(pending: &str, shared: &str, blocked: &str, ignored: &str) -> String {
        format!(
            "Name:\tcat\nThreads:\t1\nSigQ:\t0/96365\nSigPnd:\t{pending}\nShdPnd:\t{shared}\n\
             SigBlk:\t{blocked}\nSigIgn:\t{ignored}\nSigCgt:\t0000000000000000\n"
        )
    }

    #[test]
    fn a_signal_waits_when_neither_blocked_nor_ignored() {
        const NONE: &str = "0000000000000000";
        const INT: &str = "0000000000000002";
        const KILL: &str = "0000000000000100";
        const LAST: &str = "8000000000000000";
        let cases = [
            ([NONE, NONE, NONE, NONE], false),
            ([KILL, NONE, NONE, NONE], true),
            ([NONE, INT, NONE, NONE], true),
            ([NONE, LAST, NONE, NONE], true),
            // Case: blocked, ignored; another one blocked and ignored.
            ([NONE, INT, INT, NONE], false),
            ([NONE, INT, NONE, INT], false),
            ([KILL, NONE, INT, LAST], true),
        ];
        for ([pending, shared, blocked, ignored], waits) in cases {
            let text = status(pending, shared, blocked, ignored);
            let seen = parse(&text).unwrap().seen;
            assert_eq!(seen != 0, waits, "{text}");
        }
        // Case: a text without the masks says nothing.
        assert_eq!(parse("Name:\tcat\n"), None);
    }

    #[test]
    fn sees_the_signals_of_a_living_process() {
        let child = Living::start("sleep", &["60"]);
        let watch = SignalWatch::of(child.id());
        assert!(!watch.signal_waits());
        // A stopped process takes no signal, so that it stays pending.
        child.signal(Signal::STOP);
        assert!(!watch.is_dying());
        child.signal(Signal::TERM);
        child.until(|| watch.signal_waits());
        assert!(watch.is_dying());

        // Case: the process is gone, before the watch began or since.
        child.end();
        assert!(watch.signal_waits());
        assert!(SignalWatch::of(u32::MAX).signal_waits());
    }
}
