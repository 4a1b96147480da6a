//! Read: the rules of gazette-spec 1.7 for bounds, times, URLs and gaps, on a store that holds
//! fragments at 10..20, 20..30 and 40..50.

use crate::world::{World, append, spec};
use index::{Clock, SystemClock};
use protocol::wire::gazette::{JournalSpec, ReadRequest, ReadResponse, Status};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tonic::Code;

/// Names of "0123456789" and "abcdefghij" at their offsets.
const STORED: [(&str, &[u8]); 3] = [
    (
        "000000000000000a-0000000000000014-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw",
        b"0123456789",
    ),
    (
        "0000000000000014-000000000000001e-d68c19a0a345b7eab78d5e11e991c026ec60db63.raw",
        b"abcdefghij",
    ),
    (
        "0000000000000028-0000000000000032-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw",
        b"0123456789",
    ),
];

const OK: Status = Status::Ok;
const NOT_YET: Status = Status::OffsetNotYetAvailable;

/// The first is a day old, the second and the third an hour.
fn plant(files: &Path) {
    let dir = files.join("a/journal");
    std::fs::create_dir_all(&dir).unwrap();
    for (at, (name, content)) in STORED.into_iter().enumerate() {
        let path = dir.join(name);
        std::fs::write(&path, content).unwrap();
        let age = Duration::from_secs(if at == 0 { 24 * 3600 } else { 3600 });
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(ago(age)).unwrap();
    }
}

fn ago(age: Duration) -> SystemTime {
    SystemClock.now() - age
}

fn hours_ago(hours: u64) -> i64 {
    let then = ago(Duration::from_secs(hours * 3600));
    let since = then.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// What a read showed.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// Of each metadata message: status, offset, and whether there is a URL.
    metadata: Vec<(Status, i64, bool)>,
    content: String,
    error: Option<Code>,
}

async fn read(world: &World, request: ReadRequest) -> Shown {
    let mut shown = Shown { metadata: Vec::new(), content: String::new(), error: None };
    let mut stream = world.gazette().await.read(request).await.unwrap().into_inner();
    loop {
        match stream.message().await {
            Ok(None) => return shown,
            Ok(Some(ReadResponse { content, .. })) if !content.is_empty() => {
                shown.content.push_str(std::str::from_utf8(&content).unwrap());
            }
            Ok(Some(metadata)) => {
                assert_eq!(metadata.header.is_some(), shown.metadata.is_empty());
                let has_url = !metadata.fragment_url.is_empty();
                shown.metadata.push((metadata.status(), metadata.offset, has_url));
            }
            Err(status) => {
                shown.error = Some(status.code());
                return shown;
            }
        }
    }
}

fn at(offset: i64) -> ReadRequest {
    ReadRequest { journal: "a/journal".into(), offset, ..ReadRequest::default() }
}

#[tokio::test]
async fn reads_go_by_the_rules() {
    let world = World::with(plant).await;
    world.apply([spec("a/journal"), JournalSpec { flags: 2, ..spec("a/blind") }]).await;
    append(&mut world.gazette().await, "a/journal", b"local").await;
    let bounded = |offset, end_offset| ReadRequest { end_offset, ..at(offset) };
    type Case<'a> = (ReadRequest, &'a [(Status, i64, bool)], &'a str, Option<Code>);
    let cases: Vec<Case> = vec![
        // Case: request, metadata, content, error
        // Case: below the first fragment a read goes on at once; a hole whose other side is young
        // is an error at once.
        (at(0), &[(OK, 10, true), (OK, 20, true)], "0123456789abcdefghij", Some(Code::DataLoss)),
        (at(30), &[], "", Some(Code::DataLoss)),
        (at(45), &[(OK, 45, true), (OK, 50, false), (NOT_YET, 55, false)], "56789local", None),
        (at(-1), &[(NOT_YET, 55, false)], "", None),
        (at(1000), &[(NOT_YET, 1000, false)], "", None),
        (ReadRequest { metadata_only: true, ..at(12) }, &[(OK, 12, true)], "", None),
        (ReadRequest { metadata_only: true, block: true, ..at(0) }, &[(OK, 10, true)], "", None),
        // Case: who will not be proxied fetches the URL, and gets local content all the same.
        (ReadRequest { do_not_proxy: true, ..at(12) }, &[(OK, 12, true)], "", None),
        (
            ReadRequest { do_not_proxy: true, ..at(51) },
            &[(OK, 51, false), (NOT_YET, 55, false)],
            "ocal",
            None,
        ),
        // Case: an end within a fragment, at its end, and before what is found: no URL there.
        (bounded(12, 15), &[(OK, 12, true)], "234", None),
        (bounded(12, 20), &[(OK, 12, true)], "23456789", None),
        (bounded(15, 25), &[(OK, 15, true), (OK, 20, true)], "56789abcde", None),
        (bounded(0, 5), &[(OK, 10, false)], "", None),
        (bounded(50, 52), &[(OK, 50, false)], "lo", None),
        // Case: what was stored too long ago is skipped, and local bytes never are.
        (
            ReadRequest { begin_mod_time: hours_ago(2), end_offset: 23, ..at(0) },
            &[(OK, 20, true)],
            "abc",
            None,
        ),
        (
            ReadRequest { begin_mod_time: i64::MAX, ..at(40) },
            &[(OK, 50, false), (NOT_YET, 55, false)],
            "local",
            None,
        ),
        // Case: a suffix of the name, and statuses.
        (
            ReadRequest { journal: "a/journal;meta/x".into(), ..at(53) },
            &[(OK, 53, false), (NOT_YET, 55, false)],
            "al",
            None,
        ),
        (
            ReadRequest { journal: "a/blind".into(), ..at(0) },
            &[(Status::NotAllowed, 0, false)],
            "",
            None,
        ),
        (
            ReadRequest { journal: "no/such".into(), ..at(0) },
            &[(Status::JournalNotFound, 0, false)],
            "",
            None,
        ),
    ];
    for (request, metadata, content, error) in cases {
        let expected = Shown { metadata: metadata.to_vec(), content: content.to_owned(), error };
        assert_eq!(read(&world, request.clone()).await, expected, "{request:?}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_hole_whose_other_side_is_old_is_passed() {
    let world = World::with(|files| {
        plant(files);
        let last = files.join("a/journal").join(STORED[2].0);
        let file = std::fs::File::options().write(true).open(last).unwrap();
        file.set_modified(ago(Duration::from_secs(7 * 3600))).unwrap();
    })
    .await;
    world.apply([spec("a/journal")]).await;
    let shown = read(&world, at(25)).await;
    assert_eq!((shown.content.as_str(), shown.error), ("fghij0123456789", None));
    world.stop().await;
}

#[tokio::test]
async fn a_read_waits_for_a_revision_and_for_the_first_listing() {
    let world = World::with(plant).await;
    world.apply([spec("a/journal")]).await;
    // Case: at once after its creation, a journal shows what its store has.
    let first = read(&world, ReadRequest { end_offset: 12, ..at(10) }).await;
    assert_eq!(first.content, "01");
    // Case: a revision that comes while it is waited for.
    let revision = world.broker.key_space().revision();
    let waits = ReadRequest { min_etcd_revision: revision + 1, end_offset: 12, ..at(10) };
    let (shown, ()) = futures::join!(read(&world, waits), async {
        world.apply([spec("a/other")]).await;
    });
    assert_eq!(shown.content, "01");
    // Case: one that never comes ends with the port.
    let never = ReadRequest { min_etcd_revision: i64::MAX, ..at(10) };
    let mut stream = world.gazette().await.read(never).await.unwrap().into_inner();
    world.stop().await;
    assert_eq!(stream.message().await.unwrap(), None);
}
