//! Each RPC of `protocol.Journal`, in what the recorded requests do not say.

use crate::world::{World, append, append_of, spec};
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{
    AppendRequest, ApplyRequest, FragmentStoreHealthRequest, FragmentsRequest, JournalSpec, Label,
    LabelSelector, LabelSet, ListRequest, ListResponse, ReadRequest, ReadResponse,
    ReplicateRequest, Status, append_request::Suspend, apply_request::Change,
};
use tonic::transport::Channel;
use tonic::{Code, Streaming};

fn named(name: &str, is_prefix: bool) -> Option<LabelSelector> {
    let label = Label { name: "name".into(), value: name.into(), prefix: is_prefix };
    let include = Some(LabelSet { labels: vec![label] });
    Some(LabelSelector { include, exclude: Some(LabelSet::default()) })
}

async fn next(stream: &mut Streaming<ListResponse>) -> ListResponse {
    stream.message().await.unwrap().expect("a watch goes on")
}

/// The pages up to the end of a snapshot: how many journals each has, and all names.
async fn snapshot(stream: &mut Streaming<ListResponse>) -> (Vec<usize>, Vec<String>) {
    let (mut pages, mut names) = (Vec::new(), Vec::new());
    loop {
        let page = next(stream).await;
        assert_eq!(page.header.is_some(), pages.is_empty() && page != ListResponse::default());
        if page == ListResponse::default() {
            return (pages, names);
        }
        pages.push(page.journals.len());
        names.extend(page.journals.into_iter().map(|journal| journal.spec.unwrap().name));
    }
}

async fn delete(client: &mut JournalClient<Channel>, journal: &str) {
    let change = Change { expect_mod_revision: -1, delete: journal.into(), ..Change::default() };
    let applied = client.apply(ApplyRequest { changes: vec![change] }).await.unwrap();
    assert_eq!(applied.into_inner().status(), Status::Ok);
}

#[tokio::test]
async fn a_watch_shows_each_change_as_a_snapshot() {
    let world = World::start().await;
    world.apply((0..60).map(|at| spec(&format!("logs/{at:02}")))).await;
    world.apply([spec("other/one")]).await;
    let mut client = world.gazette().await;
    let watch = ListRequest { selector: named("logs/", true), watch: true, watch_resume: None };
    let mut stream = client.list(watch.clone()).await.unwrap().into_inner();
    let (pages, names) = snapshot(&mut stream).await;
    assert_eq!((pages, names.len()), (vec![25, 25, 10], 60));
    assert!(names.is_sorted());

    // Case: a change elsewhere is no news here; the next one is.
    world.apply([spec("other/two")]).await;
    delete(&mut client, "logs/07").await;
    let (pages, names) = snapshot(&mut stream).await;
    assert_eq!((pages, names.len()), (vec![25, 25, 9], 59));

    // Case: a snapshot of nothing is a page with a header.
    let nothing = ListRequest { selector: named("no/such", false), ..watch.clone() };
    let mut stream = client.list(nothing).await.unwrap().into_inner();
    let first = next(&mut stream).await;
    assert!(first.header.is_some() && first.journals.is_empty());
    assert_eq!(next(&mut stream).await, ListResponse::default());

    // Case: who resumes waits for a later revision, and then sees it whatever it is.
    let resume = first.header;
    let revision = resume.as_ref().unwrap().etcd.unwrap().revision;
    let resumed = ListRequest { watch_resume: resume, ..watch };
    let mut stream = client.list(resumed).await.unwrap().into_inner();
    world.apply([spec("other/three")]).await;
    let first = next(&mut stream).await;
    assert!(first.header.unwrap().etcd.unwrap().revision > revision);
    world.stop().await;
}

#[tokio::test]
async fn changes_are_made_together_or_not_at_all() {
    let world = World::start().await;
    world.apply([spec("logs/one")]).await;
    let mut client = world.gazette().await;
    let upsert = |name: &str, expect_mod_revision| Change {
        upsert: Some(spec(name)),
        expect_mod_revision,
        ..Change::default()
    };
    // Case: one of two compares fails.
    let changes = vec![upsert("logs/two", 0), upsert("logs/one", 0)];
    let applied = client.apply(ApplyRequest { changes }).await.unwrap().into_inner();
    assert_eq!(applied.status(), Status::EtcdTransactionFailed);
    let list = ListRequest { selector: named("logs/", true), ..ListRequest::default() };
    let mut stream = client.list(list).await.unwrap().into_inner();
    let page = next(&mut stream).await;
    assert_eq!(page.journals.len(), 1);
    assert_eq!(stream.message().await.unwrap(), None);

    // Case: a journal twice, and one that nests, are errors of the call.
    for changes in
        [vec![upsert("logs/two", 0), upsert("logs/two", 0)], vec![upsert("logs/one/inner", 0)]]
    {
        let error = client.apply(ApplyRequest { changes }).await.unwrap_err();
        assert_eq!(error.code(), Code::Unknown, "{error:?}");
    }
    world.stop().await;
}

async fn content(mut stream: Streaming<ReadResponse>) -> Vec<u8> {
    let mut content = Vec::new();
    while let Some(response) = stream.message().await.unwrap() {
        content.extend_from_slice(&response.content);
    }
    content
}

#[tokio::test]
async fn a_read_has_metadata_then_content() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut client = world.gazette().await;
    let written: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
    append(&mut client, "logs/app", &written).await;

    let request = ReadRequest { journal: "logs/app".into(), offset: 5, ..ReadRequest::default() };
    let mut stream = client.read(request.clone()).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().unwrap();
    assert!(first.header.is_some() && first.content.is_empty());
    assert_eq!((first.status(), first.offset, first.write_head), (Status::Ok, 5, 700_000));
    let fragment = first.fragment.unwrap();
    assert_eq!((fragment.begin, fragment.end, fragment.mod_time), (0, 700_000, 0));
    let mut offset = 5;
    let mut last = None;
    while let Some(response) = stream.message().await.unwrap() {
        assert!(response.header.is_none());
        if response.content.is_empty() {
            last = Some(response);
            continue;
        }
        let end = offset + response.content.len();
        assert_eq!(i64::try_from(offset).unwrap(), response.offset);
        assert!(response.content == written[offset..end]);
        offset = end;
    }
    let last = last.expect("a read that does not block says where it ends");
    assert_eq!((last.status(), last.offset), (Status::OffsetNotYetAvailable, 700_000));
    assert_eq!(offset, 700_000);

    // Case: bounds within a chunk, over chunks, and of nothing.
    for (begin, end) in [(10, 20), (100_000, 650_001), (7, 7)] {
        let request = ReadRequest { offset: begin, end_offset: end, ..request.clone() };
        let found = content(client.read(request).await.unwrap().into_inner()).await;
        let (begin, end) = (usize::try_from(begin).unwrap(), usize::try_from(end).unwrap());
        assert!(found == written[begin..end], "{begin}..{end}: {}", found.len());
    }
    world.stop().await;
}

#[tokio::test]
async fn a_blocked_read_goes_on_with_each_append() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut client = world.gazette().await;
    let journal = "logs/app".to_owned();
    let request = ReadRequest { journal, offset: -1, block: true, ..ReadRequest::default() };
    let mut stream = client.read(request).await.unwrap().into_inner();
    for (at, text) in [b"one\n", b"two\n", b"six\n"].into_iter().enumerate() {
        append(&mut client, "logs/app", text).await;
        let metadata = stream.message().await.unwrap().unwrap();
        assert_eq!(metadata.header.is_some(), at == 0);
        let end = 4 * (i64::try_from(at).unwrap() + 1);
        let fragment = metadata.fragment.unwrap();
        assert_eq!((metadata.write_head, fragment.end), (end, end));
        let content = stream.message().await.unwrap().unwrap();
        assert_eq!((content.offset, &*content.content), (end - 4, &text[..]));
    }
    // Case: it ends without an error when its journal does, and when the broker does.
    delete(&mut client, "logs/app").await;
    assert_eq!(stream.message().await.unwrap(), None);
    world.apply([spec("logs/other")]).await;
    let journal = "logs/other".to_owned();
    let request = ReadRequest { journal, block: true, ..ReadRequest::default() };
    let mut stream = client.read(request).await.unwrap().into_inner();
    world.stop().await;
    assert_eq!(stream.message().await.unwrap(), None);
}

#[tokio::test]
async fn appends_beside_the_rules_roll_back() {
    let world = World::start().await;
    world.apply([spec("logs/app"), JournalSpec { flags: 1, ..spec("logs/fixed") }]).await;
    let mut client = world.gazette().await;
    let part = |content: &'static [u8]| AppendRequest {
        content: content.into(),
        ..AppendRequest::default()
    };
    let first = |journal: &str| AppendRequest { journal: journal.into(), ..Default::default() };
    let cases: [(Vec<AppendRequest>, &str); 4] = [
        (vec![], "append stream: unexpected EOF"),
        (vec![first("logs/app")], "append stream: unexpected EOF"),
        (
            vec![first("logs/app"), part(b"x"), first("logs/app"), part(b"")],
            "append stream: unexpected Journal",
        ),
        (vec![part(b"x"), part(b"")], "Journal: invalid length (0; expected 4 <= length <= 512)"),
    ];
    for (messages, text) in cases {
        let error = client.append(tokio_stream::iter(messages)).await.unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Unknown, text));
    }
    // Case: suspending appends carry nothing, and so do appends to what is read-only.
    let keep = AppendRequest { suspend: Suspend::Keep.into(), ..first("logs/app") };
    for first in [keep, first("logs/fixed")] {
        let messages = vec![first, part(b"x"), part(b"")];
        let response = client.append(tokio_stream::iter(messages)).await.unwrap().into_inner();
        assert_eq!(response.status(), Status::NotAllowed);
    }
    let barrier = append(&mut client, "logs/app", b"").await.commit.unwrap();
    assert_eq!((barrier.begin, barrier.end), (0, 0));
    let barrier = append(&mut client, "logs/fixed", b"").await;
    assert_eq!(barrier.total_chunks, 1);
    world.stop().await;
}

#[tokio::test]
async fn appends_at_once_do_not_mix() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let client = world.gazette().await;
    let writer = |id: u8| {
        let mut client = client.clone();
        async move {
            for _ in 0..20 {
                append(&mut client, "logs/app", &[id; 1000]).await;
            }
        }
    };
    futures::future::join_all((b'a'..b'i').map(writer)).await;
    let request = ReadRequest { journal: "logs/app".into(), ..ReadRequest::default() };
    let found = content(client.clone().read(request).await.unwrap().into_inner()).await;
    assert_eq!(found.len(), 8 * 20 * 1000);
    assert!(found.chunks(1000).all(|chunk| chunk.iter().all(|byte| *byte == chunk[0])));
    world.stop().await;
}

#[tokio::test]
async fn an_early_refusal_reaches_who_still_sends() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut client = world.gazette().await;
    append(&mut client, "logs/app", b"0123").await;
    let first = AppendRequest { journal: "logs/app".into(), offset: 2, ..Default::default() };
    let piece = AppendRequest { content: vec![0; 1 << 20].into(), ..Default::default() };
    let pieces = std::iter::repeat_n(piece, 64).chain([AppendRequest::default()]);
    let messages = tokio_stream::iter([first].into_iter().chain(pieces));
    let response = client.append(messages).await.unwrap().into_inner();
    assert_eq!(response.status(), Status::WrongAppendOffset);
    world.stop().await;
}

#[tokio::test]
async fn a_message_over_4_mib_is_refused() {
    let world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut client = world.gazette().await;
    let large = vec![0; (4 << 20) + 1];
    let error = client.append(tokio_stream::iter(append_of("logs/app", &large))).await;
    assert_eq!(error.unwrap_err().code(), Code::OutOfRange);
    append(&mut client, "logs/app", &vec![0; (4 << 20) - 64]).await;
    world.stop().await;
}

#[tokio::test]
async fn local_fragments_are_listed_until_a_time_is_asked_for() {
    let world = World::start().await;
    world.apply([spec("logs/app"), JournalSpec { flags: 2, ..spec("logs/blind") }]).await;
    let mut client = world.gazette().await;
    append(&mut client, "logs/app", b"0123").await;
    let request = FragmentsRequest { journal: "logs/app".into(), ..FragmentsRequest::default() };
    let listed = client.list_fragments(request.clone()).await.unwrap().into_inner();
    let spans: Vec<_> = listed.fragments.iter().flat_map(|listed| &listed.spec).collect();
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].begin, spans[0].end, spans[0].mod_time), (0, 4, 0));

    let stored = FragmentsRequest { end_mod_time: i64::MAX, ..request.clone() };
    let listed = client.list_fragments(stored).await.unwrap().into_inner();
    assert_eq!((listed.status(), listed.fragments.len()), (Status::Ok, 0));
    let blind = FragmentsRequest { journal: "logs/blind".into(), ..request };
    let listed = client.list_fragments(blind).await.unwrap().into_inner();
    assert_eq!(listed.status(), Status::NotAllowed);
    world.stop().await;
}

#[tokio::test]
async fn a_store_is_tried() {
    let world = World::start().await;
    let mut client = world.gazette().await;
    let asked = |fragment_store: &str| FragmentStoreHealthRequest {
        fragment_store: fragment_store.into(),
        ..FragmentStoreHealthRequest::default()
    };
    // Case: two at a time, which must not meet each other's probe.
    let mut other = client.clone();
    let (one, two) = futures::join!(
        client.fragment_store_health(asked("file:///")),
        other.fragment_store_health(asked("file:///")),
    );
    for response in [one, two] {
        let response = response.unwrap().into_inner();
        assert_eq!((response.status(), &*response.store_health_error), (Status::Ok, ""));
    }
    // Case: deletion is tried on request, and leaves nothing but the other probe.
    let deleting = FragmentStoreHealthRequest {
        check_delete: true,
        check_delete_prefix: "some/where/".into(),
        ..asked("file:///")
    };
    let response = client.fragment_store_health(deleting).await.unwrap().into_inner();
    assert_eq!((response.status(), &*response.store_health_error), (Status::Ok, ""));
    let response = client.fragment_store_health(asked("azure://x/")).await.unwrap().into_inner();
    assert_eq!(response.status(), Status::FragmentStoreUnhealthy);
    assert!(!response.store_health_error.is_empty());
    let error = client.fragment_store_health(asked("file:///x")).await.unwrap_err();
    let text = "FragmentStore: path component doesn't end in '/' (/x)";
    assert_eq!((error.code(), error.message()), (Code::Unknown, text));

    // Case: there are no peers.
    let error = client.replicate(tokio_stream::iter([ReplicateRequest::default()])).await;
    assert_eq!(error.unwrap_err().code(), Code::Unimplemented);
    world.stop().await;
}

/// Who follows a list asks at once for what is new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_list_shows_is_there_to_be_read() {
    let world = World::start().await;
    let mut client = world.gazette().await;
    let watch = ListRequest { watch: true, ..ListRequest::default() };
    let mut stream = client.list(watch).await.unwrap().into_inner();
    snapshot(&mut stream).await;
    for number in 0..40 {
        let name = format!("logs/new-{number}");
        let mut applier = world.gazette().await;
        let change = Change { upsert: Some(spec(&name)), ..Change::default() };
        let request = ApplyRequest { changes: vec![change] };
        let applied = tokio::spawn(async move { applier.apply(request).await });
        while !snapshot(&mut stream).await.1.contains(&name) {}
        let read = ReadRequest { journal: name, ..ReadRequest::default() };
        let mut read = client.read(read).await.unwrap().into_inner();
        let first = read.message().await.unwrap().unwrap();
        assert_eq!(first.status(), Status::OffsetNotYetAvailable, "journal {number}");
        applied.await.unwrap().unwrap();
    }
    world.stop().await;
}
