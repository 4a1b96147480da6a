//! What the port does with bytes that are no request, and with requests when it stops.

use crate::world::{World, append, spec};
use protocol::wire::gazette::{AppendRequest, ReadRequest, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the broker says to some bytes before it hangs up. The client says nothing more.
async fn said(world: &World, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    // It may hang up before it has read everything.
    let _ = stream.write_all(bytes).await;
    // Noise may begin a frame that is longer than what is left of it.
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

#[tokio::test]
async fn bytes_that_are_no_request_harm_nobody() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let noise: Vec<u8> =
        (0..20_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let long_name = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000));
    let long_head =
        format!("GET /logs/app HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(70_000));
    // Case: bytes, how the answer begins
    let cases: [(&[u8], &str); 8] = [
        (b"garbage\r\n\r\n", "HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 "),
        (b"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "),
        (
            b"PUT /logs/app HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nx",
            "HTTP/1.1 400 ",
        ),
        (long_name.as_bytes(), "HTTP/1.1 431 "),
        (long_head.as_bytes(), "HTTP/1.1 431 "),
        (&[PREFACE, &noise].concat(), ""),
        (&noise, "HTTP/1.1 400 "),
    ];
    for (at, (bytes, expected)) in cases.into_iter().enumerate() {
        let answer = String::from_utf8_lossy(&said(&world, bytes).await).into_owned();
        assert!(answer.starts_with(expected), "case {at}: {answer:?}");
    }
    // Case: chunks that are none break the append off.
    let chunks =
        b"PUT /logs/app HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nlost\r\n";
    let _ = said(&world, chunks).await;
    let commit = append(&mut world.gazette().await, "logs/app", b"fine\n").await.commit.unwrap();
    assert_eq!(commit.begin, 0);
    world.stop().await;
}

#[tokio::test]
async fn a_service_that_is_none_is_unimplemented() {
    let world = World::start().await;
    let mut client = tonic::client::Grpc::new(world.channel().await);
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/consumer.Shard/List");
    let codec = tonic_prost::ProstCodec::<ReadRequest, ReadRequest>::default();
    let request = tonic::Request::new(ReadRequest::default());
    let error = client.unary(request, path, codec).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::Unimplemented);
    world.stop().await;
}

/// A later client asks so whether the broker has what it knows of.
#[tokio::test]
async fn a_method_that_is_none_is_unimplemented_though_its_stream_goes_on() {
    let world = World::start().await;
    for path in ["/courant.v1.Courant/NoSuch", "/protocol.Journal/NoSuch"] {
        let mut client = tonic::client::Grpc::new(world.channel().await);
        client.ready().await.unwrap();
        let codec = tonic_prost::ProstCodec::<AppendRequest, AppendRequest>::default();
        let path = http::uri::PathAndQuery::from_static(path);
        let messages = tonic::Request::new(tokio_stream::pending());
        let asked = client.streaming(messages, path, codec).await;
        assert_eq!(asked.unwrap_err().code(), tonic::Code::Unimplemented);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_stop_lets_an_append_in_flight_finish() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut client = world.gazette().await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let messages = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let call = tokio::spawn(async move { client.append(messages).await });
    let first = AppendRequest { journal: "logs/app".into(), ..AppendRequest::default() };
    sender.send(first).await.unwrap();
    let content = AppendRequest { content: "late\n".into(), ..AppendRequest::default() };
    sender.send(content).await.unwrap();
    // The broker has the append once a read of the same connection was answered; a barrier will do.
    append(&mut world.gazette().await, "logs/app", b"").await;
    let stopped = tokio::spawn(world.stop());
    sender.send(AppendRequest::default()).await.unwrap();
    drop(sender);
    let response = call.await.unwrap().unwrap().into_inner();
    assert_eq!((response.status(), response.commit.unwrap().end), (Status::Ok, 5));
    stopped.await.unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_silent_clients() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let silent = TcpStream::connect(world.address).await.unwrap();
    let mut half = TcpStream::connect(world.address).await.unwrap();
    half.write_all(b"PUT /logs/app HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        .await
        .unwrap();
    let idle = world.channel().await;
    world.stop().await;
    drop((silent, half, idle));
}
