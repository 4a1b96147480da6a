//! The daemon's end of the helper: a thread that tells it one file after the other.

use super::{Place, helper};
use fs::{Filesystem, NodeId};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// This program, also after its file was replaced by a newer one.
const SELF: &str = "/proc/self/exe";

/// The pauses before a helper that ended by itself is replaced: at first and at most. Who kills it
/// again and again, as for its memory, is not made to do so all the time.
const RESTART_FIRST: Duration = Duration::from_millis(10);
const RESTART_MAX: Duration = Duration::from_secs(60);

/// The rest after each event. The helper is inside the mount while it raises one, and `umount`
/// finds the mount busy then: it has to find it free as well, however many files grow.
const PAUSE: Duration = Duration::from_millis(2);

/// An event to be raised.
#[derive(Debug)]
pub(super) struct Raise {
    /// The node whose watchers are meant; `None` for whoever watches the file's directory.
    pub node: Option<NodeId>,
    /// The file, from the root of the mount.
    pub place: PathBuf,
    /// Told when it was raised, or could not be.
    pub done: Option<oneshot::Sender<()>>,
}

/// Starts the thread. It ends with the senders of `raised`.
///
/// The helper is told of the death of the *thread* that started it (prctl(2)), so it is this one
/// that starts it, and that lives as long.
pub(super) fn start(
    fs: Arc<Filesystem>,
    place: Place,
    helper: &'static str,
    mut raised: mpsc::Receiver<Raise>,
) -> io::Result<()> {
    let raising = move || {
        // What the last helper did not come to.
        let mut left = None;
        let mut pause = RESTART_FIRST;
        while let Some(first) = left.take().or_else(|| raised.blocking_recv()) {
            let told = match Helper::start(helper, place.mnt_id) {
                Ok(mut helper) => {
                    let told = helper.raise_all(&fs, &place.path, first, &mut raised);
                    pause = pause_after(pause, helper.has_raised);
                    told
                }
                Err(error) => {
                    pause = pause_after(pause, false);
                    Err((error, first))
                }
            };
            let Err((error, mut raise)) = told else { return };
            tracing::warn!(%error, ?pause, "the process that raises inotify events is replaced");
            // Who waits for the event waits for no pause.
            raise.done = None;
            left = Some(raise);
            thread::park_timeout(pause);
        }
    };
    thread::Builder::new().name("notify".into()).spawn(raising).map(drop)
}

/// The pause before the next helper: short after one that was of any use.
fn pause_after(last: Duration, has_raised: bool) -> Duration {
    if has_raised { RESTART_FIRST } else { (last * 2).min(RESTART_MAX) }
}

struct Helper {
    child: Child,
    /// Whether it has raised any event.
    has_raised: bool,
    paths: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Helper {
    fn start(argument: &str, mnt_id: u64) -> io::Result<Helper> {
        let mut child = Command::new(SELF)
            .arg0("courant")
            .args([argument, &mnt_id.to_string()])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let paths = child.stdin.take();
        let answers = child.stdout.take().expect("it is piped");
        Ok(Helper { child, has_raised: false, paths, answers })
    }

    /// Raises this event and all that come, until nobody sends any. Gives back the one at which it
    /// failed.
    fn raise_all(
        &mut self,
        fs: &Filesystem,
        root: &Path,
        first: Raise,
        raised: &mut mpsc::Receiver<Raise>,
    ) -> Result<(), (io::Error, Raise)> {
        let mut next = Some(first);
        while let Some(raise) = next {
            fs.steer(self.child.id(), raise.node);
            let outcome = self.raise(&root.join(&raise.place));
            // The number of a helper that ends may be another's then, which must not be steered.
            fs.steer(self.child.id(), None);
            if let Err(error) = outcome {
                return Err((error, raise));
            }
            self.has_raised = true;
            // Who asked may have given up.
            raise.done.map(|done| done.send(()));
            thread::park_timeout(PAUSE);
            next = raised.blocking_recv();
        }
        Ok(())
    }

    /// Returns when the event is raised, or can't be.
    fn raise(&mut self, path: &Path) -> io::Result<()> {
        let mut message = path.as_os_str().as_bytes().to_vec();
        message.push(helper::END);
        self.paths.as_mut().expect("it goes with the helper").write_all(&message)?;
        self.answers.read_exact(&mut [0])
    }
}

impl Drop for Helper {
    /// It ends when it is told no more paths: at once, or when the mount has answered it.
    fn drop(&mut self) {
        drop(self.paths.take());
        let _ended = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_no_helper_is_of_any_use() {
        let mut pause = RESTART_FIRST;
        for _ in 0..20 {
            pause = pause_after(pause, false);
        }
        assert_eq!(pause, RESTART_MAX);
        assert_eq!(pause_after(pause, true), RESTART_FIRST);
    }
}
