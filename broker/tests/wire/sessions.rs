//! Sessions of appends: groups to many journals on one stream.

use crate::http;
use crate::world::{World, spec, until};
use bytes::Bytes;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{
    AppendGroup, AppendsRequest, AppendsResponse, Durability, Fault, GroupResult, HeadsRequest,
    OpenHandle,
};
use protocol::wire::gazette::{JournalSpec, Label};
use std::collections::BTreeMap;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

const WRITER: [u8; 16] = [7; 16];

/// A session, message by message.
struct Session {
    messages: mpsc::Sender<AppendsRequest>,
    answers: Streaming<AppendsResponse>,
    ready: Vec<GroupResult>,
}

impl Session {
    async fn begin(world: &World) -> Session {
        let mut session = Session::of(world.courant().await).await;
        session.send(first()).await;
        session
    }

    async fn of(mut client: CourantClient<Channel>) -> Session {
        let (messages, receiver) = mpsc::channel(16);
        let answers = client.appends(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        Session { messages, answers, ready: Vec::new() }
    }

    async fn send(&mut self, message: AppendsRequest) {
        self.messages.send(message).await.unwrap();
    }

    async fn open(&mut self, open: OpenHandle) {
        self.send(AppendsRequest { opens: vec![open], ..AppendsRequest::default() }).await;
    }

    async fn push(&mut self, groups: impl IntoIterator<Item = AppendGroup>) {
        let groups = groups.into_iter().collect();
        self.send(AppendsRequest { groups, ..AppendsRequest::default() }).await;
    }

    /// The next result.
    async fn next(&mut self) -> Result<GroupResult, Status> {
        while self.ready.is_empty() {
            match self.answers.message().await? {
                Some(message) => self.ready = message.results,
                None => return Err(Status::ok("the session is over")),
            }
        }
        Ok(self.ready.remove(0))
    }

    async fn results(&mut self, count: usize) -> Vec<GroupResult> {
        let mut results = Vec::new();
        for _ in 0..count {
            results.push(self.next().await.unwrap());
        }
        results
    }

    /// How it ends, once it has nothing more to answer.
    async fn end(&mut self) -> Status {
        loop {
            if let Err(status) = self.next().await {
                return status;
            }
        }
    }
}

fn first() -> AppendsRequest {
    AppendsRequest { writer_id: Bytes::from_static(&WRITER), ..AppendsRequest::default() }
}

fn handle(handle: u32, journal: &str) -> OpenHandle {
    let durability = Durability::Memory.into();
    OpenHandle { handle, journal: journal.into(), durability, ..OpenHandle::default() }
}

fn group(handle: u32, sequence: u64, content: &str) -> AppendGroup {
    let appends = u32::try_from(content.lines().count()).unwrap();
    AppendGroup { handle, sequence, appends, content: Bytes::from(content.to_owned()) }
}

async fn world(journals: &[&str]) -> World {
    let world = World::start().await;
    world.apply(journals.iter().map(|name| spec(name))).await;
    world
}

async fn head(world: &World, journal: &str) -> i64 {
    let request = HeadsRequest { journals: vec![journal.into()], ..HeadsRequest::default() };
    let heads = world.courant().await.heads(request).await.unwrap().into_inner().heads;
    heads.first().map_or(-1, |head| head.head)
}

#[tokio::test]
async fn groups_are_answered_in_the_order_of_each_handle() {
    let names: Vec<String> = (0..50).map(|number| format!("logs/{number:02}")).collect();
    let world = world(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for durability in [Durability::Memory, Durability::Disk] {
        let mut session = Session::begin(&world).await;
        for (number, name) in (0..).zip(&names) {
            let open = OpenHandle { durability: durability.into(), ..handle(number, name) };
            session.open(open).await;
        }
        let base = match durability {
            Durability::Disk => 10,
            _ => 0,
        };
        let mut ends = BTreeMap::new();
        for round in 0..10_u64 {
            let sequence = base + round;
            let content = format!("{round}: one\n{round}: two\n");
            session.push((0..50).map(|number| group(number, sequence, &content))).await;
            for result in session.results(50).await {
                assert_eq!(result.fault(), Fault::None, "{result:?}");
                assert_eq!((result.sequence, result.durability()), (sequence, durability));
                let end = ends.entry(result.handle).or_insert(result.begin);
                assert_eq!(result.begin, *end, "groups lie one behind the other");
                *end += i64::try_from(content.len()).unwrap();
                assert_eq!((result.end, result.head), (*end, *end));
                assert_ne!(result.life, 0);
            }
        }
        drop(session.messages);
        assert_eq!(session.answers.message().await.unwrap(), None, "it ends when its client does");
    }
    // Appends are counted, and not groups.
    let stream = TcpStream::connect(world.address).await.unwrap();
    let metrics = http::ask(stream, "GET", "/metrics", "").await.body;
    assert!(metrics.contains("gazette_spool_commits_total 2000\n"), "{metrics}");
    world.stop().await;
}

#[tokio::test]
async fn a_journal_that_fails_does_not_stop_the_others() {
    let world = world(&["logs/good"]).await;
    let label = Label { name: "courant/max-bytes".into(), value: "7".into(), prefix: false };
    let mut small = spec("logs/small");
    small.labels.get_or_insert_default().labels.push(label);
    world.apply([small, JournalSpec { max_append_rate: 10, ..spec("logs/slow") }]).await;
    let mut session = Session::begin(&world).await;
    for (number, name) in [(0, "logs/good"), (1, "logs/small"), (2, "no/such"), (4, "logs/slow")] {
        session.open(handle(number, name)).await;
    }
    // Case: the one that is slow waits, and is answered when it is paid for
    let slow = "x".repeat(25) + "\n";
    session.push([group(4, 1, &slow), group(4, 2, "y\n")]).await;
    session
        .push((1..=3).flat_map(|sequence| (0..3).map(move |h| group(h, sequence, "line\n"))))
        .await;
    let mut by_handle: BTreeMap<u32, Vec<GroupResult>> = BTreeMap::new();
    for result in session.results(9).await {
        by_handle.entry(result.handle).or_default().push(result);
    }
    // Case: the handle, what each of its groups is answered
    let none = Fault::None;
    let cases = [
        (0, [none, none, none]),
        (1, [none, Fault::OverSize, Fault::OverSize]),
        (2, [Fault::NotFound; 3]),
    ];
    for (number, expected) in cases {
        let found = &by_handle[&number];
        let faults: Vec<Fault> = found.iter().map(GroupResult::fault).collect();
        assert_eq!(faults, expected, "handle {number}");
        let sequences: Vec<u64> = found.iter().map(|result| result.sequence).collect();
        assert_eq!(sequences, [1, 2, 3]);
        let are_told = found.iter().all(|r| r.detail.is_empty() == (r.fault() == none));
        assert!(are_told, "{found:?}");
    }
    assert_eq!(by_handle[&1][1].limit, 7);
    // Case: a handle that refused takes groups when it is opened again, of another journal as well
    session.open(handle(2, "logs/good")).await;
    session.push([group(2, 4, "again\n")]).await;
    let again = session.next().await.unwrap();
    assert_eq!((again.handle, again.fault(), again.begin), (2, none, 15));
    for result in session.results(2).await {
        assert_eq!((result.handle, result.fault()), (4, none), "{result:?}");
    }
    assert_eq!(head(&world, "logs/small").await, 5);
    world.stop().await;
}

#[tokio::test]
async fn what_is_repeated_is_answered_and_not_made_again() {
    let mut world = world(&["logs/app"]).await;
    let content = |sequence: u64| format!("line {sequence}\n");
    let mut session = Session::begin(&world).await;
    session.open(handle(0, "logs/app")).await;
    for sequence in 1..=6 {
        session.push([group(0, sequence, &content(sequence))]).await;
        session.next().await.unwrap();
    }
    // Case: of a session that was cut, and of a broker that was started again, the last four
    for is_restarted in [false, true] {
        drop(session);
        if is_restarted {
            world = World::again(world.stop().await, |_| ()).await;
        }
        session = Session::begin(&world).await;
        session.open(handle(9, "logs/app")).await;
        session.push((3..=6).map(|sequence| group(9, sequence, &content(sequence)))).await;
        for (result, sequence) in session.results(4).await.iter().zip(3..) {
            let begin = 7 * (sequence - 1);
            assert_eq!(result.fault(), Fault::None, "{result:?}");
            assert_eq!((result.begin, result.end, result.repeated), (begin, begin + 7, true));
        }
        assert_eq!(head(&world, "logs/app").await, 42);
    }
    session.push([group(9, 7, "line 7\n")]).await;
    let result = session.next().await.unwrap();
    assert_eq!((result.begin, result.repeated), (42, false));
    // Case: one that is older is refused, and not made
    let mut session = Session::begin(&world).await;
    session.open(handle(0, "logs/app")).await;
    session.push([group(0, 3, "line 3\n")]).await;
    assert_eq!(session.next().await.unwrap().fault(), Fault::StaleSequence);
    assert_eq!(head(&world, "logs/app").await, 49);
    world.stop().await;
}

#[tokio::test]
async fn what_breaks_the_rules_ends_the_session() {
    let world = world(&["logs/app"]).await;
    let with = |opens: Vec<OpenHandle>, groups: Vec<AppendGroup>| AppendsRequest {
        opens,
        groups,
        ..first()
    };
    let app = || handle(0, "logs/app");
    let many = (0..16_385).map(|number| handle(number, "logs/app")).collect();
    let all = |sequences: [u64; 5]| sequences.map(|sequence| group(0, sequence, "x\n")).to_vec();
    let slow = OpenHandle { durability: 9, ..app() };
    let nothing = AppendGroup { content: Bytes::new(), ..group(0, 1, "x\n") };
    let none = AppendGroup { appends: 0, ..group(0, 1, "x\n") };
    let again = AppendsRequest { writer_id: Bytes::new(), ..first() };
    // Case: the messages, the code, what is said
    let invalid = Code::InvalidArgument;
    let cases = [
        (vec![again.clone()], invalid, "writer_id (of 0 bytes"),
        (vec![AppendsRequest { writer_id: "short".into(), ..first() }], invalid, "of 5 bytes"),
        (vec![first(), first()], invalid, "only the first message"),
        (vec![with(vec![], vec![group(3, 1, "x\n")])], invalid, "handle 3 is not open"),
        (vec![with(vec![handle(0, "logs/")], vec![])], invalid, "Journal: "),
        (vec![with(vec![slow], vec![])], invalid, "invalid durability (9)"),
        (vec![with(vec![app(), app()], vec![])], invalid, "opened with groups unanswered"),
        (vec![with(vec![app()], vec![nothing])], invalid, "no appends or no bytes"),
        (vec![with(vec![app()], vec![none])], invalid, "no appends or no bytes"),
        (vec![with(vec![app()], all([1, 2, 4, 5, 6]))], invalid, "group 4 follows 2"),
        (vec![with(vec![app()], all([1, 2, 3, 4, 5]))], invalid, "more than 4 groups"),
        (vec![with(many, vec![])], Code::ResourceExhausted, "at most 16384 handles"),
    ];
    for (messages, code, text) in cases {
        let mut session = Session::of(world.courant().await).await;
        for message in messages {
            session.send(message).await;
        }
        let status = session.end().await;
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(text), "{status}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answers_is_not_read() {
    let world = world(&["logs/other"]).await;
    // A journal that takes nothing: what is sent to it waits.
    world.apply([JournalSpec { max_append_rate: 1, ..spec("logs/stuck") }]).await;
    // On threads of its own, with which its connection ends.
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let url = world.url("");
    elsewhere.spawn(async move {
        let mut session = Session::of(CourantClient::connect(url).await.unwrap()).await;
        session.send(first()).await;
        let long = "x".repeat(128 << 10);
        for number in 1..=100 {
            session.open(handle(number, "logs/stuck")).await;
            session.push([group(number, 1, &long)]).await;
        }
        std::future::pending::<()>().await;
    });
    // 12.5 MiB are more than a session holds.
    until("the session is full", async || world.broker.staged().0 >= 8 << 20).await;
    // Case: others are served meanwhile, and the session gives all back when it is gone
    let mut other = Session::begin(&world).await;
    other.open(handle(0, "logs/other")).await;
    other.push([group(0, 1, "line\n")]).await;
    assert_eq!(other.next().await.unwrap().fault(), Fault::None);
    assert!(world.broker.staged().0 <= (8 << 20) + (256 << 10), "{:?}", world.broker.staged());
    elsewhere.shutdown_background();
    until("nothing is held", async || world.broker.staged().0 == 0).await;
    world.stop().await;
}

#[tokio::test]
async fn a_session_ends_when_the_broker_stops() {
    let world = world(&["logs/app"]).await;
    let mut session = Session::begin(&world).await;
    session.open(handle(0, "logs/app")).await;
    session.push([group(0, 1, "line\n")]).await;
    assert_eq!(session.next().await.unwrap().fault(), Fault::None);
    world.stop().await;
    assert_eq!(session.end().await.code(), Code::Unavailable);
}
