//! Row 18: the bytes that reach the disk for each byte appended. The journals have no store: what a
//! store gets is its own affair.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::Samples;
use crate::wire::Wire;
use bytes::Bytes;
use std::time::Duration;
use tests::ground;
use tests::patience;
use tests::world::{self, Up};

/// How often it is looked for idleness, which includes the syncs of each second.
const SETTLED: Duration = Duration::from_secs(2);

/// How many appends are made for each of 1 MiB, and in flight.
const SMALL_PER_LARGE: usize = 100;
const SMALL_IN_FLIGHT: usize = 64;
const LARGE_IN_FLIGHT: usize = 4;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let small = (100, scale.large * SMALL_PER_LARGE, SMALL_IN_FLIGHT);
    let large = (1 << 20, scale.large, LARGE_IN_FLIGHT);
    let each = ["memory", "disk"].map(|durability| {
        [small, large].map(|(len, count, in_flight)| {
            case(durability, len, amplification(durability, len, count, in_flight))
        })
    });
    each.into_iter().flatten().collect()
}

fn case(durability: &str, len: usize, amplification: f64) -> Case {
    let len = if len < 1 << 20 { format!("{len} B") } else { format!("{} MiB", len >> 20) };
    Case {
        row: 18,
        what: format!("bytes to disk per byte, {durability}, {len}"),
        against: "",
        unit: "x",
        samples: Samples { ours: vec![amplification], theirs: Vec::new() },
        wanted: Wanted::Told,
    }
}

fn amplification(durability: &str, len: usize, count: usize, in_flight: usize) -> f64 {
    let mut up = Up::with(&["--durability", durability]);
    create_without_store(&up);
    let process = up.daemon().id();
    let wire = Wire::new();
    let appends = wire.appends(&up.url(), "local/log", &Bytes::from(noise(len)));
    machine::until_idle(process);
    let before = machine::written_bytes(process);
    let count = count / in_flight * in_flight;
    wire.make(&appends, in_flight, count);
    patience::pause(SETTLED);
    machine::until_idle(process);
    let written = machine::written_bytes(process) - before;
    written as f64 / (count * len) as f64
}

fn create_without_store(up: &Up) {
    let folder = ground::folder("bench-");
    let specs = folder.path().join("specs.yaml");
    let spec = "- name: local/log\n  replication: 1\n  fragment:\n    length: 1073741824\n    \
                compression_codec: NONE\n    stores: []\n    refresh_interval: 5m0s\n";
    std::fs::write(&specs, spec).unwrap();
    world::journals(up, &["apply", "--specs", specs.to_str().unwrap()]).ok();
}

/// Bytes that nothing on the way makes fewer.
fn noise(len: usize) -> Vec<u8> {
    let mut number = 1_u64;
    let next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}
