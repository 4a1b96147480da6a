//! Flow control (gazette-spec 2.8): a slow client holds nobody up, a journal's rate slows its
//! writers down and kills none, and who asks for a least rate gets it.

use crate::world::{World, append, first, spec, try_append, until};
use protocol::wire::gazette::{AppendRequest, JournalSpec, Status};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

fn piece(content: &'static [u8]) -> AppendRequest {
    AppendRequest { content: content.into(), ..AppendRequest::default() }
}

#[tokio::test]
async fn a_slow_appender_holds_nobody_up() {
    let world = World::start().await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    let (send, messages) = mpsc::channel(4);
    let mut slow = world.gazette().await;
    let slow = tokio::spawn(async move { slow.append(ReceiverStream::new(messages)).await });
    send.send(first("a/journal")).await.unwrap();
    send.send(piece(b"slow ")).await.unwrap();
    until("its first piece is staged", || async { world.broker.staged().0 > 0 }).await;
    // Others go on while it is under way, and it is whole when it ends.
    for _ in 0..3 {
        append(&mut client, "a/journal", b"fast ").await;
    }
    send.send(piece(b"and whole")).await.unwrap();
    send.send(AppendRequest::default()).await.unwrap();
    drop(send);
    let commit = slow.await.unwrap().unwrap().into_inner().commit.unwrap();
    assert_eq!((commit.begin, commit.end), (15, 29));
    world.stop().await;
}

#[tokio::test]
async fn a_journals_rate_delays_pieces_and_kills_no_writer() {
    let world = World::start().await;
    let limited = JournalSpec { max_append_rate: 1000, ..spec("a/slow") };
    world.apply([limited, spec("a/journal")]).await;
    // Case: a least rate above the journal's: what waits for us is not the client's fault.
    let world = World::again(world.stop().await, |config| config.append_rate_min = 1 << 20).await;
    let mut client = world.gazette().await;
    // A second's worth is there at first.
    let at_first = try_append(&mut client, first("a/slow"), &[b'x'; 900]).await.unwrap();
    assert_eq!((at_first.status(), at_first.delayed_chunks), (Status::Ok, 0));
    let pieces = [first("a/slow"), piece(&[b'x'; 500]), piece(&[b'x'; 700]), piece(b"")];
    let delayed = client.append(tokio_stream::iter(pieces)).await.unwrap().into_inner();
    assert_eq!((delayed.status(), delayed.total_chunks), (Status::Ok, 3));
    assert!(delayed.delayed_chunks >= 1, "{delayed:?}");
    let other = append(&mut client, "a/journal", &[b'x'; 5000]).await;
    assert_eq!(other.delayed_chunks, 0);
    world.stop().await;
}

#[tokio::test]
async fn the_brokers_rate_is_for_every_journal() {
    let dir = World::start().await.stop().await;
    let world = World::again(dir, |config| config.append_rate_max = 1000).await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    append(&mut client, "a/journal", &[b'x'; 900]).await;
    assert_eq!(append(&mut client, "a/journal", &[b'x'; 500]).await.delayed_chunks, 1);
    world.stop().await;
}

#[tokio::test]
async fn a_client_below_the_least_rate_is_cut() {
    let dir = World::start().await.stop().await;
    let world = World::again(dir, |config| config.append_rate_min = 1 << 20).await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    let (send, messages) = mpsc::channel(4);
    send.send(first("a/journal")).await.unwrap();
    send.send(piece(b"x")).await.unwrap();
    let error = client.append(ReceiverStream::new(messages)).await.unwrap_err();
    assert_eq!(error.code(), Code::Unknown, "{error:?}");
    let text = "append stream: the append's content comes slower than the least rate";
    assert!(error.message().starts_with(text), "{error:?}");
    drop(send);
    // Nothing of it happened.
    assert_eq!(append(&mut client, "a/journal", b"y").await.commit.unwrap().begin, 0);
    world.stop().await;
}
