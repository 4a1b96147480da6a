//! Clients that hold what they can: it is bounded, and others go on.

use crate::raw::{Raw, answer, framed};
use crate::world::{SECRET, World, append_of, until, with_keys};
use broker::Memory;
use broker::server::Settings;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{StreamExt, stream};
use protocol::wire::gazette;
use tokio::io::AsyncWriteExt;

const EXHAUSTED: &str = "8";
const UNAUTHENTICATED: &str = "16";

/// The first message of an append, and the begin of one of 4 MiB less than the limit's head.
fn begun() -> Vec<Bytes> {
    const LEN: u32 = (4 << 20) - 64;
    let mut part = BytesMut::new();
    part.put_u8(0);
    part.put_u32(LEN);
    part.resize(LEN as usize - 1024, 0x12);
    vec![framed(&append_of("logs/app", b"")[0]), part.freeze()]
}

#[tokio::test]
async fn messages_that_do_not_end_are_bounded_together() {
    let memory = Memory::of(0);
    let world = World::configured(Settings::default(), |config| config.memory = memory).await;
    world.create("logs/app", b"").await;
    // What all may hold, by connections that each hold what one may.
    let mut held = Vec::new();
    let connections = memory.messages() / (4 << 20);
    for _ in 0..connections {
        let mut raw = Raw::connect(&world).await;
        let mut other = raw.clone();
        let endless = stream::iter(begun()).chain(stream::pending());
        held.push(tokio::spawn(async move { raw.call("Append", None, endless).await }));
        // Case: a second one on the same connection, beyond what it may hold.
        let endless = stream::iter(begun()).chain(stream::pending());
        let more = tokio::spawn(async move { other.call("Append", None, endless).await });
        let refused = tokio::select! {
            biased;
            refused = more => refused,
            refused = held.last_mut().unwrap() => { held.pop(); refused }
        };
        assert_eq!(answer(refused.unwrap()).await.1, EXHAUSTED);
    }
    // Case: small appends go on, on the same connection and on others.
    let mut raw = Raw::connect(&world).await;
    let small = append_of("logs/app", b"quick");
    let small = stream::iter(small.iter().map(framed).collect::<Vec<_>>());
    assert_eq!(answer(raw.call("Append", None, small).await).await.1, "0");
    for call in held {
        call.abort();
    }
    world.stop().await;
}

#[tokio::test]
async fn a_stranger_holds_nothing() {
    let world = World::start(with_keys(SECRET)).await;
    let mut raw = Raw::connect(&world).await;
    // Case: the method, and what comes of its request.
    for method in ["List", "Read", "Apply", "Append", "ListFragments"] {
        let part = framed(&gazette::ListRequest::default()).slice(..1);
        let endless = stream::iter([part]).chain(stream::pending());
        let refused = raw.call(method, None, endless).await;
        assert_eq!(answer(refused).await.1, UNAUTHENTICATED, "{method}");
    }
    world.stop().await;
}

/// Appends over a connection of its own, in the plainest way.
async fn append_quickly(world: &World) {
    let small = append_of("logs/app", b"quick").iter().map(framed).collect::<Vec<_>>();
    let mut raw = Raw::connect(world).await;
    assert_eq!(answer(raw.call("Append", None, stream::iter(small)).await).await.1, "0");
}

#[tokio::test]
async fn ten_thousand_appends_that_never_go_on_stop_nobody() {
    const APPENDS: usize = 10_000;
    let world = World::start(Settings::default()).await;
    world.create("logs/app", b"").await;
    let raw = Raw::connect(&world).await;
    let first = append_of("logs/app", b"").remove(0);
    let mut part = append_of("logs/app", b"a part").swap_remove(1);
    part.journal.clear();
    let begun = [framed(&first), framed(&part)];
    let mut held = tokio::task::JoinSet::new();
    for _ in 0..APPENDS {
        let (mut raw, endless) =
            (raw.clone(), stream::iter(begun.clone()).chain(stream::pending()));
        held.spawn(async move { raw.call("Append", None, endless).await });
    }
    until("all are begun", async || world.broker.staged().0 == 6 * APPENDS as u64).await;
    append_quickly(&world).await;
    // Who goes away leaves nothing behind.
    held.shutdown().await;
    until("nothing is held", async || world.broker.staged() == (0, 0)).await;
    append_quickly(&world).await;
    world.stop().await;
}

/// A number that is as good as chance.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Frames of any type, flags and stream, with anything in them (RFC 9113, section 4.1).
fn garbage(mut seed: u64) -> Vec<u8> {
    let seed = &mut seed;
    let mut bytes = match next(seed) % 3 {
        0 => Vec::new(),
        _ => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
    };
    for _ in 0..next(seed) % 40 {
        let len = usize::try_from(next(seed) % 200).unwrap();
        let told = if next(seed).is_multiple_of(8) { next(seed) } else { len as u64 };
        bytes.extend_from_slice(&told.to_be_bytes()[5..]);
        bytes.push((next(seed) % 12).to_le_bytes()[0]);
        bytes.push(next(seed).to_le_bytes()[0]);
        bytes.extend_from_slice(&(next(seed) % 6).to_be_bytes()[4..]);
        bytes.extend(std::iter::repeat_with(|| next(seed).to_le_bytes()[0]).take(len));
    }
    bytes
}

#[tokio::test]
async fn garbage_ends_its_own_connection_and_no_other() {
    let world = World::start(Settings::default()).await;
    world.create("logs/app", b"").await;
    let mut other = Raw::connect(&world).await;
    let first = stream::iter([framed(&append_of("logs/app", b"")[0])]);
    let (send, rest) = tokio::sync::mpsc::channel(4);
    let rest = tokio_stream::wrappers::ReceiverStream::new(rest);
    let append = tokio::spawn(async move { other.call("Append", None, first.chain(rest)).await });
    for seed in 0..300 {
        let mut socket = world.tcp().await;
        // It may be cut off at any byte.
        let _ = socket.write_all(&garbage(seed)).await;
    }
    for message in &append_of("logs/app", b"whole")[1..] {
        send.send(framed(message)).await.unwrap();
    }
    drop(send);
    assert_eq!(answer(append.await.unwrap()).await.1, "0");
    assert_eq!(world.broker.staged(), (0, 0));
    world.stop().await;
}
