//! A thousand readers that wait at a head are a thousand parked futures, and no thread more.

#![allow(clippy::unwrap_used)]

use broker::server::Server;
use broker::{Broker, Config};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use index::SystemClock;
use protocol::wire::gazette::apply_request::Change;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{AppendRequest, ApplyRequest, ReadRequest};
use std::sync::Arc;
use tokio::sync::oneshot;

const READERS: usize = 1000;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

// The only test of its process, so that no other one starts threads meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_blocked_readers_add_no_thread() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let config = Config::at(dir.path(), Arc::new(SystemClock), 7).unwrap();
    let config = Config { endpoint: server.endpoint(), ..config };
    let broker = Broker::open(config).await.unwrap();
    let url = server.endpoint();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(server.serve(broker.clone(), async {
        let _ = stopped.await;
    }));
    let mut client = JournalClient::connect(url).await.unwrap();
    let name = protocol::Journal::new("logs/app").unwrap();
    let spec = broker.key_space().propose(&name).unwrap().into();
    let changes = vec![Change { upsert: Some(spec), ..Change::default() }];
    client.apply(ApplyRequest { changes }).await.unwrap();
    let journal = name.to_string();
    let append = |content: &'static [u8]| {
        let first = AppendRequest { journal: journal.clone(), ..AppendRequest::default() };
        let content = AppendRequest { content: content.into(), ..AppendRequest::default() };
        tokio_stream::iter([first, content, AppendRequest::default()])
    };
    client.append(append(b"first\n")).await.unwrap();

    let before = threads();
    let request = ReadRequest { journal: journal.clone(), block: true, ..ReadRequest::default() };
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = client.read(request.clone()).await.unwrap().into_inner();
        assert!(reader.message().await.unwrap().unwrap().fragment.is_some());
        assert_eq!(reader.message().await.unwrap().unwrap().content, "first\n");
        readers.push(reader);
    }
    assert_eq!(threads(), before);

    client.append(append(b"second\n")).await.unwrap();
    let second = |mut reader: tonic::Streaming<_>| async move {
        let metadata: Option<protocol::wire::gazette::ReadResponse> =
            reader.message().await.unwrap();
        assert!(metadata.unwrap().fragment.is_some());
        reader.message().await.unwrap().unwrap().content
    };
    let mut answered: FuturesUnordered<_> = readers.into_iter().map(second).collect();
    let mut count = 0;
    while let Some(content) = answered.next().await {
        assert_eq!(content, "second\n");
        count += 1;
    }
    assert_eq!(count, READERS);
    stop.send(()).unwrap();
    served.await.unwrap();
    broker.close().await.unwrap();
}
