//! Clients that behave, over each door: the mount, another mount, gRPC, HTTP, and one that follows.

use bytes::Bytes;
use client::{Append, Appender, Piece, Reader, Remote};
use protocol::Journal;
use protocol::request::ReadFrom;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tests::model::History;
use tests::patience::until;
use tests::shell::{self, cat};
use tests::world::{self, Second, Up};
use tests::writer::{Manner, Writer};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Operations by which one is seen to go on.
const ENOUGH: u64 = 50;

const PATIENCE: Duration = Duration::from_secs(60);

const LINE: &[u8] = b"one of a client that behaves\n";

/// See the module. Each of its clients fails the test with its first failure.
pub struct Good {
    /// On the broker's own mount, on another, and by HTTP.
    writers: Vec<Writer>,
    second: Second,
    appended: Arc<AtomicU64>,
    /// Bytes that one who waits at the head was sent.
    followed: Arc<AtomicU64>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

fn journal(name: &str) -> Journal {
    name.parse().unwrap()
}

impl Good {
    #[track_caller]
    pub fn start(up: &Up, runtime: &Runtime) -> Good {
        let second = up.second();
        let spec = |name| world::spec(name, 1 << 20, "ZSTANDARD", "");
        let specs: Vec<String> = ["grpc", "http", "log", "more", "slow"].map(spec).into();
        world::apply_specs(up, &specs.concat());
        let manner = Manner { pause: Duration::from_millis(2), ..Manner::default() };
        let writers = vec![
            Writer::start(&up.file("log"), 1, 1, manner),
            Writer::start(&second.file("log"), 2, 1, manner),
            Writer::over_http(&up.address(), "/local/http", 3, 1),
        ];
        let (stop, stopped) = watch::channel(false);
        let (appended, followed) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let tasks = vec![
            runtime.spawn(append(up.url(), appended.clone(), stopped)),
            runtime.spawn(follow(up.url(), followed.clone())),
        ];
        Good { writers, second, appended, followed, stop, tasks }
    }

    /// Waits until each of them has done as much again.
    #[track_caller]
    pub fn go_on(&mut self) {
        let before = self.done();
        until("those that behave go on", || {
            assert!(self.writers.iter_mut().all(Writer::lives), "{:?}", self.last_words());
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "one over gRPC failed");
            self.done().iter().zip(&before).all(|(now, before)| *now >= before + ENOUGH)
        });
        // Case: a file is read, listed and looked up on both mounts
        let read = "ls -l > /dev/null && tail -c 100 \"$1\" | wc -c";
        for log in [self.second.file("log"), self.second.file("http")] {
            let log = log.to_str().unwrap();
            assert_eq!(shell::bash(self.second.mount().path(), read, &[log]).ok().text(), "100");
        }
    }

    fn done(&self) -> Vec<u64> {
        let written = self.writers.iter().map(Writer::unanswered);
        let appended = self.appended.load(Ordering::Relaxed);
        let followed = self.followed.load(Ordering::Relaxed) / LINE.len() as u64;
        written.chain([appended, followed]).collect()
    }

    fn last_words(&self) -> Vec<String> {
        self.writers.iter().map(Writer::last_word).collect()
    }

    /// Ends them; all that they were told is there, once.
    #[track_caller]
    pub fn end(self, up: &Up) {
        let mut histories = [History::new(), History::new()];
        for (writer, history) in self.writers.into_iter().zip([0, 0, 1]) {
            writer.end(&mut histories[history]);
        }
        for (name, history) in ["log", "http"].into_iter().zip(&histories) {
            assert!(history.acknowledgements() > 0);
            for file in [up.file(name), self.second.file(name)] {
                history.check(&cat(&file)).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            }
        }
        self.stop.send_replace(true);
        let appended = || self.appended.load(Ordering::Relaxed);
        until("it has stopped", || self.tasks[0].is_finished());
        assert_eq!(cat(&up.file("grpc")), LINE.repeat(usize::try_from(appended()).unwrap()));
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Appends one after the other, and counts.
async fn append(url: String, appended: Arc<AtomicU64>, stopped: watch::Receiver<bool>) {
    let appender = Appender::new(Arc::new(Remote::new(&url).unwrap()), [1; 16], PATIENCE);
    while !*stopped.borrow() {
        let line = Append::new(journal("local/grpc"), Bytes::from_static(LINE));
        appender.append(line).await.unwrap();
        appended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads what is appended so, waiting for more.
async fn follow(url: String, followed: Arc<AtomicU64>) {
    let remote = Arc::new(Remote::new(&url).unwrap());
    let begin = ReadFrom::At(protocol::Offset::ZERO);
    let mut reader = Reader::new(remote, journal("local/grpc"), begin, 1).blocking(true);
    while let Some(Piece::Content(_, content)) = reader.next().await.unwrap() {
        followed.fetch_add(content.len() as u64, Ordering::Relaxed);
    }
}

/// One that connects at this moment, and comes again where it is told that the broker is busy.
pub async fn one_more(url: &str) {
    append_once(Remote::new(url).unwrap()).await;
}

/// Appends over a connection of its own.
pub async fn append_once(remote: Remote) {
    let appender = Appender::new(Arc::new(remote), [2; 16], PATIENCE);
    let line = Append::new(journal("local/more"), Bytes::from_static(LINE));
    appender.append(line).await.unwrap();
}
