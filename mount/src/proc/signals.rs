//! Whether a caller whose request is held has a signal, so that it must be let go.
//!
//! fuser has no hook for the kernel's INTERRUPT, and a held caller would ignore even SIGKILL.

use super::field;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// /proc/TID/status is about 1.5 KiB; the signal masks stand in the middle of it.
const STATUS_MAX: usize = 8192;

/// The signals of one thread, asked again and again: its status file is kept open, which makes a
/// look about half as dear as opening it each time.
#[derive(Debug)]
pub struct SignalWatch {
    thread: u32,
    /// `None` when it could not be opened: the thread was gone already, or descriptors ran out.
    status: Option<File>,
}

impl SignalWatch {
    /// Watches the thread `tid`, as a FUSE request names it.
    pub fn of(tid: u32) -> SignalWatch {
        SignalWatch { thread: tid, status: open(tid).ok() }
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
        let text = match &self.status {
            Some(status) => read(status),
            None => open(self.thread).and_then(|status| read(&status)),
        };
        match text {
            Ok(text) => parse(&text).is_some_and(question),
            Err(error) => is_gone(&error),
        }
    }
}

fn open(tid: u32) -> io::Result<File> {
    File::open(format!("/proc/{tid}/status"))
}

fn read(status: &File) -> io::Result<String> {
    let mut text = [0; STATUS_MAX];
    let length = status.read_at(&mut text, 0)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// A thread that ended has no status file; reading one that is open gives ESRCH. Any other error,
/// as of descriptors that ran out, says nothing of the thread.
fn is_gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::SRCH | Errno::NOENT))
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
    fn only_a_thread_that_is_not_there_is_gone() {
        // Case: the error, whether it says that the thread is gone
        let cases = [
            (Errno::NOENT, true),
            (Errno::SRCH, true),
            (Errno::MFILE, false),
            (Errno::NFILE, false),
            (Errno::ACCESS, false),
        ];
        for (errno, expected) in cases {
            assert_eq!(is_gone(&errno.into()), expected, "{errno}");
        }
        // Case: the file could not be opened at first, and the process lives.
        let child = Living::start("sleep", &["60"]);
        let watch = SignalWatch { thread: child.id(), status: None };
        assert!(!watch.signal_waits());
        child.end();
        assert!(watch.signal_waits());
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
