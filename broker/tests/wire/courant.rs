//! Each RPC of `courant.v1`.

use crate::world::{World, append, spec};
use bytes::Bytes;
use prost::Message;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{
    AppendRequest, AppendResponse, CreateRequest, DeleteRequest, Durability, Fault, HeadsRequest,
    Known, StatusRequest, SyncRequest,
};
use protocol::wire::gazette::{JournalSpec, Label, LabelSet};
use tonic::transport::Channel;
use tonic::{Code, Status};

type Client = CourantClient<Channel>;

fn whole(content: &'static [u8]) -> AppendRequest {
    AppendRequest {
        journal: "logs/app".into(),
        content: content.into(),
        commit: true,
        ..AppendRequest::default()
    }
}

async fn send(client: &mut Client, messages: Vec<AppendRequest>) -> Result<AppendResponse, Status> {
    client.append(tokio_stream::iter(messages)).await.map(tonic::Response::into_inner)
}

async fn accept(client: &mut Client, message: AppendRequest) -> AppendResponse {
    let response = send(client, vec![message]).await.unwrap();
    assert_eq!(response.fault(), Fault::None, "{response:?}");
    response
}

async fn world() -> (World, Client) {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let client = world.courant().await;
    (world, client)
}

#[tokio::test]
async fn an_append_says_how_durable_it_is() {
    let (world, mut client) = world().await;
    let mut begin = 0;
    for (asked, reached) in [
        (Durability::Unspecified, Durability::Disk),
        (Durability::Memory, Durability::Memory),
        (Durability::Disk, Durability::Disk),
    ] {
        let request = AppendRequest { durability: asked.into(), ..whole(b"line\n") };
        let response = accept(&mut client, request).await;
        assert_eq!(response.durability(), reached);
        assert_eq!((response.begin, response.end, response.head), (begin, begin + 5, begin + 5));
        assert_ne!(response.life, 0);
        begin += 5;
    }
    // Case: content in the first message, in further ones, and in the one that commits.
    let part = |content: &'static [u8], commit| AppendRequest {
        content: content.into(),
        commit,
        ..AppendRequest::default()
    };
    let first = AppendRequest { commit: false, ..whole(b"one ") };
    let messages = vec![first, part(b"two ", false), part(b"three\n", true)];
    let response = send(&mut client, messages).await.unwrap();
    assert_eq!((response.begin, response.end), (15, 29));
    world.stop().await;
}

#[tokio::test]
async fn a_repeated_append_happens_once() {
    let (world, mut client) = world().await;
    let by = |sequence| AppendRequest {
        writer_id: Bytes::from_static(&[7; 16]),
        sequence,
        ..whole(b"line\n")
    };
    let first = accept(&mut client, by(3)).await;
    let again = accept(&mut client, by(3)).await;
    assert!(!first.repeated && again.repeated);
    assert_eq!((first.begin, first.end), (again.begin, again.end));
    assert_eq!(accept(&mut client, by(9)).await.begin, 5);
    let stale = send(&mut client, vec![by(4)]).await.unwrap();
    assert_eq!(stale.fault(), Fault::StaleSequence);
    assert_eq!(stale.head, 10);
    world.stop().await;
}

#[tokio::test]
async fn an_append_is_of_the_life_that_is_meant() {
    let (world, mut client) = world().await;
    let first = accept(&mut client, whole(b"line\n")).await;
    let meant = |life| AppendRequest { life, ..whole(b"line\n") };
    assert_eq!(accept(&mut client, meant(first.life)).await.begin, 5);
    let other = send(&mut client, vec![meant(first.life + 1)]).await.unwrap();
    assert_eq!((other.fault(), other.head, other.life), (Fault::Deleted, 10, first.life));
    world.stop().await;
}

#[tokio::test]
async fn an_append_says_how_long_it_waits_for_the_rate() {
    let (world, mut client) = world().await;
    world.apply([JournalSpec { max_append_rate: 10, ..spec("logs/slow") }]).await;
    let slow = |rate_wait_ms| AppendRequest {
        journal: "logs/slow".into(),
        content: vec![b'x'; 1000].into(),
        rate_wait_ms,
        ..whole(b"")
    };
    let refused = send(&mut client, vec![slow(1)]).await.unwrap();
    assert_eq!((refused.fault(), refused.limit, refused.head), (Fault::OverRate, 10, 0));
    assert!(refused.detail.contains("max_append_rate"), "{}", refused.detail);
    let small = AppendRequest { content: Bytes::from_static(b"x"), ..slow(1) };
    assert_eq!(accept(&mut client, small).await.begin, 0);
    world.stop().await;
}

#[tokio::test]
async fn an_append_over_the_size_of_its_journal_says_so() {
    let (world, mut client) = world().await;
    let mut small = spec("logs/small");
    let label = Label { name: "courant/max-bytes".into(), value: "7".into(), prefix: false };
    small.labels.get_or_insert_default().labels.push(label);
    world.apply([small]).await;
    let append = || AppendRequest { journal: "logs/small".into(), ..whole(b"line\n") };
    assert_eq!(accept(&mut client, append()).await.begin, 0);
    let refused = send(&mut client, vec![append()]).await.unwrap();
    assert_eq!((refused.fault(), refused.limit, refused.head), (Fault::OverSize, 7, 5));
    world.stop().await;
}

#[tokio::test]
async fn appends_on_conditions() {
    let (world, mut client) = world().await;
    let at = |offset| AppendRequest { offset: Some(offset), ..whole(b"line\n") };
    // Case: unlike Gazette's, 0 says that the journal is empty.
    accept(&mut client, at(0)).await;
    for wrong in [0, 4, 6] {
        let response = send(&mut client, vec![at(wrong)]).await.unwrap();
        assert_eq!((response.fault(), response.head), (Fault::WrongOffset, 5), "{wrong}");
    }
    accept(&mut client, at(5)).await;

    let label = Label { name: "author".into(), value: "one".into(), prefix: false };
    let author = Bytes::from(LabelSet { labels: vec![label] }.encode_to_vec());
    let union = AppendRequest { union_registers: author.clone(), ..whole(b"line\n") };
    accept(&mut client, union).await;
    let mut other = LabelSet::decode(author).unwrap();
    other.labels[0].value = "two".into();
    let selector = protocol::wire::gazette::LabelSelector {
        include: Some(other),
        exclude: Some(LabelSet::default()),
    };
    let check = Bytes::from(selector.encode_to_vec());
    let response = AppendRequest { check_registers: check, ..whole(b"line\n") };
    let response = send(&mut client, vec![response]).await.unwrap();
    assert_eq!((response.fault(), response.head), (Fault::RegisterMismatch, 15));
    world.stop().await;
}

#[tokio::test]
async fn appends_that_are_none() {
    let (world, mut client) = world().await;
    let unfinished = AppendRequest { commit: false, ..whole(b"lost\n") };
    let unnamed = AppendRequest { writer_id: Bytes::from_static(&[1]), ..whole(b"x") };
    for (messages, code) in [
        (vec![], Code::InvalidArgument),
        (vec![unfinished], Code::Aborted),
        (vec![unnamed], Code::InvalidArgument),
        (vec![whole(b"x"), whole(b"y")], Code::InvalidArgument),
    ] {
        assert_eq!(send(&mut client, messages).await.unwrap_err().code(), code);
    }
    for (journal, fault) in [("no/such", Fault::NotFound), ("logs/", Fault::Refused)] {
        let request = AppendRequest { journal: journal.into(), ..whole(b"x") };
        let response = send(&mut client, vec![request]).await.unwrap();
        assert_eq!(response.fault(), fault, "{journal}");
        assert!(!response.detail.is_empty());
    }
    assert_eq!(accept(&mut client, whole(b"first\n")).await.begin, 0);
    world.stop().await;
}

#[tokio::test]
async fn a_sync_makes_what_is_there_durable() {
    let (world, mut client) = world().await;
    let memory = AppendRequest { durability: Durability::Memory.into(), ..whole(b"line\n") };
    accept(&mut client, memory).await;
    let request = SyncRequest { journal: "logs/app".into(), offset: 5 };
    let response = client.sync(request.clone()).await.unwrap().into_inner();
    assert_eq!((response.fault(), response.synced), (Fault::None, 5));
    let missing = SyncRequest { journal: "no/such".into(), ..request };
    let response = client.sync(missing).await.unwrap().into_inner();
    assert_eq!(response.fault(), Fault::NotFound);
    world.stop().await;
}

#[tokio::test]
async fn heads_are_told_when_they_move() {
    let (world, mut client) = world().await;
    world.apply([spec("logs/bee"), spec("other/one")]).await;
    append(&mut world.gazette().await, "logs/app", b"0123").await;
    let below = HeadsRequest { prefix: "logs/".into(), ..HeadsRequest::default() };
    let response = client.heads(below.clone()).await.unwrap().into_inner();
    let names: Vec<_> = response.heads.iter().map(|head| head.journal.as_str()).collect();
    assert_eq!(names, ["logs/app", "logs/bee"]);
    let app = response.heads[0].clone();
    assert_eq!((app.first, app.head, app.synced, app.persisted), (0, 4, 4, 0));
    assert!(app.may_read && app.may_write && app.modified_us > 0 && app.mod_revision > 0);

    let named = vec!["other/one".to_owned(), "no/such".to_owned(), "logs/app".to_owned()];
    let by_name = HeadsRequest { journals: named, ..HeadsRequest::default() };
    let heads = client.heads(by_name).await.unwrap().into_inner().heads;
    assert_eq!(heads.len(), 2);
    assert_eq!(heads[0], app);

    // Case: nothing happens; a known head is old; one grows; a journal is created.
    let known = |head| Known { journal: "logs/app".into(), head, life: app.life };
    let waiting = |head, wait_ms| HeadsRequest {
        wait: true,
        known: vec![known(head)],
        census: response.census,
        wait_ms,
        ..below.clone()
    };
    let same = client.heads(waiting(4, 1)).await.unwrap().into_inner();
    assert_eq!(same, response);
    client.heads(waiting(3, 60_000)).await.unwrap();
    let (mut waiter, request) = (client.clone(), waiting(4, 60_000));
    let grown = tokio::spawn(async move { waiter.heads(request).await });
    append(&mut world.gazette().await, "logs/app", b"4").await;
    assert_eq!(grown.await.unwrap().unwrap().into_inner().heads[0].head, 5);
    let request = HeadsRequest { known: vec![], ..below.clone() };
    let request = HeadsRequest { wait: true, census: response.census, wait_ms: 60_000, ..request };
    let mut waiter = client.clone();
    let created = tokio::spawn(async move { waiter.heads(request).await });
    world.apply([spec("logs/new")]).await;
    let created = created.await.unwrap().unwrap().into_inner();
    assert_ne!(created.census, response.census);
    assert_eq!(created.heads.len(), 3);
    world.stop().await;
}

#[tokio::test]
async fn journals_are_created_by_template_and_deleted() {
    let (world, mut client) = world().await;
    let create = |journal: &str| CreateRequest { journal: journal.into() };
    let first = client.create(create("logs/new.ndjson")).await.unwrap().into_inner();
    assert!(first.created);
    let head = first.head.unwrap();
    assert_eq!((head.head, &*head.content_type), (0, "application/x-ndjson"));
    let again = client.create(create("logs/new.ndjson")).await.unwrap().into_inner();
    assert!(!again.created);
    assert_eq!(again.head.unwrap().life, head.life);
    for refused in ["logs/.new.AbC123", "logs/app/inner", "logs/", "a/.courant/b"] {
        let response = client.create(create(refused)).await.unwrap().into_inner();
        assert_eq!(response.fault(), Fault::Refused, "{refused}");
    }

    let delete = |purge, dry_run, expect_mod_revision| DeleteRequest {
        journal: "logs/new.ndjson".into(),
        purge,
        dry_run,
        expect_mod_revision,
    };
    // Case: dry runs delete nothing, nor does one that expects another revision.
    for (request, fault) in [
        (delete(true, true, 0), Fault::None),
        (delete(false, true, 0), Fault::None),
        (delete(false, false, head.mod_revision + 1000), Fault::Conflict),
        (delete(false, false, -1), Fault::Refused),
        (delete(true, false, head.mod_revision), Fault::None),
        (delete(true, false, 0), Fault::NotFound),
        (delete(true, true, 0), Fault::NotFound),
    ] {
        let response = client.delete(request.clone()).await.unwrap().into_inner();
        assert_eq!(response.fault(), fault, "{request:?} {response:?}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_purge_names_the_objects_it_takes() {
    let (world, mut client) = world().await;
    // A roll at each 1 KiB stores what is there when the journal is deleted or flushed.
    append(&mut world.gazette().await, "logs/app", &[b'x'; 100]).await;
    let keep = DeleteRequest { journal: "logs/app".into(), ..DeleteRequest::default() };
    let kept = client.delete(keep.clone()).await.unwrap().into_inner();
    assert_eq!((kept.fault(), kept.objects.len()), (Fault::None, 0), "{kept:?}");

    // Case: created again, the journal has what its store kept, and goes on behind it.
    world.apply([spec("logs/app")]).await;
    let next = accept(&mut client, whole(b"next\n")).await;
    assert_eq!(next.begin, 100);
    let purge = DeleteRequest { purge: true, dry_run: true, ..keep };
    let would = client.delete(purge.clone()).await.unwrap().into_inner();
    assert_eq!((would.objects.len(), would.bytes), (1, 100), "{would:?}");
    assert!(would.objects[0].starts_with("file:///logs/app/"), "{would:?}");
    let done = DeleteRequest { dry_run: false, ..purge };
    let done = client.delete(done).await.unwrap().into_inner();
    assert_eq!(done.objects, would.objects);
    let dir = world.stop().await;
    let object = would.objects[0].strip_prefix("file:///").unwrap();
    assert!(!dir.path().join("files").join(object).exists());
}

#[tokio::test]
async fn status_is_one_json_object() {
    let (world, mut client) = world().await;
    accept(&mut client, whole(b"line\n")).await;
    let json = client.status(StatusRequest::default()).await.unwrap().into_inner().json;
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["journals"], 1);
    assert_eq!(status["durability"], "disk");
    assert_eq!(status["endpoint"], world.url(""));
    assert_eq!(status["bytes"]["unpersisted"], 5);
    // The append was synced, and nothing is stored that young.
    assert!(status["oldest"]["unsynced_seconds"].is_null());
    assert!(status["oldest"]["unpersisted_seconds"].as_f64().is_some_and(|age| age >= 0.0));
    assert_eq!(status["attention"]["count"], 0);

    let of = |journal: &str| StatusRequest { journal: journal.into() };
    let json = client.status(of("logs/app")).await.unwrap().into_inner().json;
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["journal"], "logs/app");
    assert_eq!((&status["head"], &status["local_bytes"]), (&5.into(), &5.into()));
    assert_eq!(status["lost"], serde_json::json!([]));
    let missing = client.status(of("logs/none")).await.expect_err("there is no such journal");
    assert_eq!(missing.code(), tonic::Code::NotFound);
    world.stop().await;
}
