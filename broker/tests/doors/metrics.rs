//! What Prometheus finds.

use crate::world::{SECRET, World, append_of, token, with_keys};
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
        let heads = found.keys().filter_map(|name| name.strip_prefix("gazette_write_head"));
        let expected = names.iter().map(|name| format!("{{journal=\"{name}\"}}"));
        assert_eq!(heads.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    world.stop().await;
}
