//! Why a directory can't be a cache.

use index::disk::Disk;
use std::io;
use std::path::{Path, PathBuf};

/// A cache directory that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("the cache {0} is in use by another mount: end that one, or use another directory")]
    InUse(PathBuf),
    #[error("the cache can't use {0}: {1}")]
    Disk(PathBuf, io::Error),
}

impl Refused {
    pub(super) fn disk(disk: &dyn Disk, path: &Path) -> impl FnOnce(io::Error) -> Refused {
        let place = disk.place(path);
        move |error| Refused::Disk(place, error)
    }
}
