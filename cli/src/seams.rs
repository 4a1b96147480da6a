//! What `main` makes of the world and hands in: the clock, the limits of the process.

use crate::Error;
use index::disk::{Disk, RealDisk};
use index::{Clock, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The system's clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// The root of `file` stores. It must be there: an empty one would be made of a misspelt name.
pub fn file_root(dir: &Path) -> Result<Arc<dyn Disk>, Error> {
    let attempt = || format!("use {} as the root of file stores", dir.display());
    let meta = std::fs::metadata(dir).map_err(Error::io(attempt()))?;
    if !meta.is_dir() {
        return Err(Error::Io(attempt(), io::ErrorKind::NotADirectory.into()));
    }
    Ok(Arc::new(RealDisk::new(dir).map_err(Error::io(attempt()))?))
}

/// Allows as many open files as the system lets us have: each journal keeps its mirror open, each
/// connection and each mount's handle takes a descriptor.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = ?limit.current, "the limit of open files stays");
    }
}
