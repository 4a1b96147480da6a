//! A port that is a unix socket.

use crate::http;
use crate::world::{SECRET, World, token, with_keys};
use broker::server::Settings;
use bytes::Bytes;
use client::token::Capability;
use client::{Append, Connect, Error, Journals, Remote};
use protocol::Journal;
use tempfile::TempDir;
use tokio::net::UnixStream;

#[tokio::test]
async fn both_protocols_are_spoken_over_a_socket() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("socket");
    let world = World::at(&format!("unix://{}", path.display()), Settings::default()).await;
    world.create("logs/app", b"hello").await;
    let journal: Journal = "logs/app".parse().unwrap();
    // Case: the URL with and without a host
    for url in [world.url.clone(), format!("unix://{}", path.display())] {
        let remote = Remote::new(&url).unwrap();
        remote.append(Append::new(journal.clone(), Bytes::from("!"))).await.unwrap();
    }
    let stream = UnixStream::connect(&path).await.unwrap();
    let answer = http::ask(stream, "GET", "/logs/app", "").await;
    assert_eq!((answer.status, answer.body.as_str()), (206, "hello!!"));
    assert!(answer.header("location").starts_with("unix://localhost/"), "{answer:?}");
    world.stop().await;
    assert!(!path.exists(), "the file goes with the port");
    let gone = Remote::new(&format!("unix://{}", path.display())).unwrap().probe().await;
    assert!(matches!(gone, Err(Error::Unreachable(_))), "{gone:?}");
}

#[tokio::test]
async fn tokens_are_asked_for_over_a_socket_too() {
    let dir = TempDir::new().unwrap();
    let url = format!("unix://{}", dir.path().join("socket").display());
    let world = World::at(&url, with_keys(SECRET)).await;
    let refused = Remote::new(&url).unwrap().probe().await;
    assert!(matches!(refused, Err(Error::Unauthorized(_))), "{refused:?}");
    let connect = Connect::new(&url).unwrap().with_token(&token(Capability::LIST, "", 60));
    Remote::connect(&connect.unwrap()).unwrap().probe().await.unwrap();
    world.stop().await;
}
