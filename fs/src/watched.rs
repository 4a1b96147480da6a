//! What programs watch by inotify(7): how far a watched file grew, and where the mount finds it.
//!
//! The kernel raises events for calls on its own inodes only. What comes from elsewhere is raised
//! by a process that sets a file's mtime through the mount; here is what it has to know.

use crate::nodes::{Role, Side, View};
use crate::shown::Shown;
use crate::{Error, Filesystem, NodeId, Wait, names};
use client::Stat;
use protocol::{Life, Offset};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// What is behind a node that a program watches.
#[derive(Debug, Clone)]
pub enum Watched {
    File(WatchedFile),
    Directory(WatchedDirectory),
}

/// A journal, watched through one of its nodes.
#[derive(Debug, Clone)]
pub struct WatchedFile {
    shown: Arc<Shown>,
    view: View,
    /// How far whoever watches has been told of it.
    told: Offset,
}

/// A directory: those who watch it hear of the files that lie right in it.
#[derive(Debug, Clone)]
pub struct WatchedDirectory {
    view: View,
    path: String,
    /// The journals that it held when it was looked at last; `None` before the first look.
    heads: Option<BTreeMap<Life, Offset>>,
}

/// The one thread whose look-ups find a given node.
#[derive(Debug, Default)]
pub(crate) struct Steered(Mutex<Option<(u32, Life, Side)>>);

impl Steered {
    /// Which node of the journal the thread is to find, if it was said.
    pub(crate) fn side(&self, thread: u32, life: Life) -> Option<Side> {
        let steered = *self.0.lock().expect("no holder panics");
        steered.filter(|it| (it.0, it.1) == (thread, life)).map(|(_, _, side)| side)
    }
}

impl Filesystem {
    /// What a node that the kernel knows stands for. `None` for what never grows.
    pub fn watched(self: &Arc<Self>, node: NodeId) -> Wait<Option<Watched>> {
        let fs = self.clone();
        Box::pin(async move {
            Ok(match fs.role(&*fs.node(node)?).await? {
                Role::Journal(shown, side) => {
                    let told = shown.head_shown();
                    Some(Watched::File(WatchedFile { shown, view: view(side), told }))
                }
                Role::Directory(view, path) => {
                    Some(Watched::Directory(WatchedDirectory { view, path, heads: None }))
                }
                Role::Placeholder(..)
                | Role::Control
                | Role::Status
                | Role::About(..)
                | Role::Fragment(..)
                | Role::Spec(_) => None,
            })
        })
    }

    /// Waits until the journal is longer than was told, and tells that. `Stale` when its life is
    /// over.
    pub fn growth_of_watched(self: &Arc<Self>, mut file: WatchedFile) -> Wait<WatchedFile> {
        let fs = self.clone();
        Box::pin(async move {
            fs.grown(&file.shown, file.told).await?;
            file.told = fs.stat(&file.shown).await?.head;
            Ok(file)
        })
    }

    /// Where the file is, from the root of the mount. `None` where no file name stands for it.
    pub fn place_of_watched(self: &Arc<Self>, file: &WatchedFile) -> Wait<Option<PathBuf>> {
        let (fs, file) = (self.clone(), file.clone());
        Box::pin(async move { fs.place(file.view, file.shown.journal().as_str()).await })
    }

    /// Where the files of the directory are that grew since it was looked at last, and what to look
    /// at next time. The first look finds none.
    pub fn growth_in_watched(
        self: &Arc<Self>,
        directory: WatchedDirectory,
    ) -> Wait<(Vec<PathBuf>, WatchedDirectory)> {
        let fs = self.clone();
        Box::pin(async move {
            let journals = fs.journals_in(&directory.path).await?;
            let heads = journals.iter().map(|stat| (stat.life, stat.head)).collect();
            let mut grown = Vec::new();
            for stat in &journals {
                if directory.has_grown(stat)
                    && let Some(place) = fs.place(directory.view, stat.journal.as_str()).await?
                {
                    grown.push(place);
                }
            }
            Ok((grown, WatchedDirectory { heads: Some(heads), ..directory }))
        })
    }

    /// The journals right in a directory, with their heads.
    async fn journals_in(&self, path: &str) -> Result<Vec<Stat>, Error> {
        let below = self.full_below(path);
        let mut journals = self.journals_below(path).await?;
        journals.retain(|stat| names::is_right_in(stat.journal.as_str(), &below));
        Ok(journals)
    }

    pub(crate) async fn place(&self, view: View, journal: &str) -> Result<Option<PathBuf>, Error> {
        let Some(name) = journal.strip_prefix(&self.options.prefix) else { return Ok(None) };
        let mut place: PathBuf =
            view.name().map(|view| [names::CONTROL, view].iter().collect()).unwrap_or_default();
        for component in name.split('/') {
            let Some(file) = names::decode(component) else { return Ok(None) };
            place.push(std::ffi::OsString::from_vec(file));
        }
        if self.is_directory(name, true).await? {
            place.push(names::OUTER);
        }
        Ok(Some(place))
    }

    /// Until the next call for this thread, its look-ups find this very node of a journal, since an
    /// event is raised on one node only; with `None` whichever fits.
    pub fn steer(&self, thread: u32, node: Option<NodeId>) {
        let role = node.and_then(|node| self.nodes.get(node)).map(|node| node.role());
        let steered = match role {
            Some(Role::Journal(shown, side)) => Some((thread, shown.life(), side)),
            _ => None,
        };
        *self.steered.0.lock().expect("no holder panics") = steered;
    }
}

impl WatchedDirectory {
    /// Whether a journal is longer than at the last look, or was not there.
    fn has_grown(&self, stat: &Stat) -> bool {
        let Some(heads) = &self.heads else { return false };
        heads.get(&stat.life).copied().unwrap_or(Offset::ZERO) < stat.head
    }
}

fn view(side: Side) -> View {
    match side {
        Side::Passthrough | Side::Direct => View::Plain,
        Side::Follow => View::Follow,
        Side::Lines => View::Lines,
        Side::Whole => View::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::double::Double;
    use crate::{Caller, Options};
    use client::{Append, Journals};
    use std::path::Path;
    use std::time::SystemTime;

    async fn mounted(mirrors: &Path) -> (Arc<Double>, Arc<Filesystem>) {
        let double = Arc::new(Double::with_mirrors(mirrors.to_path_buf()));
        let options = Options::new([1; 16], SystemTime::UNIX_EPOCH);
        let fs = Filesystem::new(double.clone(), Options { prefix: "try/".into(), ..options });
        append(&double, "try/d/a%20log").await;
        (double, fs)
    }

    async fn append(double: &Double, journal: &str) {
        let journal = journal.parse().unwrap();
        double.create(&journal).await.unwrap();
        double.append(Append::new(journal, bytes::Bytes::from_static(b"line\n"))).await.unwrap();
    }

    async fn node(fs: &Arc<Filesystem>, path: &[&[u8]], thread: u32) -> NodeId {
        let mut node = NodeId::ROOT;
        for name in path {
            node = fs.lookup(node, name, Caller { thread }).await.unwrap().node;
        }
        node
    }

    #[tokio::test]
    async fn a_steered_thread_finds_the_node_that_is_watched() {
        let ground = tempfile::tempdir().unwrap();
        let (_double, fs) = mounted(ground.path()).await;
        let path: [&[u8]; 2] = [b"d", b"a log"];
        let passthrough = node(&fs, &path, 7).await;
        // The journal is not read by the kernel any more, and is still watched as one that was.
        fs.stop_passthrough();
        let direct = node(&fs, &path, 7).await;
        assert_ne!(passthrough, direct);
        for (watched, expected) in
            [(Some(passthrough), passthrough), (Some(direct), direct), (None, direct)]
        {
            fs.steer(7, watched);
            assert_eq!(node(&fs, &path, 7).await, expected, "{watched:?}");
            assert_eq!(node(&fs, &path, 8).await, direct, "another thread finds what fits");
        }
    }

    #[tokio::test]
    async fn a_file_tells_what_was_not_shown_and_a_directory_what_came_since() {
        let ground = tempfile::tempdir().unwrap();
        let (double, fs) = mounted(ground.path()).await;
        let file = node(&fs, &[b".courant", b"follow", b"d", b"a log"], 7).await;
        let Some(Watched::File(file)) = fs.watched(file).await.unwrap() else { panic!("a file") };
        assert_eq!(file.told.get(), 5);
        append(&double, "try/d/a%20log").await;
        let file = fs.growth_of_watched(file).await.unwrap();
        assert_eq!(file.told.get(), 10);
        let place = fs.place_of_watched(&file).await.unwrap();
        assert_eq!(place.as_deref(), Some(Path::new(".courant/follow/d/a log")));

        let directory = node(&fs, &[b"d"], 7).await;
        let Some(Watched::Directory(directory)) = fs.watched(directory).await.unwrap() else {
            panic!("a directory")
        };
        let (grown, directory) = fs.growth_in_watched(directory).await.unwrap();
        assert!(grown.is_empty(), "{grown:?}");
        // Case: one that grew, one that is new, one that lies deeper.
        for journal in ["try/d/a%20log", "try/d/new", "try/d/e/deep"] {
            append(&double, journal).await;
        }
        let (grown, directory) = fs.growth_in_watched(directory).await.unwrap();
        assert_eq!(grown, [Path::new("d/a log"), Path::new("d/new")]);
        assert!(fs.growth_in_watched(directory).await.unwrap().0.is_empty());
    }
}
