//! Where the log goes: standard error, a file, or the system's log.

use crate::Error;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The words that are no paths.
const STDERR: &str = "stderr";
const SYSLOG: &str = "syslog";

/// Where the system's log listens.
const SOCKET: &str = "/dev/log";

/// What its lines are from: the facility `daemon` (syslog(3)).
const FACILITY: u8 = 3 << 3;

/// Where the log is to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Target {
    #[default]
    Stderr,
    Syslog,
    /// A file that lines are added to.
    File(PathBuf),
}

impl FromStr for Target {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            STDERR => Target::Stderr,
            SYSLOG => Target::Syslog,
            path => Target::File(path.into()),
        })
    }
}

impl Target {
    /// Whether people may be looking at it.
    pub fn is_terminal(&self) -> bool {
        *self == Target::Stderr && io::stderr().is_terminal()
    }

    pub fn open(&self) -> Result<Out, Error> {
        Ok(match self {
            Target::Stderr => Out::Stderr,
            Target::Syslog => {
                let socket = UnixDatagram::unbound().map_err(Error::io("open a socket"))?;
                // A log that is not read must not stop us.
                socket.set_nonblocking(true).map_err(Error::io("open a socket"))?;
                Out::Syslog(Arc::new(socket))
            }
            Target::File(path) => {
                let file = File::options().append(true).create(true).open(path);
                let attempt = format!("log to {}", path.display());
                Out::File(Arc::new(file.map_err(Error::io(attempt))?))
            }
        })
    }
}

/// The log, open.
#[derive(Debug, Clone)]
pub enum Out {
    Stderr,
    Syslog(Arc<UnixDatagram>),
    File(Arc<File>),
}

impl<'a> MakeWriter<'a> for Out {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { out: self.clone(), level: Level::INFO }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        Line { out: self.clone(), level: *meta.level() }
    }
}

/// Takes one line, in one write.
#[derive(Debug)]
pub struct Line {
    out: Out,
    level: Level,
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.out {
            Out::Stderr => io::stderr().write(line),
            Out::File(file) => (&**file).write(line),
            Out::Syslog(socket) => {
                socket.send_to(&datagram(self.level, line), SOCKET)?;
                Ok(line.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line as the C library's syslog(3) sends it, but for the time: who listens knows that.
fn datagram(level: Level, line: &[u8]) -> Vec<u8> {
    let mut head = String::new();
    let priority = FACILITY | severity(level);
    let written = write!(head, "<{priority}>courant[{}]: ", std::process::id());
    written.expect("a string takes every byte");
    [head.as_bytes(), line.trim_ascii_end()].concat()
}

/// `LOG_ERR` to `LOG_DEBUG` of syslog(3).
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_word_or_a_path() {
        for (text, target) in [
            ("stderr", Target::Stderr),
            ("syslog", Target::Syslog),
            ("./syslog", Target::File("./syslog".into())),
            ("/var/log/courant", Target::File("/var/log/courant".into())),
        ] {
            assert_eq!(text.parse(), Ok(target), "{text}");
        }
    }

    #[test]
    fn lines_of_the_system_log_say_whose_they_are_and_how_bad() {
        let own = format!("courant[{}]: ", std::process::id());
        // Case: the level, the line, what is sent
        for (level, line, sent) in [
            (Level::ERROR, "it broke\n", format!("<27>{own}it broke")),
            (Level::INFO, "it ends", format!("<30>{own}it ends")),
        ] {
            assert_eq!(datagram(level, line.as_bytes()), sent.as_bytes(), "{line}");
        }
    }
}
