//! A mount, from the flags that `up` and `mount` share to its end.

use crate::{Error, random, seams};
use ::mount::mountpoint::MountPoint;
use ::mount::{MountHandle, Settings};
use client::{Durability, Journals, WRITE_TIMEOUT_MAX};
use fs::{Filesystem, Fsync, Options, Trimmed};
use protocol::duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long files that are still open may keep a daemon that was told to end: what was written is
/// answered by then.
const OPEN_FILES_MAX: Duration = Duration::from_secs(1);

/// How a mount shows journals.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Mount")]
pub struct MountFlags {
    /// What file names are appended to: the file `x` is the journal PREFIXx [default: local/, and
    /// nothing for a bucket].
    #[arg(long)]
    prefix: Option<String>,

    /// Owner of all files [default: who runs this].
    #[arg(long)]
    uid: Option<u32>,

    /// Group of all files [default: that of who runs this].
    #[arg(long)]
    gid: Option<u32>,

    /// Permission bits, in octal, that no file has.
    #[arg(long, default_value = "022", value_parser = umask)]
    umask: u32,

    /// Let `rm` delete journals, with their stored fragments.
    #[arg(long)]
    allow_delete: bool,

    /// Let nobody write.
    #[arg(long, conflicts_with = "allow_delete")]
    read_only: bool,

    /// Read every journal through this process, not from the kernel.
    #[arg(long)]
    no_passthrough: bool,

    /// Programs, by name, whose fstat may wait for a journal to grow, as `tail -f` wants.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "tail")]
    follow_programs: Vec<String>,

    /// How long a write waits for what passes by itself; at most 30s.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = write_timeout)]
    write_timeout: Duration,

    /// What fsync means on a broker that can't sync to disk, as Gazette's.
    #[arg(long, value_enum, default_value = "disk")]
    fsync: FsyncFlag,

    /// How a range that was trimmed reads.
    #[arg(long, value_enum, default_value = "error")]
    trimmed: TrimmedFlag,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum FsyncFlag {
    /// It fails there.
    Disk,
    /// Being with every replica is enough.
    Replicated,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum TrimmedFlag {
    /// As an error (ENODATA).
    Error,
    /// As a hole of zeros.
    Sparse,
}

fn umask(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mask) if mask <= 0o777 => Ok(mask),
        _ => Err(format!("expected three octal digits, such as 022 ({text})")),
    }
}

fn write_timeout(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(limit) if limit <= WRITE_TIMEOUT_MAX => Ok(limit),
        _ => Err(format!("expected a duration up to 30s, such as 5s ({text})")),
    }
}

/// What journals begin with that a mount shows, unless it was told otherwise.
const PREFIX: &str = "local/";

impl MountFlags {
    /// The same for journals that nobody may write, all of which are shown.
    pub fn for_bucket(self) -> Self {
        let prefix = Some(self.prefix.unwrap_or_default());
        MountFlags { prefix, read_only: true, ..self }
    }

    /// `durability` is what `write(2)` waits for.
    fn options(&self, durability: Durability) -> Result<Options, Error> {
        let owner = rustix::process::getuid().as_raw();
        let group = rustix::process::getgid().as_raw();
        Ok(Options {
            prefix: self.prefix.clone().unwrap_or_else(|| PREFIX.to_owned()),
            uid: self.uid.unwrap_or(owner),
            gid: self.gid.unwrap_or(group),
            umask: self.umask,
            allow_delete: self.allow_delete,
            read_only: self.read_only,
            durability,
            fsync: match self.fsync {
                FsyncFlag::Disk => Fsync::Disk,
                FsyncFlag::Replicated => Fsync::Replicated,
            },
            trimmed: match self.trimmed {
                TrimmedFlag::Error => Trimmed::Error,
                TrimmedFlag::Sparse => Trimmed::Sparse,
            },
            write_timeout: self.write_timeout,
            passthrough: !self.no_passthrough,
            follow_programs: self.follow_programs.clone(),
            ..Options::new(random::bytes()?, seams::clock().now())
        })
    }
}

/// A mount that is served.
pub struct Mounted {
    path: PathBuf,
    handle: MountHandle,
}

impl Mounted {
    /// Mounts on a point that was claimed. `data` is where mirrors may lie.
    pub fn start(
        point: MountPoint,
        journals: Arc<dyn Journals>,
        flags: &MountFlags,
        durability: Durability,
        data: &Path,
    ) -> Result<Mounted, Error> {
        let fs = Filesystem::new(journals, flags.options(durability)?);
        let path = point.path().to_path_buf();
        let stack_depth = ::mount::stack_depth(data);
        let settings = Settings { stack_depth, ..Settings::default() };
        let handle = ::mount::serve(point, fs, settings, Handle::current())?;
        Ok(Mounted { path, handle })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until somebody has unmounted it.
    pub async fn ended(&mut self) {
        self.handle.ended().await;
    }

    /// Answers what is held and takes the mount away. Files that are open are served until they are
    /// closed, for a moment.
    pub async fn stop(mut self) {
        self.handle.unmount();
        if timeout(OPEN_FILES_MAX, self.handle.ended()).await.is_err() {
            tracing::info!("files of the mount are still open; they end with this process");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        for (text, expected) in [("022", Some(0o22)), ("0", Some(0)), ("1000", None), ("9", None)] {
            assert_eq!(umask(text).ok(), expected, "{text}");
        }
        for (text, expected) in [("5s", Some(5)), ("30s", Some(30)), ("31s", None), ("5", None)] {
            assert_eq!(write_timeout(text).ok().map(|limit| limit.as_secs()), expected, "{text}");
        }
    }
}
