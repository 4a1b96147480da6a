//! Row 14: what only an S3 store has, read for the first time through a remote mount, against the
//! same objects got by ranges side by side.

use crate::Scale;
use crate::bucket::{self, Bucket, Distance, Object, Road};
use crate::reading;
use crate::report::{self, Case, Wanted};
use crate::samples::{Samples, since};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tests::daemon::Daemon;
use tests::ground;
use tests::mountdir::MountDir;
use tests::patience;
use tests::shell;
use tests::world::{self, Up};
use tokio::time::Instant;

/// Bytes of a fragment, as of a journal that Gazette keeps, and of the whole.
const FRAGMENT: u64 = 64 << 20;
const LEN_MAX: u64 = 512 << 20;

/// Connections and bytes of a part by which Courant fetches (`PARTS_AT_ONCE`, `PART_LEN` in
/// index/src/store/parts.rs), and others of which the best counts where the store is near.
const PART: u64 = 4 << 20;
const SIDE_BY_SIDE: usize = 4;
const WAYS: [(usize, u64); 4] = [(2, 4 << 20), (4, 4 << 20), (4, 16 << 20), (8, 64 << 20)];

/// What a cloud's store is like from a machine beside it: a first byte after some 20 ms, and some
/// 90 MB/s of one connection.
const CLOUD: Distance = Distance { latency: Duration::from_millis(20), rate: 90e6 };

/// Each turn is a mount of its own.
const TURNS_MAX: usize = 7;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let Some(bucket) = Bucket::start() else {
        report::complain("row 14 is left out: there is no MinIO (scripts/test-stores install s3)");
        return Vec::new();
    };
    let len = scale.file_len.min(LEN_MAX);
    let mut cases = Vec::new();
    for distance in [None, Some(CLOUD)] {
        let road = distance.map(|distance| Road::open(bucket.port(), distance));
        let place = if road.is_some() { "far" } else { "near" };
        let store = Bucket::store(place, road.as_ref().map_or(bucket.port(), Road::port));
        let journals = Journals::stored(&store, len);
        let turns = scale.repeats.min(TURNS_MAX);
        let theirs = |codec: &str| {
            let objects = journals.objects(codec);
            let ways: &[_] = if road.is_some() { &[(SIDE_BY_SIDE, PART)] } else { &WAYS };
            let rate = |way: &(usize, u64)| bucket::get_all(&objects, way.0, way.1) / 1e6;
            ways.iter().map(rate).fold(0.0, f64::max)
        };
        let read = |file: &Path| {
            let begun = Instant::now();
            let read = reading::read_up_to(file, 1 << 20, u64::MAX);
            assert!(read == len, "{read} bytes of {len} are read");
            len as f64 / 1e6 / since(begun)
        };
        let ours = |codec: &str, source: &[&str]| {
            let cold = Cold::mount(source);
            read(&cold.mount.path().join(codec))
        };
        let broker: &[&str] = &["--broker", &journals.up.url(), "--prefix", "local/"];
        let cache = [broker, &["--cache"]].concat();
        let straight: &[&str] = &["--bucket", &store, "--prefix", "local/"];
        let case = |what: &str, samples: Samples, wanted| Case {
            row: 14,
            what: format!("cold read, {place} S3{what}"),
            against: "ranged gets of the objects, in parallel",
            unit: "MB/s",
            samples,
            wanted,
        };
        let measured = |codec: &str, source: &[&str]| {
            Samples::by_turns(turns, || ours(codec, source), || theirs(codec))
        };
        let wanted = Wanted::AtLeast(0.8);
        cases.push(case("", measured("none", broker), wanted));
        cases.push(case(", --cache", measured("none", &cache), wanted));
        cases.push(case(", --bucket", measured("none", straight), wanted));
        let own = journals.up.file("none");
        let owned = Samples::by_turns(turns, || read(&own), || theirs("none"));
        cases.push(case(", broker's own mount", owned, Wanted::Told));
        // Decompressed bytes of ours beside compressed ones of theirs.
        cases.push(case(", zstd", measured("zstandard", broker), Wanted::Told));
    }
    cases
}

/// Journals of the same bytes, of which the broker has nothing local.
struct Journals {
    up: Up,
}

impl Journals {
    fn stored(store: &str, len: u64) -> Journals {
        let folder = ground::folder("bench-");
        let up = Up::start();
        reading::write_log(&folder.path().join("log"), len);
        for codec in CODECS {
            let spec = format!(
                "name: local/{codec}\nreplication: 1\nfragment: {{length: {FRAGMENT}, \
                 compression_codec: {}, stores: ['{store}'], refresh_interval: 5m, \
                 flush_interval: 0s}}\n",
                codec.to_uppercase()
            );
            world::apply_specs(&up, &spec);
            let journal = up.file(codec);
            let append = "cat log >> \"$1\"";
            shell::bash(folder.path(), append, &[journal.to_str().unwrap()]).ok();
        }
        let journals = Journals { up };
        patience::until("all is stored", || {
            CODECS.iter().all(|codec| journals.stored_len(codec) == len)
        });
        let Journals { mut up } = journals;
        // What is stored goes from the broker's disk, but for some of its log.
        up.with_further(&["--local-budget", "1M"]);
        patience::until("nothing is local", || local_len(up.data()) < FRAGMENT * 2);
        Journals { up }
    }

    /// Its fragments in order, each with a URL that is good for as long as all takes.
    fn fragments(&self, codec: &str) -> Vec<Value> {
        let journal = format!("local/{codec}");
        let asked = ["fragments", &journal, "--format", "json", "--url-ttl", "2h"];
        let told = world::journals(&self.up, &asked).ok().text();
        let all: Value = serde_json::from_str(&told).unwrap();
        all["fragments"].as_array().cloned().unwrap_or_default()
    }

    fn stored_len(&self, codec: &str) -> u64 {
        let fragments = self.fragments(codec);
        fragments.iter().filter(|told| told["signed_url"].is_string()).map(len_of).sum()
    }

    fn objects(&self, codec: &str) -> Vec<Object> {
        let object = |told: &Value| {
            let url = told["signed_url"].as_str().unwrap();
            let len = match codec {
                "none" => len_of(told),
                _ => object_len(url),
            };
            Object::new(url, len)
        };
        self.fragments(codec).iter().map(object).collect()
    }
}

const CODECS: [&str; 2] = ["none", "zstandard"];

fn len_of(told: &Value) -> u64 {
    let offset = |name: &str| told["spec"][name].as_str().map_or(0, |text| text.parse().unwrap());
    offset("end") - offset("begin")
}

/// The bytes of an object, which a get of its first one tells.
fn object_len(url: &str) -> u64 {
    let line = "curl -sf -r 0-0 -o /dev/null -D - \"$1\" | tr -d '\\r' \
                | sed -n 's|^[Cc]ontent-[Rr]ange: .*/||p'";
    shell::bash(Path::new("/"), line, &[url]).ok().text().parse().unwrap()
}

/// Bytes of files in a directory, without their holes.
fn local_len(directory: &Path) -> u64 {
    let told = shell::bash(directory, "du -s --block-size=1 . | cut -f1", &[]).ok().text();
    told.parse().unwrap()
}

/// A mount that has read nothing yet.
struct Cold {
    // Before the mount, so that it ends before the mount is taken away.
    _daemon: Daemon,
    mount: MountDir,
    _cache: TempDir,
}

impl Cold {
    /// With a cache of its own, where `--cache` is the last of the options.
    fn mount(options: &[&str]) -> Cold {
        let (mount, cache) = (MountDir::new(), ground::folder("cache-"));
        let mut command = vec!["mount"];
        command.extend(options);
        if command.ends_with(&["--cache"]) {
            command.push(cache.path().to_str().unwrap());
        }
        command.push(mount.path().to_str().unwrap());
        let daemon = Daemon::start(&command);
        Cold { _daemon: daemon, mount, _cache: cache }
    }
}
