//! Whether a mount's daemon lives, asked by another process: the asker of a stuck daemon can't be
//! killed, and must not be us.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// What became of a mount's daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Daemon {
    /// It answered, be it with an error.
    Lives,
    /// The kernel answered for it: the connection is gone.
    Dead,
    /// No answer came in time.
    Silent,
}

/// Asks the mount at `point` for its statfs, for `limit` at most. stat(1) asks for us: its open
/// files are its own, so that one which is stuck holds no lock of ours.
pub(super) fn ask(point: &Path, limit: Duration) -> io::Result<Daemon> {
    let output = outcome(Command::new("stat").args(["-f", "--"]).arg(point), limit)?;
    Ok(output.map_or(Daemon::Silent, |output| judge(&output)))
}

/// The bytes of a file in a mount, read by cat(1) for the same reason; an error says what became of
/// its daemon.
pub(super) fn read(file: &Path, limit: Duration) -> io::Result<Result<Vec<u8>, Daemon>> {
    let output = outcome(Command::new("cat").arg("--").arg(file), limit)?;
    Ok(match output {
        Some(output) if output.status.success() => Ok(output.stdout),
        Some(output) => Err(judge(&output)),
        None => Err(Daemon::Silent),
    })
}

/// How a command ended; `None` when it did not within the limit.
fn outcome(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let asker = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (told, answer) = sync_channel(1);
    // Ends with the asker; when that is stuck, this thread alone waits for it.
    thread::Builder::new().name("probe".into()).spawn(move || {
        // Nobody listens any more once the limit is over.
        let _ = told.send(asker.wait_with_output());
    })?;
    match answer.recv_timeout(limit) {
        Ok(output) => output.map(Some),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
    }
}

/// ENOTCONN is the kernel's word for a connection without a daemon. The C locale's text of it is
/// "Transport endpoint is not connected" with glibc and "Socket not connected" with musl.
fn judge(output: &Output) -> Daemon {
    let complaint = String::from_utf8_lossy(&output.stderr);
    let cause = complaint.trim_end().rsplit(": ").next().unwrap_or_default();
    if !output.status.success() && cause.ends_with("not connected") {
        Daemon::Dead
    } else {
        Daemon::Lives
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn only_enotconn_means_dead() {
        let cases = [
            (1, "stat: cannot read ... '/m': Transport endpoint is not connected", Daemon::Dead),
            (1, "stat: can't read ... '/m': Socket not connected", Daemon::Dead),
            (1, "stat: cannot read ... '/m': Permission denied", Daemon::Lives),
            // Case: the words are the mount point's own name.
            (1, "stat: can't read ... 'not connected': Permission denied", Daemon::Lives),
            (0, "", Daemon::Lives),
        ];
        for (code, complaint, daemon) in cases {
            let status = ExitStatus::from_raw(code << 8);
            let output = Output { status, stdout: Vec::new(), stderr: complaint.into() };
            assert_eq!(judge(&output), daemon, "{complaint}");
        }
    }

    #[test]
    fn an_ordinary_directory_answers() {
        assert_eq!(ask(Path::new("/"), Duration::from_secs(30)).unwrap(), Daemon::Lives);
    }
}
