//! Row 18: the bytes that reach the disk for each byte appended.
//!
//! A disk of its own counts them, since /proc/PID/io can't: there a page cache that keeps a MiB
//! together (large folios) counts a MiB for each byte that makes it dirty. The journals have no
//! store: what a store gets is its own affair.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::Samples;
use crate::wire::Wire;
use bytes::Bytes;
use tests::filesystem::Ext4;
use tests::shell;
use tests::world::{self, Up};

/// Disks for small appends and for large ones. A segment of the log takes a 16th of a small disk,
/// and is written twice, with zeros before it is used: several of them shall be in the count.
const SMALL_DISK: &str = "128M";
const LARGE_DISK: &str = "4G";

/// A sync for each append is slow, and costs so much more that fewer tell it.
const SYNCED_SHARE: usize = 20;

/// A load of appends.
#[derive(Debug, Clone, Copy)]
struct Load {
    durability: &'static str,
    /// Bytes of an append.
    len: usize,
    in_flight: usize,
    count: usize,
    disk: &'static str,
}

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let small = |durability, in_flight, count: usize| {
        let count = count / in_flight * in_flight;
        Load { durability, len: 100, in_flight, count, disk: SMALL_DISK }
    };
    let large = |durability| Load {
        durability,
        len: 1 << 20,
        in_flight: 4,
        count: scale.large,
        disk: LARGE_DISK,
    };
    let loads = [
        small("memory", 64, scale.small),
        small("disk", 64, scale.small),
        small("disk", 1, scale.small / SYNCED_SHARE),
        large("memory"),
        large("disk"),
    ];
    loads.into_iter().map(case).collect()
}

fn case(load: Load) -> Case {
    let Load { durability, len, in_flight, .. } = load;
    let len = if len < 1 << 20 { format!("{len} B") } else { format!("{} MiB", len >> 20) };
    Case {
        row: 18,
        what: format!("written per byte, {len}, {durability}, {in_flight} in flight"),
        against: "",
        unit: "x",
        samples: Samples { ours: vec![amplification(load)], theirs: Vec::new() },
        wanted: Wanted::Told,
    }
}

fn amplification(load: Load) -> f64 {
    let disk = Ext4::new(load.disk);
    let data = disk.path().join("data");
    let mut up = Up::planned(&data, &["--durability", load.durability]);
    up.again();
    create_without_store(&up);
    let wire = Wire::new();
    let appends = wire.appends(&up.url(), "local/log", &Bytes::from(noise(load.len)));
    machine::until_idle(up.daemon().id());
    let before = written_bytes(&disk);
    wire.make(&appends, load.in_flight, load.count);
    machine::until_idle(up.daemon().id());
    let written = written_bytes(&disk) - before;
    written as f64 / (load.count * load.len) as f64
}

pub fn create_without_store(up: &Up) {
    let spec = "- name: local/log\n  replication: 1\n  fragment:\n    length: 1073741824\n    \
                compression_codec: NONE\n    stores: []\n    refresh_interval: 5m0s\n";
    world::apply_specs(up, spec);
}

/// Bytes that nothing on the way makes fewer.
pub fn noise(len: usize) -> Vec<u8> {
    let mut number = 1_u64;
    let next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Bytes written to a disk since it is there, all that is to be written among them.
fn written_bytes(disk: &Ext4) -> u64 {
    shell::bash(disk.path(), "sync -f .", &[]).ok();
    let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", disk.device())).unwrap();
    let sectors: u64 = stat.split_whitespace().nth(6).unwrap().parse().unwrap();
    sectors * 512
}
