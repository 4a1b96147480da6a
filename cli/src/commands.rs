//! The commands, one a file.

mod backup;
mod completions;
mod fsck;
mod inspect;
mod journals;
mod mount;
pub mod mount_helper;
mod mounting;
mod notify;
mod places;
mod port;
mod presence;
mod repair;
mod serve;
mod serving;
mod staging;
mod status;
mod umount;
mod up;

use crate::Error;

/// What the program is asked for.
#[derive(clap::Subcommand, Debug)]
pub enum Command {
    Up(up::Up),
    Serve(serve::Serve),
    Mount(mount::Mount),
    Umount(umount::Umount),
    Journals(journals::Journals),
    Status(status::Status),
    Inspect(inspect::Inspect),
    Backup(backup::BackUp),
    Repair(repair::Repair),
    Fsck(fsck::Fsck),
    Completions(completions::Completions),
    #[command(name = notify::NAME, hide = true)]
    NotifyHelper(notify::NotifyHelper),
}

impl Command {
    /// Whether it runs until it is ended.
    pub fn is_daemon(&self) -> bool {
        match self {
            Command::Up(_) | Command::Serve(_) | Command::Mount(_) => true,
            Command::Umount(_)
            | Command::Journals(_)
            | Command::Status(_)
            | Command::Inspect(_)
            | Command::Backup(_)
            | Command::Repair(_)
            | Command::Fsck(_)
            | Command::Completions(_)
            | Command::NotifyHelper(_) => false,
        }
    }

    pub async fn run(self) -> Result<(), Error> {
        match self {
            Command::Up(up) => up.run().await,
            Command::Serve(serve) => serve.run().await,
            Command::Mount(mount) => mount.run().await,
            Command::Umount(umount) => umount.run(),
            Command::Journals(journals) => journals.run().await,
            Command::Status(status) => status.run().await,
            Command::Inspect(inspect) => inspect.run(),
            Command::Backup(backup) => backup.run().await,
            Command::Repair(repair) => repair.run().await,
            Command::Fsck(fsck) => fsck.run().await,
            Command::Completions(completions) => completions.run(),
            Command::NotifyHelper(helper) => helper.run(),
        }
    }
}
