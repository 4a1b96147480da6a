//! Two thousand journals that are written at once over two hundred connections: no error, memory
//! that does not grow with time, and no journal that is left behind.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use bytes::Bytes;
use protocol::wire::gazette::AppendRequest;
use protocol::wire::gazette::journal_client::JournalClient;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tests::ground;
use tests::patience::{pause, until};
use tests::world::{self, Up};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const JOURNALS: usize = 2000;
const CONNECTIONS: usize = 200;

/// Seconds in CI; `LOAD_SECONDS` asks for more.
const SECONDS: usize = 15;

/// Appends of each journal by which they can be compared.
const ENOUGH: u64 = 25;

/// Bytes of an append.
const LEN: usize = 100;

/// What memory may grow by between the middle and the end: appends that wait for a sync come and
/// go, and an allocator keeps some.
const GROWTH_MAX: u64 = 64 << 20;

#[test]
fn two_thousand_journals_are_written_at_once() {
    let mut up = Up::start();
    create(&up);
    let runtime = Runtime::new().unwrap();
    let url = up.url();
    let (stop, stopped) = watch::channel(false);
    let done: Arc<Vec<AtomicU64>> = Arc::new((0..JOURNALS).map(|_| AtomicU64::new(0)).collect());
    let connections: Vec<_> = (0..CONNECTIONS)
        .map(|number| runtime.spawn(write(url.clone(), number, done.clone(), stopped.clone())))
        .collect();
    let half = Duration::from_secs(ground::number("LOAD_SECONDS", SECONDS) as u64) / 2;
    let resident = |up: &mut Up| up.daemon().resident();
    pause(half);
    let middle = resident(&mut up);
    pause(half);
    let end = resident(&mut up);
    let all = || done.iter().map(|done| done.load(Ordering::Relaxed)).sum::<u64>();
    // Of a few each nobody can tell which are behind.
    until("there is a load", || all() >= ENOUGH * JOURNALS as u64);
    let mut appends: Vec<u64> = done.iter().map(|done| done.load(Ordering::Relaxed)).collect();
    stop.send_replace(true);
    connections.into_iter().for_each(|connection| runtime.block_on(connection).unwrap());
    appends.sort_unstable();
    let (slowest, median) = (appends[0], appends[JOURNALS / 2]);
    let told = format!(
        "{} appends, the slowest journal {slowest}, the median {median}; memory {} and {} MiB",
        appends.iter().sum::<u64>(),
        middle >> 20,
        end >> 20
    );
    report(&told);
    assert!(slowest * 2 >= median, "one is left behind: {told}");
    assert!(end <= middle + GROWTH_MAX, "memory grows: {told}");
    // What each was told is there, and nothing else.
    let len: u64 = up.bash("stat -c %s log-0", &[]).ok().text().parse().unwrap();
    assert_eq!(len, done[0].load(Ordering::Relaxed) * LEN as u64);
}

/// Appends to its part of the journals, one in flight each, and counts those of each.
async fn write(
    url: String,
    connection: usize,
    done: Arc<Vec<AtomicU64>>,
    stopped: watch::Receiver<bool>,
) {
    let client = JournalClient::connect(url).await.unwrap();
    let journals = (0..JOURNALS).filter(|number| number % CONNECTIONS == connection);
    let writers: Vec<_> = journals
        .map(|number| {
            let (mut client, done, stopped) = (client.clone(), done.clone(), stopped.clone());
            tokio::spawn(async move {
                let journal = format!("local/log-{number}");
                let first = AppendRequest { journal, ..AppendRequest::default() };
                let content = Bytes::from_static(&[b'x'; LEN]);
                let content = AppendRequest { content, ..AppendRequest::default() };
                let messages = [first, content, AppendRequest::default()];
                while !*stopped.borrow() {
                    let appended = client.append(tokio_stream::iter(messages.clone())).await;
                    assert_eq!(appended.unwrap().into_inner().status, 0, "an append is refused");
                    done[number].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn create(up: &Up) {
    let spec = |number| world::spec(&format!("log-{number}"), 1 << 20, "ZSTANDARD", "");
    world::apply_specs(up, &(0..JOURNALS).map(spec).collect::<String>());
}

#[expect(clippy::print_stdout, reason = "docs/RELIABILITY.md has the figures")]
fn report(told: &str) {
    println!("{told}");
}
