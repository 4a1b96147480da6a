//! `IN_MODIFY` for appends that come from elsewhere: by other mounts and over the network.
//!
//! The kernel raises inotify(7) events for calls on its own inodes only, and has no message by
//! which a FUSE daemon could. A call that sets a file's mtime raises one, and changes nothing here;
//! it has to be made by another process ([`helper`]), since a daemon that calls on its own mount
//! waits for itself. What is watched is told by /proc, so that nothing is done for anything else:
//! without a watcher there is no process and no event.

mod helper;
mod raiser;

pub use helper::run as run_helper;

use crate::proc;
use fs::{Filesystem, NodeId, Watched, WatchedDirectory, WatchedFile};
use raiser::Raise;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

/// The shortest and the longest time between two looks at who watches. Of what is appended between
/// the beginning of a watch and the next look a watcher hears at that look.
const PACE_MIN: Duration = Duration::from_secs(2);
const PACE_MAX: Duration = Duration::from_secs(5);

/// A look may take one part in this many of the time, as long as `PACE_MAX` lets it: 1 % of a core.
const SHARE: u32 = 100;

/// Nodes that are watched over; those beyond raise no events. Each costs a task.
const WATCHED_MAX: usize = 1024;

/// Directories among them: each is listed at every look.
const DIRECTORIES_MAX: usize = 16;

/// The shortest time between two events of one file. What is appended meanwhile is one event.
const EVENT_PACE: Duration = Duration::from_millis(100);

/// How long to wait after a broker could not be asked.
const RETRY_PACE: Duration = Duration::from_secs(1);

/// Events that wait for the helper. What comes while it is full is merged with what waits.
const RAISES_MAX: usize = 64;

/// The mount whose events are raised.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// Its number, as statx(2) tells it of files.
    pub mnt_id: u64,
}

/// The process that touches files of the mount for us.
#[derive(Debug, Clone)]
pub struct Helper {
    raises: mpsc::Sender<Raise>,
}

impl Helper {
    /// It is this program with the argument `argument`. It starts with the first file and ends with
    /// the last of these values.
    pub fn new(fs: Arc<Filesystem>, place: Place, argument: &'static str) -> io::Result<Self> {
        let (raises, raised) = mpsc::channel(RAISES_MAX);
        raiser::start(fs, place, argument, raised)?;
        Ok(Helper { raises })
    }

    /// Has it look a file up, and set its mtime. Whether that came about.
    pub async fn touch(&self, place: PathBuf) -> bool {
        let (done, is_done) = oneshot::channel();
        let raise = Raise { node: None, place, done: Some(done) };
        self.raises.send(raise).await.is_ok() && is_done.await.is_ok()
    }
}

/// Watches over what programs watch in the mount of this device (major, minor), for ever.
pub fn watch_over(
    fs: Arc<Filesystem>,
    device: (u32, u32),
    helper: Helper,
) -> impl Future<Output = ()> + Send + 'static {
    let raises = helper.raises;
    let mut over = Over { fs, raises, files: BTreeMap::new(), directories: BTreeMap::new() };
    async move {
        let mut tasks = JoinSet::new();
        loop {
            let began = Instant::now();
            if let Some(watched) = look(device).await {
                over.keep(&watched);
                over.add(&watched, &mut tasks).await;
                over.look_into_directories().await;
            }
            // Tasks whose files are gone.
            while tasks.try_join_next().is_some() {}
            sleep((began.elapsed() * (SHARE - 1)).clamp(PACE_MIN, PACE_MAX)).await;
        }
    }
}

/// The nodes that are watched at this moment.
async fn look(device: (u32, u32)) -> Option<BTreeSet<NodeId>> {
    // A system call or two for each descriptor of each process: too long for an async thread.
    let looking = tokio::task::spawn_blocking(move || proc::watched(device, WATCHED_MAX));
    let found = looking.await;
    let found = found.inspect_err(|error| tracing::error!(%error, "a look at watchers panicked"));
    Some(found.ok()?.into_iter().map(NodeId).collect())
}

/// What is watched over.
struct Over {
    fs: Arc<Filesystem>,
    raises: mpsc::Sender<Raise>,
    files: BTreeMap<NodeId, AbortHandle>,
    directories: BTreeMap<NodeId, WatchedDirectory>,
}

impl Over {
    /// Forgets what nobody watches any more.
    fn keep(&mut self, watched: &BTreeSet<NodeId>) {
        self.directories.retain(|node, _| watched.contains(node));
        self.files.retain(|node, task| {
            let stays = watched.contains(node) && !task.is_finished();
            if !stays {
                task.abort();
            }
            stays
        });
    }

    async fn add(&mut self, watched: &BTreeSet<NodeId>, tasks: &mut JoinSet<()>) {
        for node in watched {
            if self.files.contains_key(node) || self.directories.contains_key(node) {
                continue;
            }
            // One that can't be asked for is asked for at the next look.
            match self.fs.watched(*node).await {
                Ok(Some(Watched::File(file))) => {
                    let following = follow(self.fs.clone(), *node, file, self.raises.clone());
                    self.files.insert(*node, tasks.spawn(following));
                }
                Ok(Some(Watched::Directory(directory))) => {
                    if self.directories.len() < DIRECTORIES_MAX {
                        self.directories.insert(*node, directory);
                    }
                }
                Ok(None) | Err(_) => {}
            }
        }
    }

    async fn look_into_directories(&mut self) {
        for directory in self.directories.values_mut() {
            let Ok((grown, seen)) = self.fs.growth_in_watched(directory.clone()).await else {
                continue;
            };
            *directory = seen;
            for place in grown {
                // Who takes them has given up: then there are no events.
                let _ = self.raises.send(Raise { node: None, place, done: None }).await;
            }
        }
    }
}

/// Raises an event whenever the file grows, until its life is over.
async fn follow(
    fs: Arc<Filesystem>,
    node: NodeId,
    mut file: WatchedFile,
    raises: mpsc::Sender<Raise>,
) {
    loop {
        match fs.growth_of_watched(file.clone()).await {
            Ok(grown) => file = grown,
            Err(fs::Error::Stale) => return,
            Err(_) => {
                sleep(RETRY_PACE).await;
                continue;
            }
        }
        let Ok(Some(place)) = fs.place_of_watched(&file).await else { continue };
        if raises.send(Raise { node: Some(node), place, done: None }).await.is_err() {
            return;
        }
        sleep(EVENT_PACE).await;
    }
}
