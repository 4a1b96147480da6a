//! Holding what waits for a journal to grow: reads of the follow view, and the `fstat` of a process
//! that does nothing but follow.
//!
//! GNU tail polls on FUSE. Its fstat is answered when a journal of its set grows, so that it sees
//! growth at once without a poll. The rule that decides is the design's: whoever is held by mistake
//! stands still (tar of 10 journals took 10 s by a looser one).

use crate::askers::Askers;
use crate::proc::Follower;
use crate::watch::{Until, Watches};
use bytes::Bytes;
use fs::{Attr, Caller, Error, Filesystem, Followed, NodeId, Wait};
use futures::future::select_all;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

/// How long an fstat is held when nothing happens.
const HOLD_MAX: Duration = Duration::from_secs(30);

/// The same for `tail --pid`, which looks for the other process between its passes.
const HOLD_WITH_PID: Duration = Duration::from_secs(1);

/// The pause before a follower's request is made again that was not answered in time.
const OUTLASTING_PACE: Duration = Duration::from_millis(100);

/// How long a read is held whose caller can't be watched for signals.
const UNWATCHED_MAX: Duration = Duration::from_secs(1);

/// Callers held at once; those beyond are answered without. Each costs a task and a descriptor.
const HELD_MAX: usize = 4096;

/// Where the kernel says after how many seconds it aborts a mount with an unanswered request.
const TIMEOUTS: [&str; 2] =
    ["/proc/sys/fs/fuse/default_request_timeout", "/proc/sys/fs/fuse/max_request_timeout"];

/// The holds of a mount.
pub struct Holds {
    fs: Arc<Filesystem>,
    /// The mount, as fdinfo names it.
    mnt_id: u64,
    watches: Arc<Watches>,
    askers: Mutex<Askers>,
    /// Becomes true when the mount is taken away.
    closing: watch::Receiver<bool>,
    /// The longest time that the kernel lets a request wait.
    limit: Option<Duration>,
}

impl Holds {
    pub fn new(
        fs: Arc<Filesystem>,
        mnt_id: u64,
        watches: Arc<Watches>,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let limit = request_limit(TIMEOUTS.map(Path::new));
        Holds { fs, mnt_id, watches, askers: Mutex::default(), closing, limit }
    }

    /// A read that waits at the head, until it ends by itself, its caller has a signal, or the
    /// mount goes. A caller that can't be watched is let go each second, to look for itself.
    pub async fn read(&self, thread: u32, mut reading: Wait<Bytes>) -> Result<Bytes, Error> {
        let mut watched = self.watches.watch(thread, Until::Signalled);
        let unwatched = (thread == 0).then_some(UNWATCHED_MAX);
        let limit = [unwatched, self.limit].into_iter().flatten().min();
        tokio::select! {
            biased;
            read = &mut reading => read,
            () = closed(self.closing.clone()) => Err(Error::Unmounted),
            () = watched.signalled(), if thread != 0 => Err(Error::Interrupted),
            () = passed(limit) => Err(Error::Interrupted),
        }
    }

    /// The attributes as they are, or for a follower once they have changed.
    pub async fn getattr(&self, thread: u32, node: NodeId, attr: Attr) -> Result<Attr, Error> {
        // Most callers are answered here, without a look into /proc.
        if thread == 0 || !self.askers().tell(thread, attr.inode, attr.size) {
            return Ok(attr);
        }
        let Some(follower) = self.follower(thread).await else { return Ok(attr) };
        let Some(set) = self.at_heads(&follower).await else { return Ok(attr) };
        if !self.is_due(thread, &attr, &follower, &set) {
            return Ok(attr);
        }
        self.wait(thread, &follower, &set).await;
        let ask = || self.fs.getattr(node, Caller::default());
        let fresh = self.outlast(thread, self.fs.within(Duration::ZERO, ask()), ask).await?;
        self.askers().tell(thread, fresh.inode, fresh.size);
        Ok(fresh)
    }

    /// What the `first` request comes to. Where the broker is away a follower is answered when it
    /// is back, since it would end by the error (GNU tail does, and begins anew with `-F`). It
    /// waits until it is killed or the mount goes; whoever is none is told at once.
    pub async fn outlast<T>(
        &self,
        thread: u32,
        first: impl Future<Output = Result<T, Error>>,
        ask: impl Fn() -> Wait<T>,
    ) -> Result<T, Error> {
        let mut error = match first.await {
            Err(error) if error.passes() => error,
            answer => return answer,
        };
        let again = async {
            while error.passes() && thread != 0 && self.follower(thread).await.is_some() {
                tokio::time::sleep(OUTLASTING_PACE).await;
                match self.fs.within(Duration::ZERO, ask()).await {
                    Ok(answer) => return Some(answer),
                    Err(failed) => error = failed,
                }
            }
            None
        };
        let answer = tokio::select! {
            biased;
            answer = again => answer,
            () = closed(self.closing.clone()) => return Err(Error::Unmounted),
            () = passed(self.limit) => None,
        };
        answer.ok_or(error)
    }

    async fn follower(&self, thread: u32) -> Option<Follower> {
        let programs = &self.fs.options().follow_programs;
        // Asked on this thread: a burst of other programs must not make a burst of threads.
        if self.watches.len() >= HELD_MAX || !Follower::may_be(thread, programs) {
            return None;
        }
        let (mnt_id, programs) = (self.mnt_id, programs.clone());
        let finding =
            tokio::task::spawn_blocking(move || Follower::find(thread, mnt_id, &programs));
        finding.await.ok().flatten()
    }

    /// The journals of a follower's set, if it has read each to its head.
    async fn at_heads(&self, follower: &Follower) -> Option<Vec<Followed>> {
        let mut set = Vec::with_capacity(follower.set.len());
        for file in &follower.set {
            let asking = self.fs.within(Duration::ZERO, self.fs.followed(file.ino));
            let followed = asking.await.ok().flatten()?;
            if followed.head() != file.position {
                return None;
            }
            set.push(followed);
        }
        Some(set)
    }

    /// Whether this is the fstat to hold: that of the first file of a pass, after a whole pass in
    /// which nothing had grown, so that what stdio kept is flushed. A terminal keeps nothing.
    fn is_due(&self, thread: u32, attr: &Attr, follower: &Follower, set: &[Followed]) -> bool {
        let mut askers = self.askers();
        let has_flushed =
            follower.on_terminal || askers.has_passed(thread, set.iter().map(Followed::inode));
        if set.iter().any(|file| file.inode() == attr.inode && file.head() == attr.size) {
            askers.pass(thread, attr.inode);
        }
        has_flushed && set.first().is_some_and(|first| first.inode() == attr.inode)
    }

    /// Waits for a reason to answer.
    async fn wait(&self, thread: u32, follower: &Follower, set: &[Followed]) {
        let mut watched = self.watches.watch(thread, Until::Signalled);
        let mut census = self.fs.census();
        census.mark_unchanged();
        let longest = if follower.watches_pid { HOLD_WITH_PID } else { HOLD_MAX };
        let limit = self.limit.map_or(longest, |limit| limit.min(longest));
        let growths = select_all(set.iter().map(|file| self.fs.growth(file)));
        tokio::select! {
            biased;
            (_grown, ..) = growths => self.askers().restart(thread),
            () = watched.signalled() => {}
            // tail -F looks for files that came or went. Without a census nothing ever does.
            _changed = census.changed() => {}
            () = closed(self.closing.clone()) => {}
            () = passed(Some(limit)) => {}
        }
    }

    fn askers(&self) -> MutexGuard<'_, Askers> {
        self.askers.lock().expect("no holder panics")
    }
}

async fn closed(mut closing: watch::Receiver<bool>) {
    // A mount whose handle is gone is being taken away too.
    let _gone = closing.wait_for(|closing| *closing).await;
}

/// Waits for a time, or for ever.
async fn passed(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Half of the shortest timeout that is set: past it the kernel aborts the whole mount. 0 is none.
fn request_limit(settings: [&Path; 2]) -> Option<Duration> {
    let seconds = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let set = settings.into_iter().filter_map(seconds).filter(|seconds| *seconds > 0);
    set.min().map(|seconds| Duration::from_secs(seconds) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_shorter_than_the_kernel_waits() {
        let directory = std::env::temp_dir().join(format!("hold-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (first, second) = (directory.join("first"), directory.join("second"));
        // Case: (first, second, milliseconds)
        let cases = [
            ("0\n", "0\n", None),
            ("10\n", "0\n", Some(5_000)),
            ("10\n", "5\n", Some(2_500)),
            ("none", "0\n", None),
        ];
        for (one, two, limit) in cases {
            std::fs::write(&first, one).unwrap();
            std::fs::write(&second, two).unwrap();
            assert_eq!(request_limit([&first, &second]), limit.map(Duration::from_millis));
        }
        std::fs::remove_dir_all(&directory).unwrap();
        // Case: a kernel without the settings.
        assert_eq!(request_limit([&first, &second]), None);
    }
}
