//! Appends that go by themselves over one stream.

use crate::http;
use crate::world::{World, spec, until};
use bytes::Bytes;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendRequest, AppendResponse, Durability, Fault,
    NumberedAnswer, NumberedAppend,
};
use protocol::wire::gazette::JournalSpec;
use std::collections::BTreeMap;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// A stream of appends, message by message.
struct Each {
    messages: mpsc::Sender<AppendEachRequest>,
    answers: Streaming<AppendEachResponse>,
    ready: Vec<NumberedAnswer>,
}

impl Each {
    async fn begin(world: &World) -> Each {
        Each::of(world.courant().await).await
    }

    async fn of(mut client: CourantClient<Channel>) -> Each {
        let (messages, receiver) = mpsc::channel(16);
        // Answered before anything is sent.
        let answers = client.append_each(ReceiverStream::new(receiver)).await.unwrap();
        Each { messages, answers: answers.into_inner(), ready: Vec::new() }
    }

    async fn push(&self, appends: impl IntoIterator<Item = (u64, AppendRequest)>) {
        let numbered = |(number, append)| NumberedAppend { number, append: Some(append) };
        let appends = appends.into_iter().map(numbered).collect();
        self.messages.send(AppendEachRequest { appends, gives_up: Vec::new() }).await.unwrap();
    }

    async fn give_up(&self, number: u64) {
        let (appends, gives_up) = (Vec::new(), vec![number]);
        self.messages.send(AppendEachRequest { appends, gives_up }).await.unwrap();
    }

    async fn next(&mut self) -> Result<(u64, AppendResponse), Status> {
        while self.ready.is_empty() {
            match self.answers.message().await? {
                Some(message) => self.ready = message.answers,
                None => return Err(Status::ok("the stream is over")),
            }
        }
        let NumberedAnswer { number, answer } = self.ready.remove(0);
        Ok((number, answer.expect("an answer has one")))
    }

    async fn answers(&mut self, count: usize) -> BTreeMap<u64, AppendResponse> {
        let mut answers = BTreeMap::new();
        for _ in 0..count {
            let (number, answer) = self.next().await.unwrap();
            assert!(answers.insert(number, answer).is_none(), "{number} is answered once");
        }
        answers
    }
}

fn append(journal: &str, content: &str) -> AppendRequest {
    AppendRequest {
        journal: journal.into(),
        content: Bytes::from(content.to_owned()),
        commit: true,
        ..AppendRequest::default()
    }
}

/// An append to the same, of a writer.
fn named(writer: u8, sequence: u64, append: AppendRequest) -> AppendRequest {
    AppendRequest { writer_id: vec![writer; 16].into(), sequence, ..append }
}

async fn head(world: &World, journal: &str) -> i64 {
    let served = world.broker.served(&journal.parse().unwrap()).unwrap();
    served.replica().head().get()
}

#[tokio::test]
async fn each_is_what_a_call_of_append_is() {
    let world = World::start().await;
    world.apply([spec("logs/app"), spec("logs/other")]).await;
    let mut each = Each::begin(&world).await;
    let mut client = world.courant().await;
    // Case: the append, of which a call hears the same
    let disk = Durability::Disk.into();
    let cases = [
        append("logs/app", "one\n"),
        append("logs/app", ""),
        AppendRequest { durability: disk, ..append("logs/app", "two\n") },
        AppendRequest { offset: Some(0), ..append("logs/app", "three\n") },
        AppendRequest { life: 7, ..append("logs/app", "four\n") },
        append("no/such", "five\n"),
        append("logs/", "six\n"),
    ];
    for (number, request) in (0..).zip(cases) {
        let other =
            AppendRequest { journal: request.journal.replace("app", "other"), ..request.clone() };
        each.push([(number, request)]).await;
        let answer = each.next().await.unwrap();
        let called = client.append(tokio_stream::iter([other])).await.unwrap().into_inner();
        let told = AppendResponse {
            life: answer.1.life,
            detail: called.detail.replace("other", "app"),
            ..called
        };
        assert_eq!(answer, (number, told));
    }
    // Case: what a call is refused as a whole for is the append's own affair
    let wrong = [
        AppendRequest { durability: 9, ..append("logs/app", "x") },
        AppendRequest { commit: false, ..append("logs/app", "x") },
        AppendRequest { sequence: 1, ..append("logs/app", "x") },
        AppendRequest::default(),
    ];
    each.push((100..).zip(wrong)).await;
    for (_, answer) in each.answers(4).await {
        assert_eq!(answer.fault(), Fault::Refused, "{answer:?}");
    }
    assert_eq!(head(&world, "logs/app").await, 8);
    drop(each.messages);
    assert_eq!(each.answers.message().await.unwrap(), None, "it ends when its client does");
    let stream = TcpStream::connect(world.address).await.unwrap();
    let metrics = http::ask(stream, "GET", "/metrics", "").await.body;
    assert!(metrics.contains("gazette_spool_commits_total 6\n"), "{metrics}");
    world.stop().await;
}

#[tokio::test]
async fn those_to_one_journal_are_begun_in_the_order_in_which_they_came() {
    let world = World::start().await;
    world.apply([spec("logs/app"), spec("logs/other")]).await;
    let mut each = Each::begin(&world).await;
    let mut expected = BTreeMap::new();
    for round in 0..50_u64 {
        let numbers = round * 20..round * 20 + 20;
        let of = |number: u64| if number.is_multiple_of(3) { "logs/other" } else { "logs/app" };
        let durability =
            if round.is_multiple_of(2) { Durability::Memory } else { Durability::Disk };
        let requests = numbers.map(|number| {
            let content = format!("line {number}\n");
            let end: &mut i64 = expected.entry(of(number)).or_default();
            let begin = *end;
            *end += i64::try_from(content.len()).unwrap();
            let request = append(of(number), &content);
            (number, begin, AppendRequest { durability: durability.into(), ..request })
        });
        let requests: Vec<_> = requests.collect();
        each.push(requests.iter().map(|(number, _, request)| (*number, request.clone()))).await;
        let answers = each.answers(20).await;
        for (number, begin, _) in requests {
            assert_eq!(answers[&number].begin, begin, "{number}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn what_waits_keeps_no_other_and_may_be_given_up() {
    let world = World::start().await;
    world.apply([spec("logs/app"), JournalSpec { max_append_rate: 10, ..spec("logs/slow") }]).await;
    let mut each = Each::begin(&world).await;
    // The first is paid for by what the journal saved, and the second waits for an hour.
    each.push([(1, append("logs/slow", &"x".repeat(20)))]).await;
    let long = "x".repeat(36_000);
    let impatient = AppendRequest { rate_wait_ms: 1, ..append("logs/slow", &long) };
    each.push([(2, append("logs/slow", &long)), (3, impatient), (4, append("logs/app", "x"))])
        .await;
    let answers = each.answers(3).await;
    let faults: Vec<_> = answers.iter().map(|(number, a)| (*number, a.fault())).collect();
    assert_eq!(faults, [(1, Fault::None), (3, Fault::OverRate), (4, Fault::None)]);
    // Case: its room is free again, it does not happen, and others do
    assert!(world.broker.staged().0 >= 36_000);
    each.give_up(2).await;
    until("nothing is held", async || world.broker.staged().0 == 0).await;
    // Case: one that is over, and one that never was
    each.give_up(4).await;
    each.give_up(77).await;
    each.push([(5, append("logs/app", "y"))]).await;
    assert_eq!(each.next().await.unwrap().0, 5);
    assert_eq!((head(&world, "logs/slow").await, head(&world, "logs/app").await), (20, 2));
    // Case: a client that goes away gives all up
    each.push([(6, append("logs/slow", &long))]).await;
    until("it waits", async || world.broker.staged().0 >= 36_000).await;
    drop(each);
    until("nothing is held", async || world.broker.staged().0 == 0).await;
    assert_eq!(head(&world, "logs/slow").await, 20);
    world.stop().await;
}

#[tokio::test]
async fn what_is_repeated_is_answered_and_not_made_again() {
    let mut world = World::start().await;
    world.apply([spec("logs/app")]).await;
    let mut each = Each::begin(&world).await;
    each.push([(1, named(7, 1, append("logs/app", "line\n")))]).await;
    let first = each.next().await.unwrap().1;
    assert!(!first.repeated);
    // Case: on another stream, by a call, and on a broker that was started again
    drop(each);
    let mut each = Each::begin(&world).await;
    each.push([(1, named(7, 1, append("logs/app", "line\n")))]).await;
    let expected = AppendResponse { repeated: true, ..first };
    assert_eq!(each.next().await.unwrap().1, expected);
    let request = named(7, 1, append("logs/app", "line\n"));
    let called = world.courant().await.append(tokio_stream::iter([request])).await.unwrap();
    assert_eq!(called.into_inner(), expected);
    drop(each);
    world = World::again(world.stop().await, |_| ()).await;
    let mut each = Each::begin(&world).await;
    each.push([(1, named(7, 1, append("logs/app", "line\n")))]).await;
    assert!(each.next().await.unwrap().1.repeated);
    assert_eq!(head(&world, "logs/app").await, 5);
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_not_read() {
    let world = World::start().await;
    world
        .apply([spec("logs/other"), JournalSpec { max_append_rate: 1, ..spec("logs/stuck") }])
        .await;
    // On threads of its own, with which its connection ends.
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let url = world.url("");
    elsewhere.spawn(async move {
        let each = Each::of(CourantClient::connect(url).await.unwrap()).await;
        let long = "x".repeat(128 << 10);
        for number in 1..=100 {
            each.push([(number, append("logs/stuck", &long))]).await;
        }
        std::future::pending::<()>().await;
    });
    // 12.5 MiB are more than a stream holds.
    until("the stream is full", async || world.broker.staged().0 >= 8 << 20).await;
    let mut other = Each::begin(&world).await;
    other.push([(1, append("logs/other", "line\n"))]).await;
    assert_eq!(other.next().await.unwrap().1.fault(), Fault::None);
    assert!(world.broker.staged().0 <= (8 << 20) + (256 << 10), "{:?}", world.broker.staged());
    elsewhere.shutdown_background();
    until("nothing is held", async || world.broker.staged().0 == 0).await;
    world.stop().await;
}

#[tokio::test]
async fn a_stream_ends_by_a_number_that_is_under_way_and_with_its_broker() {
    let world = World::start().await;
    world.apply([JournalSpec { max_append_rate: 1, ..spec("logs/slow") }]).await;
    let mut each = Each::begin(&world).await;
    let long = "x".repeat(36_000);
    each.push([(1, append("logs/slow", &long)), (1, append("logs/slow", "x"))]).await;
    let status = each.next().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("append 1 is under way"), "{status}");
    let mut each = Each::begin(&world).await;
    world.stop().await;
    assert_eq!(each.next().await.unwrap_err().code(), Code::Unavailable);
}
