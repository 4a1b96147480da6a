//! A broker behind a port with settings, over a directory of its own.

use crate::http::{self, Answer};
use broker::server::{Server, Settings};
use broker::{Broker, Config};
use bytes::Bytes;
use client::token::{Capability, Claims, Keys};
use client::{Append, Connect, Journals, Remote};
use index::clock::ManualClock;
use index::disk::RealDisk;
use protocol::request::{ApplyRequest, Change, Expect};
use protocol::wire::gazette;
use protocol::{JournalSpec, LabelSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// The time at which every broker here lives.
pub const NOW: u64 = 1_750_000_000;

pub const SECRET: &str = "c2VjcmV0";

pub struct World {
    pub broker: Broker,
    pub url: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    dir: TempDir,
}

/// A port that asks for tokens.
pub fn with_keys(keys: &str) -> Settings {
    Settings { keys: Some(keys.parse().unwrap()), ..Settings::default() }
}

/// A token for journals of a selector that lasts for `ttl` seconds.
pub fn token(capability: Capability, selector: &str, ttl: u64) -> String {
    let keys: Keys = SECRET.parse().unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    let selector = selector.parse().unwrap();
    keys.sign(&Claims { capability, selector, expires: now + Duration::from_secs(ttl) }, now)
}

impl World {
    /// A broker at a free port of TCP.
    pub async fn start(settings: Settings) -> World {
        World::at("127.0.0.1:0", settings).await
    }

    pub async fn at(address: &str, settings: Settings) -> World {
        World::open(address, settings, |_| ()).await
    }

    /// A broker at a free port, with another configuration.
    pub async fn configured(settings: Settings, configure: impl FnOnce(&mut Config)) -> World {
        World::open("127.0.0.1:0", settings, configure).await
    }

    async fn open(address: &str, settings: Settings, configure: impl FnOnce(&mut Config)) -> World {
        let dir = TempDir::new().unwrap();
        let disk = |name: &str| Arc::new(RealDisk::new(dir.path().join(name)).unwrap());
        let server = Server::bind(address).await.unwrap().with(settings);
        let url = server.endpoint();
        let clock = Arc::new(ManualClock::at_us(NOW * 1_000_000));
        let mut config =
            Config { endpoint: url.clone(), ..Config::over(disk("data"), disk("files"), clock, 7) };
        configure(&mut config);
        let broker = Broker::open(config).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(broker.clone(), async {
            let _ = stopped.await;
        }));
        World { broker, url, stop, served, dir }
    }

    /// Makes a journal with content, as somebody in the process who needs no token.
    pub async fn create(&self, name: &str, content: &'static [u8]) {
        self.create_labelled(name, LabelSet::default(), content).await;
    }

    pub async fn create_labelled(&self, name: &str, labels: LabelSet, content: &'static [u8]) {
        self.create_with(name, |spec| spec.labels = labels).await;
        if !content.is_empty() {
            self.append(name, content).await;
        }
    }

    /// Makes a journal by the template's spec, edited.
    pub async fn create_with(&self, name: &str, edit: impl FnOnce(&mut JournalSpec)) {
        let mut spec = self.broker.key_space().propose(&name.parse().unwrap()).unwrap();
        edit(&mut spec);
        let change = cluster::Change::Upsert { spec, expect: cluster::Expect::Absent };
        self.broker.apply(vec![change]).await.unwrap();
    }

    /// The root of file stores.
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    /// Appends as somebody in the process.
    pub async fn append(&self, name: &str, content: &'static [u8]) {
        let append = Append::new(name.parse().unwrap(), Bytes::from_static(content));
        Journals::append(&self.broker, append).await.unwrap();
    }

    pub fn connect(&self) -> Connect {
        Connect::new(&self.url).unwrap()
    }

    /// A client that shows a token.
    pub fn remote(&self, token: &str) -> Remote {
        Remote::connect(&self.connect().with_token(token).unwrap()).unwrap()
    }

    /// A connection for requests without anything around them.
    pub async fn channel(&self) -> Channel {
        Endpoint::from_shared(self.url.clone()).unwrap().connect().await.unwrap()
    }

    pub async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.url.split("://").nth(1).unwrap()).await.unwrap()
    }

    /// Asks over HTTP/1.1. `more` is what [`http::ask`] says.
    pub async fn ask(&self, method: &str, target: &str, more: &str) -> Answer {
        http::ask(self.tcp().await, method, target, more).await
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
        self.broker.close().await.unwrap();
    }
}

/// A request that puts the specs of two journals.
pub fn put(world: &World, names: [&str; 2]) -> ApplyRequest {
    let changes = names.map(|name| {
        let spec = world.broker.key_space().propose(&name.parse().unwrap()).unwrap();
        Change::Upsert { spec: Box::new(spec), expect: Expect::Any }
    });
    ApplyRequest { changes: changes.into() }
}

/// The messages of an append.
pub fn append_of(journal: &str, content: &[u8]) -> Vec<gazette::AppendRequest> {
    let content = Bytes::copy_from_slice(content);
    vec![
        gazette::AppendRequest { journal: journal.into(), ..Default::default() },
        gazette::AppendRequest { content, ..Default::default() },
        gazette::AppendRequest::default(),
    ]
}

/// Polls until `is_so`, which another task brings about.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..1000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came to be that {what}");
}
