//! Append: every result of gazette-spec 2.10 that a lone broker can have, and registers.

use crate::world::{World, append, first, spec, try_append};
use protocol::wire::gazette::journal_spec::suspend::Level;
use protocol::wire::gazette::{
    AppendRequest, AppendResponse, JournalSpec, Label, LabelSelector, LabelSet, Status,
    append_request::Suspend, journal_spec,
};
use tonic::Code;

fn labels(pairs: &[(&str, &str)]) -> LabelSet {
    let label = |(name, value): &(&str, &str)| Label {
        name: (*name).into(),
        value: (*value).into(),
        prefix: false,
    };
    LabelSet { labels: pairs.iter().map(label).collect() }
}

fn include(pairs: &[(&str, &str)]) -> Option<LabelSelector> {
    Some(LabelSelector { include: Some(labels(pairs)), exclude: None })
}

fn suspended(level: Level, offset: i64) -> Option<journal_spec::Suspend> {
    Some(journal_spec::Suspend { level: level.into(), offset })
}

fn suspending(how: Suspend) -> impl Fn(&mut AppendRequest) {
    move |request| request.suspend = how.into()
}

/// What an append came to: its status, or the code and the text of the call's error.
fn result(response: Result<AppendResponse, tonic::Status>) -> Result<Status, (Code, String)> {
    match response {
        Ok(response) => {
            assert!(response.header.is_some(), "{response:?}");
            assert_eq!(response.status() == Status::Ok, response.commit.is_some());
            Ok(response.status())
        }
        Err(status) => Err((status.code(), status.message().to_owned())),
    }
}

/// One request, edited; its content; and what it comes to.
type Case<'a> = (&'a str, Box<dyn Fn(&mut AppendRequest)>, &'a [u8], Result<Status, &'a str>);

fn case<'a>(
    journal: &'a str,
    edit: impl Fn(&mut AppendRequest) + 'static,
    content: &'a [u8],
    expected: Result<Status, &'a str>,
) -> Case<'a> {
    (journal, Box::new(edit), content, expected)
}

#[tokio::test]
async fn results_are_those_of_the_table() {
    let world = World::start().await;
    let full = JournalSpec { suspend: suspended(Level::Full, 0), ..spec("a/full") };
    let partial = JournalSpec { suspend: suspended(Level::Partial, 0), ..spec("a/partial") };
    let fixed = JournalSpec { flags: 1, ..spec("a/fixed") };
    let blind = JournalSpec { flags: 2, ..spec("a/blind") };
    world.apply([spec("a/journal"), full, partial, fixed, blind]).await;
    let mut client = world.gazette().await;
    let fenced =
        AppendRequest { union_registers: Some(labels(&[("author", "one")])), ..first("a/journal") };
    try_append(&mut client, fenced, b"0123").await.unwrap();

    let none = |_: &mut AppendRequest| ();
    let cases = [
        // Case: journal, request, content, result
        case("no/such", none, b"x", Ok(Status::JournalNotFound)),
        case("a/full", suspending(Suspend::NoResume), b"x", Ok(Status::Suspended)),
        case("a/full", suspending(Suspend::Keep), b"", Ok(Status::Suspended)),
        case("a/full", suspending(Suspend::Now), b"", Ok(Status::Suspended)),
        case("a/partial", suspending(Suspend::NoResume), b"x", Ok(Status::Suspended)),
        case("a/partial", suspending(Suspend::Keep), b"", Ok(Status::Ok)),
        case("a/journal", |r| r.offset = 3, b"x", Ok(Status::WrongAppendOffset)),
        case("a/journal", |r| r.offset = 5, b"x", Ok(Status::WrongAppendOffset)),
        case("a/journal", |r| r.offset = 5, b"", Ok(Status::WrongAppendOffset)),
        case("a/journal", |r| r.offset = 4, b"", Ok(Status::Ok)),
        case("a/fixed", none, b"x", Ok(Status::NotAllowed)),
        case("a/fixed", none, b"", Ok(Status::Ok)),
        case("a/blind", none, b"x", Ok(Status::Ok)),
        case("a/journal", suspending(Suspend::Keep), b"x", Ok(Status::NotAllowed)),
        case("a/journal", suspending(Suspend::Now), b"x", Ok(Status::NotAllowed)),
        case("a/journal", suspending(Suspend::IfFlushed), b"x", Ok(Status::NotAllowed)),
        case("a/journal;meta/x", |r| r.do_not_proxy = true, b"x", Ok(Status::Ok)),
        case("a/journal", |r| r.min_etcd_revision = 1, b"", Ok(Status::Ok)),
        case(
            "a/journal",
            |r| r.check_registers = include(&[("author", "two")]),
            b"x",
            Ok(Status::RegisterMismatch),
        ),
        // Case: registers are looked at before the offset (2.2, step 7).
        case(
            "a/journal",
            |r| (r.check_registers, r.offset) = (include(&[("author", "two")]), 99),
            b"x",
            Ok(Status::RegisterMismatch),
        ),
        case(
            "a/journal",
            |r| r.check_registers = include(&[("author", "one")]),
            b"",
            Ok(Status::Ok),
        ),
        // Case: no registers match every selector.
        case("a/blind", |r| r.check_registers = include(&[("author", "two")]), b"", Ok(Status::Ok)),
        case(
            "a/journal",
            |r| r.union_registers = Some(labels(&[("author", "two")])),
            b"",
            Err("append stream: register modification requires non-empty Append"),
        ),
        case("a", none, b"x", Err("Journal: invalid length (1; expected 4 <= length <= 512)")),
        case(
            "a/journal",
            |r| r.offset = -1,
            b"x",
            Err("invalid Offset (-1; expected 0 <= Offset <= MaxInt64)"),
        ),
        // Case: names that lead out of the tree.
        case(
            "../a/journal",
            none,
            b"x",
            Err("Journal: must not lead out of its directory (../a/journal)"),
        ),
    ];
    for (at, (journal, edit, content, expected)) in cases.iter().enumerate() {
        let mut request = first(journal);
        edit(&mut request);
        let found = result(try_append(&mut client, request, content).await);
        let expected = expected.map_err(|text| (Code::Unknown, text.to_owned()));
        assert_eq!(found, expected, "case {at}: {journal}");
    }
    world.stop().await;
}

#[tokio::test]
async fn commits_say_where_and_what() {
    let world = World::start().await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    let response = append(&mut client, "a/journal", b"hello").await;
    let commit = response.commit.unwrap();
    assert_eq!((commit.journal.as_str(), commit.begin, commit.end), ("a/journal", 0, 5));
    assert_eq!(response.registers, Some(LabelSet::default()));
    assert_eq!((response.total_chunks, response.delayed_chunks), (2, 0));
    // Case: a meta suffix is not the journal's; no bytes have the sum of the empty string.
    let barrier = try_append(&mut client, first("a/journal;meta"), b"").await.unwrap();
    let commit = barrier.commit.unwrap();
    assert_eq!((commit.journal.as_str(), commit.begin, commit.end), ("a/journal", 5, 5));
    let sum = commit.sum.unwrap();
    assert_eq!(
        (sum.part1, sum.part2, sum.part3),
        (0xda39a3ee5e6b4b0d, 0x3255bfef95601890, 0xafd80709)
    );
    assert_ne!(commit.compression_codec, 0);
    world.stop().await;
}

/// Registers: set, replace, subtract only what is whole, and still there after a restart.
#[tokio::test]
async fn registers_are_changed_by_rule_and_survive_a_restart() {
    let world = World::start().await;
    world.apply([spec("a/journal")]).await;
    let mut client = world.gazette().await;
    // Case: subtract, union, registers after
    type Pairs<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Pairs, Pairs, Pairs); 5] = [
        (
            &[],
            &[("aa", "1"), ("bb", "22"), ("bb", "xyz")],
            &[("aa", "1"), ("bb", "22"), ("bb", "xyz")],
        ),
        // Case: a name goes only with all its values (2.6).
        (&[("bb", "xyz")], &[], &[("aa", "1"), ("bb", "22"), ("bb", "xyz")]),
        (&[("aa", "2")], &[("bb", "22")], &[("aa", "1"), ("bb", "22")]),
        // Case: first subtracted, then set.
        (&[("aa", "1")], &[("aa", "3")], &[("aa", "3"), ("bb", "22")]),
        (&[("bb", "22")], &[], &[("aa", "3")]),
    ];
    for (subtract, union, after) in cases {
        let request = AppendRequest {
            subtract_registers: Some(labels(subtract)),
            union_registers: Some(labels(union)),
            ..first("a/journal")
        };
        let response = try_append(&mut client, request, b"x").await.unwrap();
        assert_eq!(response.registers, Some(labels(after)), "-{subtract:?} +{union:?}");
    }
    let world = World::again(world.stop().await, |_| ()).await;
    let mut client = world.gazette().await;
    let check =
        |value| AppendRequest { check_registers: include(&[("aa", value)]), ..first("a/journal") };
    let refused = try_append(&mut client, check("1"), b"x").await.unwrap();
    assert_eq!(refused.status(), Status::RegisterMismatch);
    assert_eq!(refused.registers, Some(labels(&[("aa", "3")])));
    let appended = try_append(&mut client, check("3"), b"x").await.unwrap();
    assert_eq!(appended.commit.unwrap().begin, 5);
    world.stop().await;
}
