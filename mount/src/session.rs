//! A mount from its start to its end.

use crate::adapter::Adapter;
use crate::answer::Answers;
use crate::hold::Holds;
use crate::mountpoint::table::Table;
use crate::mountpoint::{self, Attached, MountPoint};
use crate::notify::{self, Helper, Place};
use crate::pages::Pages;
use crate::revoke;
use crate::watch::Watches;
use fs::Filesystem;
use fuser::{Config, Session, SessionACL};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Type number of overlayfs (linux/magic.h).
const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;

/// How often the mount table is read to see whether the mount is still there.
const REMOVAL_PACE: Duration = Duration::from_secs(1);

/// Why a mount did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    MountPoint(#[from] mountpoint::Error),
    #[error("the kernel did not accept the mount: {0}")]
    Handshake(io::Error),
    #[error("no thread to serve the mount: {0}")]
    Thread(io::Error),
}

/// How a mount is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// FUSE threads. None of them ever waits, so few are enough.
    pub threads: usize,
    /// How many file systems may be stacked below ours, see [`stack_depth`].
    pub stack_depth: u32,
    /// The argument by which this program becomes the helper that raises inotify events, which is
    /// followed by the number for [`crate::run_notify_helper`]; without one there are none.
    pub notify_helper: Option<&'static str>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { threads: 2, stack_depth: 1, notify_helper: None }
    }
}

/// The stack depth that passthrough to files in `directory` needs: 2 on overlayfs, as in the layers
/// of a container, else 1, which lets others stack overlayfs on the mount.
pub fn stack_depth(directory: &Path) -> u32 {
    let kind = rustix::fs::statfs(directory).map(|stat| stat.f_type);
    if kind == Ok(OVERLAYFS_SUPER_MAGIC) { 2 } else { 1 }
}

/// Mounts the file system, and serves it until it is unmounted, by us or by anybody.
///
/// Operations that wait run on `runtime`, which needs its time driver.
pub fn serve(
    point: MountPoint,
    fs: Arc<Filesystem>,
    settings: Settings,
    runtime: Handle,
) -> Result<MountHandle, Error> {
    let (device, attached) = point.attach()?;
    let is_root = rustix::process::geteuid().is_root();
    let acl = if is_root { SessionACL::All } else { SessionACL::Owner };
    let mut config = Config::default();
    config.n_threads = Some(settings.threads);

    let closing = watch::Sender::new(false);
    let watches = Arc::new(Watches::default());
    let holds = Holds::new(fs.clone(), attached.mnt_id(), watches.clone(), closing.subscribe());
    let mut background = vec![
        runtime.spawn(watches.clone().run()),
        runtime.spawn(notice_removal(attached.table(), attached.mnt_id(), closing.clone())),
    ];
    let helper = settings.notify_helper.map(|it| Helper::new(fs.clone(), place(&attached), it));
    let helper = helper.transpose().map_err(Error::Thread)?;
    if let Some(helper) = helper.clone() {
        let watching = notify::watch_over(fs.clone(), attached.device(), helper);
        background.push(runtime.spawn(watching));
    }
    background.push(runtime.spawn(revoke::take_back(fs.clone(), helper)));
    let holds = Arc::new(holds);
    let answers = Answers::new(runtime.clone(), watches, fs.clone(), holds.clone());
    let adapter = Adapter::new(fs.clone(), answers, holds, settings.stack_depth);
    let session = Session::from_fd(adapter, device, acl, config).map_err(Error::Handshake)?;
    fs.attach(Arc::new(Pages::new(session.notifier(), runtime)));

    let (end, ended) = watch::channel(false);
    let serving = move || {
        if let Err(error) = session.run() {
            tracing::error!(%error, "the mount is no longer served");
        }
        background.iter().for_each(JoinHandle::abort);
        end.send_replace(true);
    };
    thread::Builder::new().name("mount".into()).spawn(serving).map_err(Error::Thread)?;
    Ok(MountHandle { attached: Some(attached), closing, ended })
}

fn place(attached: &Attached) -> Place {
    let path = attached.path().to_path_buf();
    Place { path, mnt_id: attached.mnt_id() }
}

/// Lets go what is held once somebody else takes the mount away: a lazy unmount waits for handles
/// that are open, and a reader at the head would keep its own open for ever.
async fn notice_removal(table: Arc<Table>, mnt_id: u64, closing: watch::Sender<bool>) {
    let is_there = || match table.mounts() {
        Ok(mounts) => mounts.iter().any(|mount| mount.id == mnt_id),
        Err(error) => {
            tracing::warn!(%error, "can't tell whether the mount is still there");
            true
        }
    };
    while is_there() {
        tokio::time::sleep(REMOVAL_PACE).await;
    }
    closing.send_replace(true);
}

/// A mount that is served. Dropping it unmounts.
pub struct MountHandle {
    attached: Option<Attached>,
    closing: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

impl MountHandle {
    /// The number of the mount, as `/proc/PID/fdinfo/FD` tells it of open files.
    pub fn mnt_id(&self) -> Option<u64> {
        self.attached.as_ref().map(Attached::mnt_id)
    }

    /// Waits until nothing of the mount is left: it is unmounted and its last handle is closed.
    pub async fn ended(&mut self) {
        // The sender goes only with the thread that serves.
        let _gone = self.ended.wait_for(|ended| *ended).await;
    }

    /// Answers what is held, and takes the mount away. Handles that are open stay served until they
    /// are closed or the process ends, so the caller decides how long to wait for
    /// [`MountHandle::ended`].
    pub fn unmount(&mut self) {
        self.closing.send_replace(true);
        drop(self.attached.take());
    }
}

impl Drop for MountHandle {
    fn drop(&mut self) {
        self.unmount();
    }
}
