//! Standard output and files, as a command writes to them.

use crate::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// The name that means standard input or output.
pub const STANDARD: &str = "-";

/// Writes text to standard output, at once.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::output)
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
