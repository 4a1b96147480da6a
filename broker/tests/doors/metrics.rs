//! What Prometheus finds.

use crate::world::{SECRET, World, append_of, token, until, with_keys};
use broker::server::Settings;
use client::token::Capability;
use protocol::wire::gazette;
use protocol::wire::gazette::journal_client::JournalClient;
use std::collections::BTreeMap;

/// The series of a scrape, by their names with labels.
async fn scrape(world: &World, target: &str, more: &str) -> BTreeMap<String, f64> {
    let answer = world.ask("GET", target, more).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain"), "{answer:?}");
    let lines = answer.body.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').expect(line);
        (name.to_owned(), value.parse().expect(line))
    });
    series.collect()
}

#[tokio::test]
async fn series_have_gazettes_names_and_some_more() {
    let world = World::start(Settings::default()).await;
    world.create("logs/app", b"").await;
    let mut client = JournalClient::new(world.channel().await);
    client.append(tokio_stream::iter(append_of("logs/app", b"hello"))).await.unwrap();
    client.append(tokio_stream::iter(append_of("no/such", b"hello"))).await.unwrap();
    let read = gazette::ReadRequest { journal: "logs/app".into(), ..Default::default() };
    let mut read = client.read(read).await.unwrap().into_inner();
    while read.message().await.unwrap().is_some() {}
    let mut list = client.list(gazette::ListRequest::default()).await.unwrap().into_inner();
    while list.message().await.unwrap().is_some() {}
    client.apply(gazette::ApplyRequest::default()).await.unwrap();
    let broken = tokio_stream::iter([gazette::AppendRequest::default()]);
    client.append(broken).await.unwrap_err();

    let found = scrape(&world, "/debug/metrics", "").await;
    // Case: the series, and its value
    let exact = [
        ("gazette_journal_server_started_totals{operation=\"Append\"}", 3.0),
        ("gazette_journal_server_started_totals{operation=\"Replicate\"}", 0.0),
        ("gazette_journal_server_completed_totals{operation=\"Append\",status=\"ok\"}", 1.0),
        (
            "gazette_journal_server_completed_totals\
             {operation=\"Append\",status=\"JOURNAL_NOT_FOUND\"}",
            1.0,
        ),
        ("gazette_journal_server_completed_totals{operation=\"Append\",status=\"<error>\"}", 1.0),
        ("gazette_journal_server_started_totals{operation=\"Read\"}", 1.0),
        (
            "gazette_journal_server_completed_totals\
             {operation=\"Read\",status=\"OFFSET_NOT_YET_AVAILABLE\"}",
            1.0,
        ),
        ("gazette_journal_server_completed_totals{operation=\"List\",status=\"ok\"}", 1.0),
        ("gazette_journal_server_completed_totals{operation=\"Apply\",status=\"ok\"}", 1.0),
        ("gazette_spool_commits_total", 1.0),
        ("gazette_spool_commit_bytes_total", 5.0),
        ("gazette_spool_rollbacks_total", 0.0),
        ("gazette_spool_rollback_bytes_total", 0.0),
        ("gazette_append_bytes_total{journal=\"logs/app\"}", 5.0),
        ("gazette_read_bytes_total{journal=\"logs/app\"}", 5.0),
        ("gazette_spool_persisted_total", 0.0),
        ("gazette_write_head{journal=\"logs/app\"}", 5.0),
        ("courant_journal_unpersisted_bytes{journal=\"logs/app\"}", 5.0),
        ("courant_journal_first_offset{journal=\"logs/app\"}", 0.0),
        ("courant_append_duration_seconds_count", 1.0),
        ("courant_read_bytes_total", 5.0),
        ("courant_persisted_bytes_total", 0.0),
        ("courant_journals", 1.0),
        ("courant_unpersisted_bytes", 5.0),
        ("courant_unsynced_bytes", 0.0),
        ("courant_journals_with_gaps", 0.0),
        ("courant_staged_bytes{place=\"disk\"}", 0.0),
    ];
    for (name, value) in exact {
        assert_eq!(found.get(name), Some(&value), "{name} in {found:#?}");
    }
    let present = [
        "courant_local_bytes",
        "courant_disk_free_bytes",
        "courant_disk_size_bytes",
        "gazette_store_active",
        "courant_append_duration_seconds_bucket{le=\"+Inf\"}",
        "courant_journal_local_bytes{journal=\"logs/app\"}",
        "courant_journal_modified_seconds{journal=\"logs/app\"}",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    ];
    for name in present {
        assert!(found.contains_key(name), "{name} in {found:#?}");
    }
    let other = scrape(&world, "/metrics", "").await;
    assert!(found.keys().eq(other.keys()));
    world.stop().await;
}

#[tokio::test]
async fn names_of_journals_are_for_those_who_may_list_them() {
    let world = World::start(with_keys(SECRET)).await;
    world.create("logs/app", b"hello").await;
    world.create("else/where", b"hello").await;
    let with = |capability, selector| {
        format!("Authorization: Bearer {}\r\n", token(capability, selector, 60))
    };
    // Case: the token, and which journals are told
    let cases: [(String, &[&str]); 4] = [
        (String::new(), &[]),
        (with(Capability::READ, ""), &[]),
        (with(Capability::LIST, ""), &["else/where", "logs/app"]),
        (with(Capability::LIST, "name:prefix=logs/"), &["logs/app"]),
    ];
    for (more, names) in cases {
        let found = scrape(&world, "/metrics", &more).await;
        assert_eq!(found.get("courant_journals"), Some(&2.0));
        assert_eq!(found.get("courant_stores_failing"), Some(&0.0));
        let failures = found.keys().any(|name| name.starts_with("courant_store_failures"));
        assert_eq!(failures, !names.is_empty(), "{more}");
        let operations = found.keys().any(|name| name.starts_with("gazette_store_operation"));
        assert_eq!(operations, !names.is_empty(), "{more}");
        let heads = found.keys().filter_map(|name| name.strip_prefix("gazette_write_head"));
        let expected = names.iter().map(|name| format!("{{journal=\"{name}\"}}"));
        assert_eq!(heads.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    world.stop().await;
}

/// The series of gazette-spec 6.4, each with what it is of a broker that did what the test did.
/// `None`: it must be there, whatever it is.
const OF_GAZETTE: [(&str, Option<f64>); 51] = [
    ("gazette_journal_server_started_totals{operation=\"Append\"}", Some(2.0)),
    ("gazette_journal_server_completed_totals{operation=\"Append\",status=\"ok\"}", Some(1.0)),
    ("gazette_write_head{journal=\"logs/app\"}", Some(2000.0)),
    ("gazette_spool_commits_total", Some(1.0)),
    ("gazette_spool_commit_bytes_total", Some(2000.0)),
    ("gazette_spool_rollbacks_total", Some(0.0)),
    ("gazette_spool_rollback_bytes_total", Some(0.0)),
    ("gazette_spool_completed_total", Some(1.0)),
    ("gazette_spool_persisted_total", Some(1.0)),
    ("gazette_store_active", Some(1.0)),
    ("gazette_store_operation_total{PUT}", Some(1.0)),
    ("gazette_store_operation_total{EXISTS}", None),
    ("gazette_store_operation_total{ALL}", None),
    ("gazette_store_operation_total{GET}", Some(1.0)),
    ("gazette_store_operation_total{SIGN}", Some(1.0)),
    ("gazette_store_operation_total{REMOVE}", Some(1.0)),
    ("gazette_store_operation_duration_seconds_count{PUT}", Some(1.0)),
    ("gazette_store_operation_duration_seconds_bucket{PUT,le=\"0.01\"}", None),
    ("gazette_store_put_bytes_total{encoding=\"none\",store=\"file:///\"}", Some(2000.0)),
    ("gazette_store_list_items_count_count{store=\"file:///\"}", None),
    ("gazette_store_list_items_count_sum{store=\"file:///\"}", None),
    ("gazette_store_health_check_total{status=\"success\",store=\"file:///\"}", None),
    ("gazette_allocator_desired_replication_slots", Some(2.0)),
    ("gazette_allocator_items", Some(2.0)),
    ("gazette_allocator_members", Some(1.0)),
    ("gazette_append_bytes_total{journal=\"logs/app\"}", Some(2000.0)),
    ("gazette_read_bytes_total{journal=\"logs/old\"}", Some(6.0)),
    ("gazette_fragment_open_total{codec=\"NONE\",journal=\"logs/old\"}", Some(1.0)),
    ("gazette_fragment_open_bytes_total{codec=\"NONE\",journal=\"logs/old\"}", Some(10.0)),
    ("gazette_read_fragment_bytes_total{codec=\"NONE\",journal=\"logs/old\"}", Some(6.0)),
    ("gazette_discard_fragment_bytes_total{codec=\"NONE\",journal=\"logs/old\"}", Some(0.0)),
    ("grpc_server_started_total{APPEND}", Some(2.0)),
    ("grpc_server_msg_received_total{APPEND}", Some(4.0)),
    ("grpc_server_msg_sent_total{APPEND}", Some(1.0)),
    ("grpc_server_handling_seconds_count{APPEND}", Some(2.0)),
    ("grpc_server_handling_seconds_bucket{APPEND,le=\"0.005\"}", None),
    ("grpc_server_handled_total{grpc_code=\"OK\",APPEND}", Some(1.0)),
    ("grpc_server_handled_total{grpc_code=\"Unknown\",APPEND}", Some(1.0)),
    ("grpc_server_started_total{READ}", Some(1.0)),
    ("grpc_server_msg_received_total{READ}", Some(1.0)),
    ("grpc_server_msg_sent_total{READ}", Some(2.0)),
    ("grpc_server_handled_total{grpc_code=\"OK\",READ}", Some(1.0)),
    ("grpc_server_handled_total{grpc_code=\"OK\",LIST}", Some(0.0)),
    ("grpc_server_started_total{HEALTH}", Some(1.0)),
    ("grpc_server_handled_total{grpc_code=\"OK\",HEALTH}", Some(1.0)),
    ("process_cpu_seconds_total", None),
    ("process_max_fds", None),
    ("process_open_fds", None),
    ("process_resident_memory_bytes", None),
    ("process_start_time_seconds", None),
    ("process_virtual_memory_bytes", None),
];

/// The labels of calls that the table names in short.
const METHODS: [(&str, &str, &str, &str); 4] = [
    ("APPEND", "Append", "protocol.Journal", "client_stream"),
    ("READ", "Read", "protocol.Journal", "server_stream"),
    ("LIST", "List", "protocol.Journal", "server_stream"),
    ("HEALTH", "Check", "grpc.health.v1.Health", "unary"),
];

/// The same of requests of stores.
const REQUESTS: [(&str, &str); 6] = [
    ("PUT", "put"),
    ("EXISTS", "exists"),
    ("ALL", "list"),
    ("GET", "get"),
    ("SIGN", "signget"),
    ("REMOVE", "remove"),
];

fn spelled_out(series: &str) -> String {
    let series = REQUESTS.iter().fold(series.to_owned(), |series, (short, operation)| {
        let labels = format!("operation=\"{operation}\",status=\"success\",store=\"file:///\"");
        series.replace(short, &labels)
    });
    METHODS.iter().fold(series, |series, (short, method, service, kind)| {
        let labels =
            format!("grpc_method=\"{method}\",grpc_service=\"{service}\",grpc_type=\"{kind}\"");
        series.replace(short, &labels)
    })
}

#[tokio::test]
async fn each_series_of_gazette_is_there_where_its_meaning_is() {
    let world = World::start(Settings::default()).await;
    // A fragment that lies in the store alone, and one that is put there.
    let dir = world.files().join("logs/old");
    std::fs::create_dir_all(&dir).unwrap();
    let name = "0000000000000000-000000000000000a-87acec17cd9dcd20a716cc2cf67417b71c8a7016.raw";
    std::fs::write(dir.join(name), b"0123456789").unwrap();
    world.create("logs/old", b"").await;
    world
        .create_with("logs/app", |spec| {
            (spec.fragment.length, spec.fragment.codec) = (1024, protocol::Codec::None);
        })
        .await;
    let mut client = JournalClient::new(world.channel().await);
    let content = [b'x'; 2000];
    client.append(tokio_stream::iter(append_of("logs/app", &content))).await.unwrap();
    client.append(tokio_stream::iter([gazette::AppendRequest::default()])).await.unwrap_err();
    let read = gazette::ReadRequest {
        journal: "logs/old".into(),
        offset: 2,
        end_offset: 8,
        ..Default::default()
    };
    let mut read = client.read(read).await.unwrap().into_inner();
    while read.message().await.unwrap().is_some() {}
    let mut health = tonic_health::pb::health_client::HealthClient::new(world.channel().await);
    health.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap();
    let served = world.broker.served(&"logs/app".parse().unwrap()).unwrap();
    until("it is persisted", async || served.stat().persisted.get() == 2000).await;
    let store = world.broker.stores().get("file:///").unwrap();
    let listed = store.list(served.journal()).await.unwrap();
    store.delete(&listed[0]).await.unwrap();

    let found = scrape(&world, "/metrics", "").await;
    let is_wrong = |(series, value): &(&str, Option<f64>)| match found.get(&spelled_out(series)) {
        Some(is) => value.is_some_and(|value| value != *is),
        None => true,
    };
    let wrong: Vec<_> = OF_GAZETTE.into_iter().filter(is_wrong).collect();
    assert_eq!(wrong, []);
    world.stop().await;
}
