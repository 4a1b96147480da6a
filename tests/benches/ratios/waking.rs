//! Row 10: from an append to who waits at the head, against the two calls alone. Row 27: memory for
//! those who wait.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::rivals::NullBroker;
use crate::samples::{Samples, since};
use crate::wire::{Appends, Following, Wire};
use bytes::Bytes;
use tests::world::Up;
use tokio::time::Instant;

/// Bytes of an append.
const LEN: usize = 100;

/// Reads that wait, in the order of measuring: they are not ended.
const WAITING: [usize; 3] = [100, 1000, 5000];

/// Row 10.
pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let up = Up::with(&["--durability", "memory"]);
    up.bash("echo begin >> log", &[]).ok();
    let (wire, null) = (Wire::new(), NullBroker::start());
    let (mut ours, mut theirs) = (Leg::begin(&wire, &up.url()), Leg::begin(&wire, &null.url()));
    vec![Case {
        row: 10,
        what: format!("{LEN}-byte Append to blocked reader, memory, p50"),
        against: "a call, and a message of a stream",
        unit: "us",
        samples: wire.latencies(scale, async || [ours.timed().await, theirs.timed().await]),
        wanted: Wanted::AtMost(1.3),
    }]
}

/// Who appends and who waits, over a connection each.
struct Leg {
    appends: Appends,
    following: Following,
}

impl Leg {
    fn begin(wire: &Wire, url: &str) -> Leg {
        let appends = wire.appends(url, "local/log", &Bytes::from(vec![b'x'; LEN]));
        let mut asking = wire.asking(url);
        let following = wire.run_one(async {
            let mut following = asking.follow("local/log").await;
            following.content().await;
            following
        });
        Leg { appends, following }
    }

    /// Seconds from the begin of an append to its content.
    async fn timed(&mut self) -> f64 {
        let begun = Instant::now();
        let (_, waited) = tokio::join!(self.appends.timed(), async {
            self.following.content().await;
            since(begun)
        });
        waited
    }
}

/// Row 27.
pub fn measure_memory(_scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut up = Up::start();
    up.bash("echo begin >> log", &[]).ok();
    let wire = Wire::new();
    let mut waiting: Vec<Following> = Vec::new();
    let cases = WAITING.map(|count| {
        while waiting.len() < count {
            // A connection has a bound of streams.
            let mut asking = wire.asking(&up.url());
            wire.run_one(async {
                for _ in 0..STREAMS.min(count - waiting.len()) {
                    let mut following = asking.follow("local/log").await;
                    following.content().await;
                    waiting.push(following);
                }
            });
        }
        Case {
            row: 27,
            what: format!("{count} reads that wait: memory"),
            against: "",
            unit: "MiB",
            samples: Samples {
                ours: vec![up.daemon().resident_max() as f64 / f64::from(1 << 20)],
                theirs: Vec::new(),
            },
            wanted: Wanted::Told,
        }
    });
    cases.into()
}

/// Reads of one connection.
const STREAMS: usize = 100;
