//! `courant umount`: takes a mount of ours away, whether its daemon lives or not.

use crate::Error;
use std::path::PathBuf;

/// Take a mount away, dead or alive.
///
/// The daemon that served it ends by itself. Files that are open keep working until they are closed
/// or the daemon is gone.
#[derive(clap::Args, Debug)]
pub struct Umount {
    /// The directory that is mounted on.
    mountpoint: PathBuf,
}

impl Umount {
    pub fn run(self) -> Result<(), Error> {
        Ok(mount::mountpoint::unmount(&self.mountpoint)?)
    }
}
