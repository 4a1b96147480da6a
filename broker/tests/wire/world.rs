//! A broker with its port, over directories of its own.

use broker::server::Server;
use broker::{Broker, Config};
use index::SystemClock;
use index::disk::RealDisk;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{
    self, AppendRequest, ApplyRequest, JournalSpec, apply_request::Change, journal_spec,
};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

pub struct World {
    pub broker: Broker,
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    dir: TempDir,
}

impl World {
    /// A broker with nothing in it.
    pub async fn start() -> World {
        World::with(|_| ()).await
    }

    /// A broker whose file stores hold what `prepare` puts under their root.
    pub async fn with(prepare: impl FnOnce(&Path)) -> World {
        let dir = TempDir::new().unwrap();
        let files = dir.path().join("files");
        std::fs::create_dir(&files).unwrap();
        prepare(&files);
        World::again(dir, |_| ()).await
    }

    /// A broker over the directory that an earlier one left.
    pub async fn again(dir: TempDir, configure: impl FnOnce(&mut Config)) -> World {
        let files = dir.path().join("files");
        let disk = |at: PathBuf| Arc::new(RealDisk::new(at).unwrap());
        let data = disk(dir.path().join("data"));
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config {
            endpoint: server.endpoint(),
            ..Config::over(data, disk(files), Arc::new(SystemClock), 7)
        };
        configure(&mut config);
        let broker = Broker::open(config).await.unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(broker.clone(), async {
            let _ = stopped.await;
        }));
        World { broker, address, stop, served, dir }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn channel(&self) -> Channel {
        Channel::from_shared(self.url("")).unwrap().connect().await.unwrap()
    }

    pub async fn gazette(&self) -> JournalClient<Channel> {
        JournalClient::new(self.channel().await)
    }

    pub async fn courant(&self) -> CourantClient<Channel> {
        CourantClient::new(self.channel().await)
    }

    /// Creates journals by their specs.
    pub async fn apply(&self, specs: impl IntoIterator<Item = JournalSpec>) {
        let change = |spec| Change { upsert: Some(spec), ..Change::default() };
        let changes = specs.into_iter().map(change).collect();
        let mut client = self.gazette().await;
        let applied = client.apply(ApplyRequest { changes }).await.unwrap().into_inner();
        assert_eq!(applied.status(), gazette::Status::Ok);
    }

    /// The root of file stores.
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    /// Tells the port to stop, and answers when it has.
    pub async fn stop(self) -> TempDir {
        self.stop.send(()).unwrap();
        self.served.await.unwrap();
        self.broker.close().await.unwrap();
        self.dir
    }
}

/// The spec of an ordinary journal.
pub fn spec(name: &str) -> JournalSpec {
    let duration = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    JournalSpec {
        name: name.into(),
        replication: 1,
        labels: Some(Default::default()),
        fragment: Some(journal_spec::Fragment {
            length: 1 << 20,
            compression_codec: gazette::CompressionCodec::None.into(),
            stores: vec!["file:///".into()],
            refresh_interval: duration(30),
            retention: duration(0),
            flush_interval: duration(0),
            path_postfix_template: String::new(),
        }),
        ..JournalSpec::default()
    }
}

/// The messages of an append as clients send it: where, what, and that it is complete.
pub fn append_of(journal: &str, content: &[u8]) -> Vec<AppendRequest> {
    let content = bytes::Bytes::copy_from_slice(content);
    let mut messages = vec![AppendRequest { journal: journal.into(), ..Default::default() }];
    if !content.is_empty() {
        messages.push(AppendRequest { content, ..Default::default() });
    }
    messages.push(AppendRequest::default());
    messages
}

/// Appends with success.
pub async fn append(
    client: &mut JournalClient<Channel>,
    journal: &str,
    content: &[u8],
) -> gazette::AppendResponse {
    let messages = tokio_stream::iter(append_of(journal, content));
    let response = client.append(messages).await.unwrap().into_inner();
    assert_eq!(response.status(), gazette::Status::Ok);
    response
}

/// The first message of an append that asks for nothing.
pub fn first(journal: &str) -> AppendRequest {
    AppendRequest { journal: journal.into(), ..AppendRequest::default() }
}

/// An append that may be refused.
pub async fn try_append(
    client: &mut JournalClient<Channel>,
    first: AppendRequest,
    content: &[u8],
) -> Result<gazette::AppendResponse, tonic::Status> {
    let mut messages = append_of("", content);
    messages[0] = first;
    client.append(tokio_stream::iter(messages)).await.map(tonic::Response::into_inner)
}

/// Polls until `is_so`, which another task brings about.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    for _ in 0..1000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it never came to be that {what}");
}
