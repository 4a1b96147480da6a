//! The hidden command by which a mount starts the helper that raises inotify events.

use crate::Error;
use std::io;

/// Its name on the command line.
pub const NAME: &str = "notify-helper";

/// Raise inotify events of a mount: paths come in, an answer to each goes out.
#[derive(clap::Args, Debug)]
pub struct NotifyHelper {
    /// The number of the mount.
    mount: u64,
}

impl NotifyHelper {
    pub fn run(self) -> Result<(), Error> {
        let helped = ::mount::run_notify_helper(self.mount, io::stdin(), io::stdout());
        helped.map_err(Error::io("raise inotify events"))
    }
}
