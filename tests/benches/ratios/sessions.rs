//! Row 24: small appends through a session, against as many messages of the same bytes to a service
//! that drops them.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::rivals::NullBroker;
use crate::samples::{Samples, since};
use bytes::Bytes;
use client::{Append, Appender, Remote};
use protocol::Journal;
use protocol::wire::gazette::AppendRequest;
use protocol::wire::gazette::journal_client::JournalClient;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tests::world::Up;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// Bytes of an append.
const LEN: usize = 100;

/// What is appended between two looks at the time.
const ROUND: usize = 1000;

const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let runtime = Runtime::new().unwrap();
    let null = NullBroker::start();
    let mut cases = Vec::new();
    for (durability, wanted) in [("memory", 300_000.0), ("disk", 50_000.0)] {
        let up = Up::with(&["--durability", durability]);
        for journals in [1, 100] {
            let ours = || runtime.block_on(appends(&up, journals, scale.seconds));
            let theirs = || runtime.block_on(dropped(&null.url(), scale.seconds));
            cases.push(Case {
                row: 24,
                what: format!("{LEN}-byte session append, {durability}, journals: {journals}"),
                against: "messages of a client-streaming RPC that does nothing",
                unit: "/s",
                samples: Samples::by_turns(scale.repeats, ours, theirs),
                wanted: Wanted::NoLess(wanted),
            });
        }
    }
    cases
}

/// Appends a second that were acknowledged, in turn to so many journals.
async fn appends(up: &Up, journals: usize, seconds: f64) -> f64 {
    let names = (0..journals).map(|number| format!("local/session-{number}"));
    let names: Vec<Journal> = names.map(|name| name.parse().unwrap()).collect();
    let remote = Arc::new(Remote::new(&up.url()).unwrap());
    for name in &names {
        client::Journals::create(&*remote, name).await.unwrap();
    }
    // Each client is a writer of its own.
    static CLIENTS: AtomicU64 = AtomicU64::new(0);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&CLIENTS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    let appender = Appender::new(remote, id, PATIENCE);
    let content = Bytes::from(vec![b'x'; LEN]);
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(seconds);
    let mut done = 0;
    while Instant::now() < until {
        for name in names.iter().cycle().skip(done % journals).take(ROUND) {
            drop(appender.push(Append::new(name.clone(), content.clone())).await);
        }
        done += ROUND;
    }
    appender.flush().await.unwrap();
    done as f64 / since(begun)
}

/// Messages a second that were taken.
async fn dropped(url: &str, seconds: f64) -> f64 {
    let mut client = JournalClient::connect(url.to_owned()).await.unwrap();
    let content = Bytes::from(vec![b'x'; LEN]);
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(seconds);
    let (counter, count) = tokio::sync::oneshot::channel();
    let rounds = std::iter::from_fn(move || (Instant::now() < until).then_some(ROUND));
    let mut sent = 0;
    let mut counter = Some(counter);
    let messages = rounds
        .map(Some)
        .chain([None])
        .flat_map(move |round| {
            let Some(round) = round else {
                counter.take().unwrap().send(sent).unwrap();
                return 0..0;
            };
            sent += round;
            0..round
        })
        .map(move |_| AppendRequest { content: content.clone(), ..AppendRequest::default() });
    client.append(tokio_stream::iter(messages)).await.unwrap();
    count.await.unwrap() as f64 / since(begun)
}
