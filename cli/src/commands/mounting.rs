//! A mount, from the flags that `up` and `mount` share to its end.

use super::staging::Place;
use crate::{Error, random, seams, size};
use ::mount::mountpoint::MountPoint;
use ::mount::{MountHandle, Settings};
use client::{Durability, Journals, WRITE_TIMEOUT_MAX};
use fs::{Filesystem, Fsync, NodeId, Options, Trimmed};
use futures::future::BoxFuture;
use protocol::duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long files that are still open may keep a daemon that was told to end: what was written is
/// answered by then.
const OPEN_FILES_MAX: Duration = Duration::from_secs(1);

/// How long what programs do not wait for may keep a daemon that was told to end.
const SETTLING_MAX: Duration = Duration::from_secs(5);

/// How long what an earlier mount left keeps this one from being served, so that its lines come
/// before new ones.
const RECOVERING_MAX: Duration = Duration::from_secs(5);

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

    /// Commit whole lines only, through every file: what a program writes of a line waits for its
    /// newline, fsync, or the last close.
    #[arg(long)]
    lines: bool,

    /// Answer a write when it is queued: up to 16 MiB may be lost with this process. fsync and
    /// close wait, and tell the first failure.
    #[arg(long = "async")]
    asynchronous: bool,

    /// Bytes that may wait at once for the rest of their line, or of their whole file. They are in
    /// `staging` of the cache (for `up`, `mount-staging` of the data); without a cache in
    /// courant-UID-NUMBER of the temporary directory.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "8G")]
    staging_max: u64,

    /// Read every journal through this process, not from the kernel.
    #[arg(long)]
    no_passthrough: bool,

    /// Raise no inotify events for appends that come from elsewhere.
    #[arg(long)]
    no_notify: bool,

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
            lines: self.lines,
            asynchronous: self.asynchronous,
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
    fs: Arc<Filesystem>,
    staging: Option<Place>,
    handle: MountHandle,
}

impl Mounted {
    /// Mounts on a point that was claimed. `data` is where mirrors may lie, `staging` where what is
    /// written may wait. What an earlier mount left there is committed first, if that is soon.
    pub async fn start(
        point: MountPoint,
        journals: Arc<dyn Journals>,
        flags: &MountFlags,
        durability: Durability,
        data: &Path,
        staging: Place,
    ) -> Result<Mounted, Error> {
        let options = flags.options(durability)?;
        let staging = (!options.read_only).then_some(staging);
        let fs = match &staging {
            Some(place) => {
                let staging = place.open(flags.staging_max)?;
                Filesystem::with_staging(journals, options, staging)
            }
            None => Filesystem::new(journals, options),
        };
        recover(&fs).await;
        let path = point.path().to_path_buf();
        let stack_depth = ::mount::stack_depth(data);
        let notify_helper = (!flags.no_notify).then_some(super::notify::NAME);
        let settings = Settings { stack_depth, notify_helper, ..Settings::default() };
        let served = ::mount::serve(point, fs.clone(), settings, Handle::current());
        let handle = served.inspect_err(|_| staging.iter().for_each(Place::tidy))?;
        Ok(Mounted { path, fs, staging, handle })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Comes to its end when this process gets on: threads that may block are to be had, and the
    /// mount's tables are free. It asks no broker, since a mount outlives a broker that is away.
    pub fn check(&self) -> impl Fn() -> BoxFuture<'static, ()> + Send + 'static {
        let fs = self.fs.clone();
        move || {
            let fs = fs.clone();
            let asking = tokio::task::spawn_blocking(move || drop(fs.access(NodeId::ROOT)));
            Box::pin(async move { drop(asking.await) })
        }
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
        if timeout(SETTLING_MAX, self.fs.settled()).await.is_err() {
            tracing::warn!("what waits to be committed is committed by the next mount");
        }
        if let Some(place) = &self.staging {
            place.tidy();
        }
    }
}

/// Commits what an earlier mount left. Where the broker is away it goes on while files are served.
async fn recover(fs: &Arc<Filesystem>) {
    let recovering = fs.recover();
    let mut recovering = tokio::spawn(recovering);
    match timeout(RECOVERING_MAX, &mut recovering).await {
        Ok(Ok(Err(error))) => tracing::error!(%error, "what waits can't be taken up"),
        Ok(_done) => {}
        Err(_elapsed) => tracing::warn!("what an earlier mount left waits for the broker"),
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
