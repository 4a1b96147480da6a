//! A client that misbehaves harms no other: beside each kind of it those that behave go on, the
//! broker's memory stays bounded, and what it held is free when it is gone.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod bad;
mod good;
mod tls;

use good::Good;
use tests::patience::until;
use tests::shell::cat;
use tests::world::{Up, attribute};
use tokio::runtime::Runtime;

/// What a misbehaving client may make the broker's memory grow by: its shares of `--max-memory`,
/// here a quarter of a gigabyte, and what 10,000 streams and their tasks take beside.
const GROWTH_MAX: u64 = 256 << 20;

const OPTIONS: [&str; 2] = ["--max-memory", "256M"];

/// Descriptors that may be open after a client is gone and were not before it came: a checkpoint
/// or a segment of the log, and the connection of a last look.
const LEFT_MAX: usize = 16;

/// A broker, clients that behave, and what the broker had before others came.
struct Trial {
    up: Up,
    runtime: Runtime,
    good: Good,
    before: Held,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    resident: u64,
    descriptors: usize,
}

fn held(up: &mut Up) -> Held {
    let directory = format!("/proc/{}/fd", up.daemon().id());
    let descriptors = std::fs::read_dir(directory).unwrap().count();
    Held { resident: up.daemon().resident(), descriptors }
}

impl Trial {
    #[track_caller]
    fn begin() -> Trial {
        let mut up = Up::with(&OPTIONS);
        let runtime = Runtime::new().unwrap();
        let mut good = Good::start(&up, &runtime);
        good.go_on();
        let before = held(&mut up);
        Trial { up, runtime, good, before }
    }

    /// What is to hold while somebody misbehaves.
    #[track_caller]
    fn beside(&mut self, what: &str) {
        self.good.go_on();
        // Case: one that comes now
        self.runtime.block_on(good::one_more(&self.up.url()));
        let now = held(&mut self.up);
        let grown = now.resident.saturating_sub(self.before.resident);
        report(&format!("{what}: {} MiB more, {} descriptors", grown >> 20, now.descriptors));
        assert!(grown < GROWTH_MAX, "{what}: {now:?}, before {:?}", self.before);
    }

    /// What is to hold when he is gone.
    #[track_caller]
    fn after(mut self) {
        let most = self.before.descriptors + LEFT_MAX;
        until("descriptors come back", || held(&mut self.up).descriptors <= most);
        self.good.go_on();
        self.good.end(&self.up);
    }
}

#[expect(clippy::print_stdout, reason = "docs/RELIABILITY.md has the figures")]
fn report(told: &str) {
    println!("{told}");
}

#[test]
fn appends_that_come_a_byte_at_a_time_and_never_end() {
    let mut trial = Trial::begin();
    let url = trial.up.url();
    let slow: Vec<_> = (0..100).map(|_| bad::SlowAppend::start(&trial.runtime, &url)).collect();
    let puts: Vec<_> =
        (0..100).map(|_| bad::slow_put(&trial.runtime, &trial.up.address())).collect();
    until("each has sent some", || slow.iter().all(|slow| slow.sent() > 5));
    trial.beside("200 slow appends");
    // Case: their own journal takes what others append to it
    trial.up.bash("echo line >> slow", &[]).ok();
    assert!(slow.iter().all(bad::SlowAppend::goes_on), "none was cut off while it sent");
    slow.into_iter().for_each(bad::SlowAppend::end);
    puts.into_iter().for_each(|put| put.abort());
    // Case: nothing of what they sent is there
    trial.up.bash("echo line >> slow", &[]).ok();
    assert_eq!(cat(&trial.up.file("slow")), b"line\nline\n");
    trial.after();
}

#[test]
fn readers_that_never_take_their_answer() {
    let mut trial = Trial::begin();
    let write = "head -c 67108864 /dev/urandom > big; stat -c %s big";
    assert_eq!(trial.up.bash(write, &[]).ok().text(), "67108864");
    let url = trial.up.url();
    let calls = bad::idle_reads(&trial.runtime, &url, "local/big", 200);
    let gets = bad::idle_gets(&trial.runtime, &trial.up.address(), "/local/big", 200);
    trial.beside("400 readers that take nothing");
    // Case: the same journal is read by others
    assert_eq!(trial.up.bash("cat big | wc -c", &[]).ok().text(), "67108864");
    drop((calls, gets));
    trial.after();
}

#[test]
fn ten_thousand_streams_over_few_connections() {
    let mut trial = Trial::begin();
    trial.up.bash("echo line > slow", &[]).ok();
    let streams = bad::Streams::open(&trial.runtime, &trial.up.url(), 2500);
    trial.beside("10,000 streams");
    streams.end();
    assert_eq!(attribute(&trial.up, "slow", "head"), "5");
    trial.after();
}

#[test]
fn ten_thousand_connections_that_say_nothing() {
    let mut trial = Trial::begin();
    let silent = bad::silent(&trial.runtime, &trial.up.address(), 10_000);
    assert_eq!(silent.len(), 10_000);
    trial.beside("10,000 silent connections");
    drop(silent);
    trial.after();
}

#[test]
fn garbage_of_every_kind() {
    let mut trial = Trial::begin();
    for round in 0..4 {
        for (what, bytes) in bad::garbage(round) {
            bad::say(&trial.runtime, &trial.up.address(), &bytes, 100);
            trial.beside(what);
        }
    }
    bad::wrong_messages(&trial.up.url());
    trial.beside("messages that are none");
    trial.after();
}
