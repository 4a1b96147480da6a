//! A store that goes on past the head: appends stop, and `reset-head` goes on behind what is there.

use crate::world::{World, append, first, spec, try_append, until};
use protocol::wire::courant::StatusRequest;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{
    AppendRequest, JournalSpec, ReadRequest, ReadResponse, Status, append_request::Suspend,
};
use serde_json::{Value, json};
use tonic::transport::Channel;

/// The names of "abcdefghij" at 14..24, of "0123456789" at 4..14 and of "four" at 4..8, as another
/// broker puts them.
const FAR: &str = "000000000000000e-0000000000000018-d68c19a0a345b7eab78d5e11e991c026ec60db63.raw";
const NEAR: &str = "0000000000000004-000000000000000e-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw";
const PART: &str = "0000000000000004-0000000000000008-9f8f7eec5dea5ac43738721939c120318cbff1df.raw";

/// A journal of four bytes, with a store that is listed each second.
async fn begin() -> (World, JournalClient<Channel>) {
    let world = World::start().await;
    let often = |name| {
        let mut spec = spec(name);
        let fragment = spec.fragment.as_mut().unwrap();
        fragment.refresh_interval = Some(prost_types::Duration { seconds: 1, nanos: 0 });
        spec
    };
    let fixed = JournalSpec { flags: 1, ..often("a/fixed") };
    world.apply([often("a/journal"), fixed]).await;
    let mut client = world.gazette().await;
    append(&mut client, "a/journal", b"0123").await;
    (world, client)
}

fn put(world: &World, name: &str, content: &[u8]) {
    let dir = world.files().join("a/journal");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(name), content).unwrap();
}

async fn plant(world: &World, name: &str, content: &[u8]) {
    put(world, name, content);
    let served = world.broker.all_served();
    let served = served.iter().find(|served| served.journal().as_str() == "a/journal").unwrap();
    until("it is found", || async { served.second_writer().is_some() }).await;
}

async fn read(client: &mut JournalClient<Channel>, request: ReadRequest) -> Vec<ReadResponse> {
    let mut stream = client.read(request).await.unwrap().into_inner();
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        messages.push(message);
    }
    messages
}

#[tokio::test]
async fn a_head_is_reset_behind_a_second_writer() {
    let (world, mut client) = begin().await;
    plant(&world, FAR, b"abcdefghij").await;
    let append_at = |offset| AppendRequest { offset, ..first("a/journal") };
    // Case: offset, content, status
    for (offset, content, expected) in [
        (0, &b"x"[..], Status::IndexHasGreaterOffset),
        (0, b"", Status::IndexHasGreaterOffset),
        (4, b"x", Status::WrongAppendOffset),
        (25, b"", Status::WrongAppendOffset),
    ] {
        let found = try_append(&mut client, append_at(offset), content).await.unwrap();
        assert_eq!(found.status(), expected, "{offset}");
    }
    // What gazctl does: the head by a read, then an append of nothing that names it.
    let head = ReadRequest {
        journal: "a/journal".into(),
        offset: -1,
        metadata_only: true,
        ..ReadRequest::default()
    };
    let head = read(&mut client, head).await.remove(0);
    assert_eq!(head.status(), Status::OffsetNotYetAvailable);
    assert_eq!((head.offset, head.write_head), (24, 24));
    let reset = AppendRequest { suspend: Suspend::Keep.into(), ..append_at(head.offset) };
    let commit = try_append(&mut client, reset, b"").await.unwrap().commit.unwrap();
    assert_eq!((commit.begin, commit.end), (24, 24));
    let commit = append(&mut client, "a/journal", b"more").await.commit.unwrap();
    assert_eq!((commit.begin, commit.end), (24, 28));

    // Nothing is lost, and nothing has two contents: what nobody has is passed at once.
    for _ in 0..2 {
        let all = ReadRequest { journal: "a/journal".into(), ..ReadRequest::default() };
        let messages = read(&mut client, all).await;
        let content: Vec<u8> = messages.iter().flat_map(|one| one.content.to_vec()).collect();
        assert_eq!(content, b"0123abcdefghijmore");
        let jumps = messages.iter().filter(|one| one.content.is_empty());
        let offsets: Vec<_> = jumps.map(|one| one.offset).collect();
        assert_eq!(offsets, [0, 14, 24, 28]);
        // Case: again after the next listing, which finds nobody else.
        let served = world.broker.all_served();
        until("nobody else is found", || async {
            served.iter().all(|served| served.second_writer().is_none())
        })
        .await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    }
    world.stop().await;
}

#[tokio::test]
async fn status_counts_as_lost_what_no_store_has_since() {
    let (world, mut client) = begin().await;
    plant(&world, FAR, b"abcdefghij").await;
    let reset = AppendRequest { offset: 24, ..first("a/journal") };
    let reset = try_append(&mut client, reset, b"").await.unwrap();
    assert_eq!(reset.status(), Status::Ok);
    let attention = async || {
        let status = world.courant().await.status(StatusRequest::default()).await.unwrap();
        let status: Value = serde_json::from_str(&status.into_inner().json).unwrap();
        status["attention"].clone()
    };
    let lost = |bytes: u64| {
        let journal = json!({
            "journal": "a/journal", "gaps": 1, "lost_bytes": bytes, "damaged_bytes": 0,
            "second_writer": null,
        });
        json!({ "count": 1, "journals": [journal] })
    };
    // Case: what else is stored, what the status says then
    until("10 bytes are lost", async || attention().await == lost(10)).await;
    put(&world, PART, b"four");
    until("4 of them are found", async || attention().await == lost(6)).await;
    put(&world, NEAR, b"0123456789");
    let nothing = json!({ "count": 0, "journals": [] });
    until("all are found", async || attention().await == nothing).await;
    world.stop().await;
}

#[tokio::test]
async fn a_fork_is_never_reset() {
    let (world, mut client) = begin().await;
    append(&mut client, "a/journal", b"four").await;
    plant(&world, NEAR, b"0123456789").await;
    // Case: offset. Local bytes 4..8 are acknowledged, and the store has others there.
    for offset in [0, 8, 14] {
        let request = AppendRequest { offset, ..first("a/journal") };
        let found = try_append(&mut client, request, b"").await.unwrap();
        assert_eq!(found.status(), Status::IndexHasGreaterOffset, "{offset}");
    }
    let all = ReadRequest { journal: "a/journal".into(), ..ReadRequest::default() };
    let messages = read(&mut client, all).await;
    let content: Vec<u8> = messages.iter().flat_map(|one| one.content.to_vec()).collect();
    assert_eq!(content, b"0123four");
    world.stop().await;
}

#[tokio::test]
async fn read_only_journals_do_not_mind() {
    let (world, mut client) = begin().await;
    plant(&world, FAR, b"abcdefghij").await;
    let fixed = JournalSpec { flags: 1, ..spec("a/journal") };
    let change = protocol::wire::gazette::apply_request::Change {
        expect_mod_revision: -1,
        upsert: Some(fixed),
        ..Default::default()
    };
    let request = protocol::wire::gazette::ApplyRequest { changes: vec![change] };
    assert_eq!(client.apply(request).await.unwrap().into_inner().status(), Status::Ok);
    let barrier = try_append(&mut client, first("a/journal"), b"").await.unwrap();
    assert_eq!((barrier.status(), barrier.commit.unwrap().end), (Status::Ok, 4));
    world.stop().await;
}
