//! Suspending and resuming at every level (gazette-spec 2.9).

use crate::world::{World, append, first, spec, try_append};
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::journal_spec::suspend::Level;
use protocol::wire::gazette::{
    AppendRequest, ApplyRequest, FragmentsRequest, JournalSpec, ListRequest, ReadRequest, Status,
    append_request::Suspend, apply_request::Change, journal_spec,
};
use tonic::transport::Channel;

async fn send(client: &mut JournalClient<Channel>, suspend: Suspend, content: &[u8]) -> Status {
    let request = AppendRequest { suspend: suspend.into(), ..first("a/journal") };
    try_append(client, request, content).await.unwrap().status()
}

/// The spec of the one journal, and its revision.
async fn listed(client: &mut JournalClient<Channel>) -> (JournalSpec, i64) {
    let mut stream = client.list(ListRequest::default()).await.unwrap().into_inner();
    let mut page = stream.message().await.unwrap().unwrap();
    let journal = page.journals.remove(0);
    (journal.spec.unwrap(), journal.mod_revision)
}

async fn suspend_of(client: &mut JournalClient<Channel>) -> (Level, i64) {
    let suspend = listed(client).await.0.suspend.unwrap_or_default();
    (suspend.level(), suspend.offset)
}

async fn status_of_read(client: &mut JournalClient<Channel>) -> Status {
    let request = ReadRequest { journal: "a/journal".into(), ..ReadRequest::default() };
    let mut stream = client.read(request).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap();
    assert!(first.header.is_some());
    first.status()
}

async fn apply(client: &mut JournalClient<Channel>, spec: JournalSpec, expect: i64) -> Status {
    let change = Change { upsert: Some(spec), expect_mod_revision: expect, ..Change::default() };
    client.apply(ApplyRequest { changes: vec![change] }).await.unwrap().into_inner().status()
}

#[tokio::test]
async fn a_journal_with_content_is_suspended_in_part() {
    let world = World::start().await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    append(&mut client, "a/journal", b"0123").await;
    // Case: what is local only is not flushed, so nothing happens.
    assert_eq!(send(&mut client, Suspend::IfFlushed, b"").await, Status::Ok);
    assert_eq!(suspend_of(&mut client).await, (Level::None, 0));
    assert_eq!(send(&mut client, Suspend::Now, b"").await, Status::Suspended);
    assert_eq!(suspend_of(&mut client).await, (Level::Partial, 4));
    assert_eq!(send(&mut client, Suspend::Now, b"").await, Status::Suspended);
    assert_eq!(send(&mut client, Suspend::NoResume, b"x").await, Status::Suspended);
    assert_eq!(send(&mut client, Suspend::Keep, b"").await, Status::Ok);
    assert_eq!(status_of_read(&mut client).await, Status::Ok, "one replica serves reads");
    assert_eq!(suspend_of(&mut client).await, (Level::Partial, 4));
    // Case: an ordinary append resumes, and happens at once.
    assert_eq!(send(&mut client, Suspend::Resume, b"45").await, Status::Ok);
    assert_eq!(suspend_of(&mut client).await, (Level::None, 4));
    world.stop().await;
}

#[tokio::test]
async fn an_empty_journal_is_suspended_in_full_and_goes_on_no_lower() {
    let world = World::start().await;
    let suspend = Some(journal_spec::Suspend { level: Level::None.into(), offset: 100 });
    world.apply([JournalSpec { suspend, ..spec("a/journal") }]).await;
    let mut client = world.gazette().await;
    assert_eq!(send(&mut client, Suspend::IfFlushed, b"").await, Status::Suspended);
    assert_eq!(suspend_of(&mut client).await, (Level::Full, 100));
    for suspend in [Suspend::NoResume, Suspend::IfFlushed, Suspend::Now, Suspend::Keep] {
        assert_eq!(send(&mut client, suspend, b"").await, Status::Suspended, "{suspend:?}");
    }
    assert_eq!(status_of_read(&mut client).await, Status::Suspended);
    let fragments = FragmentsRequest { journal: "a/journal".into(), ..Default::default() };
    let fragments = client.list_fragments(fragments).await.unwrap().into_inner();
    assert_eq!(fragments.status(), Status::Suspended);
    // Case: specs without `suspend`, and with a lower offset, as from a file: it is not lost.
    for suspend in [None, Some(journal_spec::Suspend { level: Level::Full.into(), offset: 7 })] {
        let spec = JournalSpec { suspend, ..spec("a/journal") };
        assert_eq!(apply(&mut client, spec, -1).await, Status::Ok);
        assert_eq!(suspend_of(&mut client).await, (Level::Full, 100));
    }
    // Case: nor by a restart.
    let world = World::again(world.stop().await, |_| ()).await;
    let mut client = world.gazette().await;
    let commit = append(&mut client, "a/journal", b"x").await.commit.unwrap();
    assert_eq!((commit.begin, commit.end), (100, 101));
    assert_eq!(suspend_of(&mut client).await.0, Level::None);
    // Case: an offset above local bytes is a gap, and is passed.
    let (mut spec, revision) = listed(&mut client).await;
    spec.suspend = Some(journal_spec::Suspend { level: Level::None.into(), offset: 200 });
    assert_eq!(apply(&mut client, spec, revision).await, Status::Ok);
    let commit = append(&mut client, "a/journal", b"y").await.commit.unwrap();
    assert_eq!((commit.begin, commit.end), (200, 201));
    world.stop().await;
}
