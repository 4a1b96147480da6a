//! Standard output and files, as a command writes to them.

use crate::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// The name that means standard input or output.
pub const STANDARD: &str = "-";

/// Writes text to standard output, at once.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::output)
}

/// How many characters a line of standard output has room for; `None` where it is no terminal, or
/// one that does not say.
pub fn columns() -> Option<usize> {
    let out = io::stdout();
    let size = tcgetwinsize(&out).ok().filter(|_| out.is_terminal())?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How often it is looked whether somebody still reads.
const LOOK: Duration = Duration::from_millis(250);

/// Waits until whoever reads standard output is gone, as `head` is after its last line; for ever
/// where it is a file. A command that waits for more has to watch this, since it may be long before
/// a write tells.
pub async fn closed() {
    while is_read() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a write to standard output may reach somebody. The kernel tells an error of a pipe or a
/// socket whose other side is closed, asked for or not (poll(2)).
fn is_read() -> bool {
    let out = io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    // What can't be polled is left for the write to tell.
    let told = poll(&mut polled, Some(&Timespec::default()));
    told.is_err() || !polled[0].revents().contains(PollFlags::ERR)
}

/// Tells something that is no error and no output.
pub fn note(text: &str) {
    // A log that can't be written has nobody to be told to.
    let _ = writeln!(io::stderr(), "courant: {text}");
}

/// Where a command writes content to: standard output, or a file that is made or replaced.
pub fn open(path: &Path) -> Result<Box<dyn Write + Send>, Error> {
    if path == Path::new(STANDARD) {
        return Ok(Box::new(io::stdout()));
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    Ok(Box::new(file.map_err(Error::io(format!("write {}", path.display())))?))
}
