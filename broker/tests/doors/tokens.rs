//! Tokens at each door: who is let in, what he sees, and for how long.

use crate::world::{SECRET, World, append_of, put, token, with_keys};
use bytes::Bytes;
use client::token::Capability;
use client::{Append, Connect, Error, Journals, Read, Remote};
use index::clock::ManualClock;
use protocol::request::{ApplyRequest, Change, Expect};
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{self, Fault};
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{self, Status};
use protocol::{Journal, JournalSpec, LabelSet, Offset};
use std::sync::Arc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request};

/// The calls of both packages, and what each needs.
const CALLS: [(&str, Capability); 21] = [
    ("List", Capability::LIST),
    ("Apply", Capability::APPLY),
    ("Read", Capability::READ),
    ("Append", Capability::APPEND),
    ("Replicate", Capability::REPLICATE),
    ("ListFragments", Capability::READ),
    ("FragmentStoreHealth", Capability::READ),
    ("courant Append", Capability::APPEND),
    ("courant Hold", Capability::APPLY),
    ("courant Appends", Capability::APPEND),
    ("courant AppendEach", Capability::APPEND),
    ("courant Sync", Capability::APPEND),
    ("courant Heads", Capability::LIST),
    ("courant Create", Capability::APPLY),
    ("courant Delete", Capability::APPLY),
    ("courant Status", Capability::LIST),
    ("courant Prune", Capability::APPLY),
    ("courant Templates", Capability::LIST),
    ("courant PutTemplate", Capability::APPLY),
    ("courant DeleteTemplate", Capability::APPLY),
    ("courant Create of nothing", Capability::APPLY),
];

pub fn bearer(token: Option<&str>) -> Option<MetadataValue<Ascii>> {
    token.map(|token| format!("Bearer {token}").parse().unwrap())
}

/// Makes a call, and says whether it was let in: any answer but `Unauthenticated` will do.
async fn call(channel: &Channel, name: &str, token: Option<&str>) -> Result<(), String> {
    let header = bearer(token);
    let with = move |mut request: Request<()>| {
        if let Some(header) = &header {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    };
    let mut theirs = JournalClient::with_interceptor(channel.clone(), with.clone());
    let mut ours = CourantClient::with_interceptor(channel.clone(), with);
    let journal = || "logs/app".to_owned();
    let messages = || tokio_stream::iter(append_of("logs/app", b"x"));
    let parts = || {
        let request = courant::AppendRequest {
            journal: journal(),
            content: Bytes::from_static(b"x"),
            commit: true,
            ..Default::default()
        };
        tokio_stream::iter([request])
    };
    let none = || tokio_stream::iter([gazette::ReplicateRequest::default()]);
    let answered = match name {
        "List" => theirs.list(gazette::ListRequest::default()).await.map(drop),
        "Apply" => theirs.apply(gazette::ApplyRequest::default()).await.map(drop),
        "Read" => {
            let request = gazette::ReadRequest { journal: journal(), ..Default::default() };
            theirs.read(request).await.map(drop)
        }
        "Append" => theirs.append(messages()).await.map(drop),
        "Replicate" => theirs.replicate(none()).await.map(drop),
        "ListFragments" => {
            let request = gazette::FragmentsRequest { journal: journal(), ..Default::default() };
            theirs.list_fragments(request).await.map(drop)
        }
        "FragmentStoreHealth" => {
            let fragment_store = "file:///".to_owned();
            let request =
                gazette::FragmentStoreHealthRequest { fragment_store, ..Default::default() };
            theirs.fragment_store_health(request).await.map(drop)
        }
        "courant Append" => ours.append(parts()).await.map(drop),
        "courant Appends" => ours.appends(tokio_stream::empty()).await.map(drop),
        "courant AppendEach" => ours.append_each(tokio_stream::empty()).await.map(drop),
        "courant Hold" => ours.hold(tokio_stream::empty()).await.map(drop),
        "courant Sync" => {
            ours.sync(courant::SyncRequest { journal: journal(), offset: 0 }).await.map(drop)
        }
        "courant Heads" => ours.heads(courant::HeadsRequest::default()).await.map(drop),
        "courant Create" => {
            ours.create(courant::CreateRequest { journal: journal() }).await.map(drop)
        }
        "courant Create of nothing" => {
            ours.create(courant::CreateRequest { journal: String::new() }).await.map(drop)
        }
        "courant Delete" => {
            let request =
                courant::DeleteRequest { journal: journal(), dry_run: true, ..Default::default() };
            ours.delete(request).await.map(drop)
        }
        "courant Status" => ours.status(courant::StatusRequest::default()).await.map(drop),
        "courant Prune" => {
            let request = courant::PruneRequest { journal: journal(), dry_run: true };
            ours.prune(request).await.map(drop)
        }
        "courant Templates" => ours.templates(courant::TemplatesRequest {}).await.map(drop),
        "courant PutTemplate" => {
            ours.put_template(courant::PutTemplateRequest::default()).await.map(drop)
        }
        "courant DeleteTemplate" => {
            let prefix = "none/".to_owned();
            ours.delete_template(courant::DeleteTemplateRequest { prefix }).await.map(drop)
        }
        other => panic!("no such call: {other}"),
    };
    match answered {
        Err(status) if status.code() == Code::Unauthenticated => Err(status.message().to_owned()),
        _ => Ok(()),
    }
}

#[test]
fn every_call_of_the_wire_is_tried_here() {
    let pool = prost_reflect::DescriptorPool::decode(protocol::wire::DESCRIPTORS).unwrap();
    for service in pool.services() {
        for method in service.methods() {
            let (service, method) = (service.full_name(), method.name());
            let ours = if service == "courant.v1.Courant" { "courant " } else { "" };
            let name = format!("{ours}{method}");
            let tried = CALLS.iter().find(|(call, _)| *call == name);
            let (_, needed) = tried.unwrap_or_else(|| panic!("{name} is not in the table"));
            assert_eq!(Capability::of_call(service, method), Some(*needed), "{name}");
        }
    }
}

#[tokio::test]
async fn each_call_asks_for_its_capability() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    let channel = world.channel().await;
    for (name, needed) in CALLS {
        let only = token(needed, "", 60);
        let all_but = token(Capability(!needed.0), "", 60);
        let lacks = format!("the bearer token lacks the capability {needed}");
        // Case: the token, and why the call is refused
        let cases = [
            (None, Some("no authorization: ")),
            (Some("nonsense"), Some("the bearer token is refused: it is no JWT")),
            (Some(&*all_but), Some(&*lacks)),
            (Some(&*only), None),
        ];
        for (token, expected) in cases {
            match (call(&channel, name, token).await, expected) {
                (Ok(()), None) => {}
                (Err(text), Some(why)) => assert!(text.starts_with(why), "{name}: {text}"),
                (found, _) => panic!("{name} {token:?}: {found:?}"),
            }
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn who_shows_no_token_is_let_in_by_a_key_of_one_zero() {
    let world = World::start(with_keys("c2VjcmV0 AA==")).await;
    let channel = world.channel().await;
    for (name, needed) in CALLS {
        assert_eq!(call(&channel, name, None).await, Ok(()), "{name}");
        assert_eq!(call(&channel, name, Some(&token(needed, "", 60))).await, Ok(()), "{name}");
        // Case: what is shown must be right
        assert!(call(&channel, name, Some("nonsense")).await.is_err(), "{name}");
    }
    world.stop().await;
}

pub fn journal(name: &str) -> Journal {
    name.parse().unwrap()
}

/// A world with a journal that the token sees, and one that it does not.
async fn two() -> (World, String) {
    let world = World::start(with_keys(SECRET)).await;
    let labels = LabelSet::default().with("team", "a").unwrap();
    world.create_labelled("logs/mine", labels, b"mine").await;
    world.create("logs/other", b"other").await;
    (world, token(Capability::ALL, "team=a", 60))
}

#[tokio::test]
async fn a_journal_that_a_token_does_not_see_is_not_there() {
    let (world, token) = two().await;
    let remote = world.remote(&token);
    let read = |name| Read { journal: journal(name), life: None, offset: Offset::ZERO, max: 9 };
    assert_eq!(remote.read(read("logs/mine")).await.unwrap(), "mine");
    let missing = [
        remote.read(read("logs/other")).await.map(drop),
        remote.stat(&journal("logs/other")).await.map(drop),
        remote.sync(&journal("logs/other"), Offset::ZERO).await,
        remote.append(Append::new(journal("logs/other"), Bytes::from("x"))).await.map(drop),
        remote.purge(&journal("logs/other")).await,
    ];
    for (at, found) in missing.into_iter().enumerate() {
        assert!(matches!(found, Err(Error::NotFound(_))), "{at}: {found:?}");
    }
    let listed = remote.list("").await.unwrap();
    assert_eq!(listed.iter().map(|stat| stat.journal.as_str()).collect::<Vec<_>>(), ["logs/mine"]);
    let specs = remote.list_specs("name:prefix=logs/".parse().unwrap()).await.unwrap();
    assert_eq!(specs.len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn gazettes_answers_show_nothing_of_it() {
    let (world, token) = two().await;
    let header = bearer(Some(&token)).unwrap();
    let mut client =
        JournalClient::with_interceptor(world.channel().await, move |mut request: Request<()>| {
            request.metadata_mut().insert("authorization", header.clone());
            Ok(request)
        });
    let name = || "logs/other".to_owned();
    let read = gazette::ReadRequest { journal: name(), ..Default::default() };
    let read = client.read(read).await.unwrap().into_inner().message().await.unwrap().unwrap();
    let fragments = gazette::FragmentsRequest { journal: name(), ..Default::default() };
    let fragments = client.list_fragments(fragments).await.unwrap().into_inner();
    let append = client.append(tokio_stream::iter(append_of("logs/other", b"x"))).await;
    let append = append.unwrap().into_inner();
    for (status, header) in [
        (read.status(), read.header.clone()),
        (fragments.status(), fragments.header.clone()),
        (append.status(), append.header.clone()),
    ] {
        let route = header.unwrap().route.unwrap();
        assert_eq!((status, route.members.len()), (Status::JournalNotFound, 0));
        assert!(route.endpoints.is_empty());
    }
    world.stop().await;
}

#[tokio::test]
async fn changes_are_refused_whole() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/one", b"").await;
    let remote = world.remote(&token(Capability::ALL, "name:prefix=logs/", 60));
    let refused = remote.apply(put(&world, ["logs/two", "else/where"])).await.unwrap_err();
    assert!(matches!(refused, Error::Unauthorized(_)), "{refused}");
    assert!(refused.to_string().contains("not authorized to else/where"), "{refused}");
    assert!(remote.stat(&journal("logs/two")).await.is_err());
    remote.apply(put(&world, ["logs/two", "logs/three"])).await.unwrap();
    // Case: a deletion is authorized by its name alone
    let tagged = world.remote(&token(Capability::ALL, "team=a", 60));
    let change = protocol::request::Change::Delete {
        journal: journal("logs/two"),
        expect: protocol::request::Expect::Any,
    };
    let request = protocol::request::ApplyRequest { changes: vec![change] };
    let refused = tagged.apply(request.clone()).await.unwrap_err();
    assert!(matches!(refused, Error::Unauthorized(_)), "{refused}");
    remote.apply(request).await.unwrap();
    // Case: a creation by template, by the labels that it would have
    assert!(remote.create(&journal("logs/new")).await.is_ok());
    let refused = remote.create(&journal("else/new")).await.unwrap_err();
    assert!(refused.to_string().contains("not authorized to else/new"), "{refused}");
    world.stop().await;
}

#[tokio::test]
async fn the_whole_broker_is_not_for_a_token_of_some_journals() {
    let (world, token) = two().await;
    let channel = world.channel().await;
    let whole =
        ["courant Status", "courant Templates", "courant PutTemplate", "courant DeleteTemplate"];
    for name in whole {
        let refused = call(&channel, name, Some(&token)).await.unwrap_err();
        assert!(refused.contains("this is about all of them"), "{name}: {refused}");
    }
    // Case: what is about one journal is answered as for one that is not there
    let header = bearer(Some(&token)).unwrap();
    let mut ours = CourantClient::new(channel);
    let mut request =
        Request::new(courant::PruneRequest { journal: "logs/other".to_owned(), dry_run: true });
    request.metadata_mut().insert("authorization", header);
    let pruned = ours.prune(request).await.unwrap().into_inner();
    assert_eq!(pruned.fault(), Fault::NotFound);
    world.stop().await;
}

#[tokio::test]
async fn plain_http_asks_for_tokens_too() {
    let (world, all) = two().await;
    let listing = token(Capability::LIST, "", 60);
    let late = token(Capability::ALL, "", 0);
    assert!(late != all);
    let put = "Content-Length: 1\r\n\r\nx";
    let list = "Content-Length: 2\r\n\r\n{}";
    let read = "Content-Length: 24\r\n\r\n{\"journal\":\"logs/other\"}";
    // Case: the request, its token, and the status
    let cases = [
        ("GET", "/logs/mine", "", None, 401),
        ("HEAD", "/logs/mine", "", None, 401),
        ("PUT", "/logs/mine", put, None, 401),
        ("GET", "/logs/mine", "", Some("nonsense"), 401),
        ("GET", "/logs/mine", "", Some(&*listing), 403),
        ("PUT", "/logs/mine", put, Some(&*listing), 403),
        ("GET", "/logs/mine", "", Some(&*all), 206),
        ("HEAD", "/logs/mine", "", Some(&*all), 206),
        ("PUT", "/logs/mine", put, Some(&*all), 204),
        ("GET", "/logs/other", "", Some(&*all), 404),
        ("HEAD", "/logs/other", "", Some(&*all), 404),
        ("PUT", "/logs/other", put, Some(&*all), 404),
        ("GET", "/logs/other", "Range: bytes=0-\r\n", Some(&*all), 404),
        ("POST", "/v1/journals/list", list, None, 401),
        ("POST", "/v1/journals/read", list, Some(&*listing), 401),
        ("POST", "/v1/journals/list", list, Some(&*listing), 200),
        ("POST", "/v1/journals/read", read, Some(&*all), 200),
        // Case: those who probe have no token
        ("GET", "/debug/ready", "", None, 200),
        ("GET", "/metrics", "", None, 200),
    ];
    for (method, target, more, token, expected) in cases {
        let header = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let more = header.unwrap_or_default() + more;
        let answer = world.ask(method, target, &more).await;
        assert_eq!(answer.status, expected, "{method} {target} {more:?}: {answer:?}");
        if expected == 401 && !target.starts_with("/v1/") {
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn no_journal_becomes_ones_own_by_a_label() {
    let (world, token) = two().await;
    let remote = world.remote(&token);
    let spec = |name: &str| {
        let spec = world.broker.key_space().propose(&journal(name)).unwrap();
        let labels = LabelSet::default().with("team", "a").unwrap();
        Box::new(JournalSpec { labels, ..spec })
    };
    let upsert = |name, expect| Change::Upsert { spec: spec(name), expect };
    let revision = world.broker.served(&journal("logs/other")).unwrap().entry().mod_revision;
    // Case: the change, and whether it is made
    let cases = [
        (upsert("logs/other", Expect::Any), false),
        (upsert("logs/other", Expect::Absent), false),
        (upsert("logs/other", Expect::At(revision)), false),
        (upsert("logs/mine", Expect::Any), true),
        (upsert("logs/new", Expect::Any), true),
        (upsert("logs/new", Expect::Any), true),
    ];
    for (at, (change, is_made)) in cases.into_iter().enumerate() {
        match remote.apply(ApplyRequest { changes: vec![change] }).await {
            Ok(_) => assert!(is_made, "case {at}"),
            Err(Error::Unauthorized(text)) => {
                assert!(!is_made && text.contains("not authorized to logs/other"), "{at}: {text}");
            }
            Err(other) => panic!("case {at}: {other}"),
        }
    }
    let labels = world.broker.served(&journal("logs/other")).unwrap().entry().spec.labels.clone();
    assert_eq!(labels, LabelSet::default());
    // Case: a selector that matches by what is not there does not delete what is
    let others = world.remote(&crate::world::token(Capability::ALL, "!team", 60));
    let journal = journal("logs/mine");
    let delete = Change::Delete { journal: journal.clone(), expect: Expect::Any };
    let refused = others.apply(ApplyRequest { changes: vec![delete] }).await.unwrap_err();
    assert!(matches!(refused, Error::Unauthorized(_)), "{refused}");
    assert!(world.broker.served(&journal).is_some());
    world.stop().await;
}

#[tokio::test]
async fn who_is_refused_comes_to_read_why() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    // More than what fits into the sockets' buffers: it must be taken before the answer is read.
    let body = "x".repeat(16 << 20);
    let put = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let answer = world.ask("PUT", "/logs/app", &put).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer"));
    world.stop().await;
}

#[tokio::test]
async fn a_client_with_the_keys_signs_for_itself() {
    let world = World::start(with_keys("b3RoZXI=,c2VjcmV0")).await;
    world.create("logs/app", b"hello").await;
    let clock = Arc::new(ManualClock::at_us(crate::world::NOW * 1_000_000));
    let signing = world.connect().with_keys(SECRET.parse().unwrap(), clock.clone());
    let remote = Remote::connect(&signing).unwrap();
    assert_eq!(remote.stat(&journal("logs/app")).await.unwrap().head.get(), 5);
    remote.append(Append::new(journal("logs/app"), Bytes::from("!"))).await.unwrap();
    remote.apply(put(&world, ["logs/one", "logs/two"])).await.unwrap();
    // Case: keys that the broker does not have, and none
    let strange = world.connect().with_keys("c3RyYW5nZQ==".parse().unwrap(), clock);
    for connect in [strange, Connect::new(&world.url).unwrap()] {
        let refused = Remote::connect(&connect).unwrap().probe().await.unwrap_err();
        assert!(matches!(refused, Error::Unauthorized(_)), "{refused}");
        assert!(refused.to_string().contains(&world.url), "{refused}");
    }
    world.stop().await;
}
