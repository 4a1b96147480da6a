//! A mount in the background: started, and left to itself once it serves.

use super::options::Planned;
use crate::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// This program, also where it was called through a link.
const SELF: &str = "/proc/self/exe";

/// What the line begins with by which a daemon says that it serves.
const READY: &str = "ready:";

/// Why there is no mount.
pub(super) enum Failed {
    Start(Error),
    /// The daemon ended; what it said is on standard error.
    Ended,
}

/// Starts it, and returns what it says when it serves. What it says on standard error before is
/// passed on; later it is told to nobody, and its log goes where it was told.
pub(super) fn start(planned: &Planned) -> Result<String, Failed> {
    let mut child = spawn(planned).map_err(Failed::Start)?;
    let stderr = child.stderr.take().expect("it is piped");
    let passing_on = thread::spawn(move || pass_on(stderr));
    let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let ready = stdout.lines().map_while(Result::ok).find(|line| line.starts_with(READY));
    match ready {
        Some(line) => Ok(line),
        None => {
            let _ended = child.wait();
            // All that it said ends with it.
            let _passed = passing_on.join();
            Err(Failed::Ended)
        }
    }
}

fn spawn(planned: &Planned) -> Result<Child, Error> {
    // Apart from the terminal, which ends with its user. It fails for the leader of a group, as
    // when somebody tries it by hand: then the group of its own below must do.
    let _session = rustix::process::setsid();
    let mut command = Command::new(SELF);
    if let Some(file) = &planned.environment {
        command.envs(environment(file)?);
    }
    command
        .arg0("courant")
        .args(&planned.arguments)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().map_err(Error::io("start courant mount"))
}

/// `NAME=VALUE` lines; empty ones and those that begin with `#` say nothing.
fn environment(file: &Path) -> Result<Vec<(String, String)>, Error> {
    let attempt = format!("read the environment {}", file.display());
    let text = std::fs::read_to_string(file).map_err(Error::io(attempt))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    Ok(lines.filter_map(pair).collect())
}

fn pass_on(mut stderr: impl Read) {
    // Whoever started us has closed it: the daemon must not stop for that.
    let _ = io::copy(&mut stderr, &mut io::stderr());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_read_line_by_line() {
        let file = std::env::temp_dir().join(format!("environment-{}", std::process::id()));
        std::fs::write(&file, "# a token\n\nBROKER_AUTH_TOKEN=a=b\n X = y \nnothing\n").unwrap();
        let read = environment(&file);
        std::fs::remove_file(&file).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read.unwrap(), [pair("BROKER_AUTH_TOKEN", "a=b"), pair("X", "y")]);
        assert!(environment(&file).is_err());
    }
}
