//! What goes on for long ends with its token, at each door.

use crate::tokens::{bearer, journal};
use crate::world::{SECRET, World, append_of, token, with_keys};
use bytes::Bytes;
use client::token::Capability;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{
    AppendEachRequest, AppendGroup, AppendRequest, AppendsRequest, Fault, NumberedAppend,
    OpenHandle,
};
use protocol::wire::gazette;
use protocol::wire::gazette::journal_client::JournalClient;
use tokio_stream::StreamExt;
use tonic::{Code, Request};

#[tokio::test]
async fn a_read_and_a_watch_end_with_their_token() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    let header = bearer(Some(&token(Capability::ALL, "", 2))).unwrap();
    let mut client =
        JournalClient::with_interceptor(world.channel().await, move |mut request: Request<()>| {
            request.metadata_mut().insert("authorization", header.clone());
            Ok(request)
        });
    let read =
        gazette::ReadRequest { journal: "logs/app".to_owned(), block: true, ..Default::default() };
    let mut read = client.read(read).await.unwrap().into_inner();
    let watch = gazette::ListRequest { watch: true, ..Default::default() };
    let mut watch = client.list(watch).await.unwrap().into_inner();
    let (mut content, mut pages) = (Vec::new(), 0);
    // Clean ends, with no error.
    while let Some(message) = read.message().await.unwrap() {
        content.extend_from_slice(&message.content);
    }
    while watch.message().await.unwrap().is_some() {
        pages += 1;
    }
    assert_eq!((content.as_slice(), pages), (b"hello".as_slice(), 2));
    world.stop().await;
}

#[tokio::test]
async fn a_session_of_appends_ends_with_its_token_and_sees_its_journals_alone() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    world.create("other/app", b"hello").await;
    let header = bearer(Some(&token(Capability::APPEND, "name:prefix=logs/", 2))).unwrap();
    let open = |handle, journal: &str| OpenHandle {
        handle,
        journal: journal.to_owned(),
        ..OpenHandle::default()
    };
    let group = |handle| AppendGroup {
        handle,
        sequence: 1,
        appends: 1,
        content: Bytes::from_static(b"line\n"),
    };
    let first = AppendsRequest {
        writer_id: Bytes::from_static(&[7; 16]),
        opens: vec![open(0, "logs/app"), open(1, "other/app")],
        groups: vec![group(0), group(1)],
    };
    let messages = tokio_stream::iter([first]).chain(tokio_stream::pending());
    let mut session = Request::new(messages);
    session.metadata_mut().insert("authorization", header);
    let mut client = CourantClient::new(world.channel().await);
    let mut answers = client.appends(session).await.unwrap().into_inner();
    let mut faults = Vec::new();
    let ended = loop {
        match answers.message().await {
            Ok(message) => faults.extend(
                message.unwrap().results.iter().map(|result| (result.handle, result.fault())),
            ),
            Err(status) => break status,
        }
    };
    faults.sort();
    assert_eq!(faults, [(0, Fault::None), (1, Fault::NotFound)]);
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended}");
    assert!(ended.message().contains("expired"), "{ended}");
    world.stop().await;
}

#[tokio::test]
async fn a_stream_of_appends_ends_with_its_token_and_sees_its_journals_alone() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    world.create("other/app", b"hello").await;
    let header = bearer(Some(&token(Capability::APPEND, "name:prefix=logs/", 2))).unwrap();
    let append = |number, journal: &str| {
        let (journal, content) = (journal.to_owned(), Bytes::from_static(b"line\n"));
        let append = AppendRequest { journal, content, commit: true, ..AppendRequest::default() };
        NumberedAppend { number, append: Some(append) }
    };
    let appends = vec![append(1, "logs/app"), append(2, "other/app")];
    let first = AppendEachRequest { appends, gives_up: Vec::new() };
    let mut each = Request::new(tokio_stream::iter([first]).chain(tokio_stream::pending()));
    each.metadata_mut().insert("authorization", header);
    let mut client = CourantClient::new(world.channel().await);
    let mut answers = client.append_each(each).await.unwrap().into_inner();
    let mut faults = Vec::new();
    let ended = loop {
        match answers.message().await {
            Ok(message) => faults.extend(
                message
                    .unwrap()
                    .answers
                    .iter()
                    .map(|a| (a.number, a.answer.clone().unwrap().fault())),
            ),
            Err(status) => break status,
        }
    };
    faults.sort();
    assert_eq!(faults, [(1, Fault::None), (2, Fault::NotFound)]);
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended}");
    assert!(ended.message().contains("expired"), "{ended}");
    world.stop().await;
}

#[tokio::test]
async fn what_waits_over_http_ends_with_its_token() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    let read = r#"{"journal":"logs/app","offset":"-1","block":true}"#;
    let watch = r#"{"watch":true}"#;
    let body = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    // Case: the request, the status, and whether there is something in the answer
    let cases = [
        ("GET", "/logs/app?offset=-1&block=true", String::new(), 401, true),
        ("POST", "/v1/journals/read", body(read), 200, false),
        ("POST", "/v1/journals/list", body(watch), 200, true),
    ];
    for (method, target, more, status, has_text) in cases {
        let token = token(Capability::ALL, "", 1);
        let more = format!("Authorization: Bearer {token}\r\n{more}");
        let answer = world.ask(method, target, &more).await;
        assert_eq!((answer.status, !answer.body.is_empty()), (status, has_text), "{answer:?}");
        if status == 401 {
            assert!(answer.body.contains("expired"), "{answer:?}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn who_waits_for_a_revision_waits_no_longer_than_his_token() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    let channel = world.channel().await;
    let first = gazette::AppendRequest {
        journal: "logs/app".to_owned(),
        min_etcd_revision: 1 << 40,
        ..Default::default()
    };
    let messages = [first, gazette::AppendRequest::default()];
    let mut append = Request::new(tokio_stream::iter(messages));
    let header = bearer(Some(&token(Capability::APPEND, "", 1))).unwrap();
    append.metadata_mut().insert("authorization", header.clone());
    let refused = JournalClient::new(channel.clone()).append(append).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    // Case: a read ends in nothing, as with Gazette
    let mut read = Request::new(gazette::ReadRequest {
        journal: "logs/app".to_owned(),
        min_etcd_revision: 1 << 40,
        ..Default::default()
    });
    let header = bearer(Some(&token(Capability::READ, "", 1))).unwrap();
    read.metadata_mut().insert("authorization", header);
    let mut read = JournalClient::new(channel).read(read).await.unwrap().into_inner();
    assert!(read.message().await.unwrap().is_none());
    world.stop().await;
}

#[tokio::test]
async fn an_append_that_is_not_complete_ends_with_its_token() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let messages = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut request = Request::new(messages);
    let header = bearer(Some(&token(Capability::APPEND, "", 1))).unwrap();
    request.metadata_mut().insert("authorization", header);
    for message in append_of("logs/app", b"never").into_iter().take(1) {
        sender.send(message).await.unwrap();
    }
    let status = JournalClient::new(world.channel().await).append(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    assert!(status.message().contains("expired"), "{status}");
    let head = world.broker.served(&journal("logs/app")).unwrap().replica().head();
    assert_eq!(head.get(), 5);
    world.stop().await;
}
