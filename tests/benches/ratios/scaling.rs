//! Rows 17, 19, 21 and 26: a broker with many journals and many stored fragments, against one with
//! a single journal.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, since};
use crate::wire::{Asking, Wire};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::daemon::Daemon;
use tests::ground;
use tests::mountdir::MountDir;
use tests::patience;
use tests::shell;
use tokio::time::Instant;

/// Journals of the large data set, each with [`FRAGMENTS`] stored fragments.
const JOURNALS: u32 = 10_000;
const FRAGMENTS: u32 = 10;

/// Starts are slow and alike: a few tell them.
const STARTS: usize = 5;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let (many, one) = (DataSet::new(JOURNALS), DataSet::new(1));
    let mut cases = vec![start_case(&many, &one)];
    let (many, one) = (Served::start(&many), Served::start(&one));
    // All stores were listed.
    machine::until_idle(many.daemon.id());
    machine::until_idle(one.daemon.id());
    let wire = Wire::new();
    cases.push(read_case(scale, &wire, &many, &one));
    cases.push(list_case(scale, &wire, &many));
    cases.push(Case {
        row: 19,
        what: format!("{JOURNALS} journals: memory"),
        against: "",
        unit: "MiB",
        samples: told(vec![many.daemon.resident_max() as f64 / f64::from(1 << 20)]),
        wanted: Wanted::Told,
    });
    cases
}

/// Row 21: what `ls -l` makes of a mount of that broker, against a local directory.
pub fn measure_walk(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let many = DataSet::new(JOURNALS);
    let served = Served::start(&many);
    machine::until_idle(served.daemon.id());
    let folder = ground::folder("bench-");
    for number in 0..JOURNALS {
        std::fs::write(folder.path().join(format!("log-{number}")), "bytes\n").unwrap();
    }
    let mount = MountDir::new();
    let path = mount.path().to_str().unwrap();
    let _mounted = Daemon::start(&["mount", "--broker", &served.url, "--prefix", "", path]);
    // Where the journals are is a matter of their names.
    let walk = |root: &Path| {
        let begun = Instant::now();
        let ran = shell::bash(root, "ls -lR . | grep -c '^-'", &[]).ok();
        let took = since(begun);
        assert_eq!(ran.text(), JOURNALS.to_string());
        took * 1e3
    };
    vec![Case {
        row: 21,
        what: format!("ls -lR of {JOURNALS} journals, remote mount"),
        against: "as many files on the local file system",
        unit: "ms",
        samples: Samples::by_turns(
            scale.repeats.min(STARTS),
            || walk(mount.path()),
            || walk(folder.path()),
        ),
        wanted: Wanted::Told,
    }]
}

/// How long an idle daemon's time is counted.
const IDLE: Duration = Duration::from_secs(20);

/// Row 17: what of a core and of memory journals take of which nothing is asked.
pub fn measure_idle(_scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let many = DataSet::new(JOURNALS);
    let served = Served::start(&many);
    let process = served.daemon.id();
    machine::until_idle(process);
    let (before, begun) = (machine::ticks(process), Instant::now());
    patience::pause(IDLE);
    let share = (machine::ticks(process) - before) as f64 / since(begun);
    let memory = served.daemon.resident_max() as f64 / f64::from(1 << 20);
    let case = |what, unit, number, wanted| Case {
        row: 17,
        what: format!("{JOURNALS} idle journals: {what}"),
        against: "",
        unit,
        samples: told(vec![number]),
        wanted,
    };
    vec![
        case("of a core", "%", share, Wanted::NoMore(1.0)),
        case("memory", "MiB", memory, Wanted::NoMore(256.0)),
    ]
}

/// Row 26: a read in the middle of a journal of ever more fragments.
pub fn measure_fragments(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let one = DataSet::of(1, 1);
    let wire = Wire::new();
    let rival = Served::start(&one);
    machine::until_idle(rival.daemon.id());
    let case = |count: u32| {
        let many = DataSet::of(1, count);
        let served = Served::start(&many);
        machine::until_idle(served.daemon.id());
        let (mut reads, mut rival) = (wire.asking(&served.url), wire.asking(&rival.url));
        let middle = i64::from(count / 2) * FRAGMENT_LEN;
        let round = async || {
            [read_at(&mut reads, &name(0), middle).await, read_at(&mut rival, &name(0), 0).await]
        };
        let samples = wire.latencies(scale, round);
        Case {
            row: 26,
            what: format!("a read among {count} fragments, p50"),
            against: "one fragment",
            unit: "us",
            samples,
            wanted: Wanted::Told,
        }
    };
    [100, 10_000, 100_000].map(case).into()
}

fn told(ours: Vec<f64>) -> Samples {
    Samples { ours, theirs: Vec::new() }
}

/// From the start of the process to the line that says that it serves.
fn start_case(many: &DataSet, one: &DataSet) -> Case {
    let start = |data: &DataSet| {
        let begun = Instant::now();
        let served = Served::start(data);
        let took = since(begun);
        drop(served);
        took * 1e3
    };
    Case {
        row: 19,
        what: format!("{JOURNALS} journals, {} fragments: start", JOURNALS * FRAGMENTS),
        against: "a broker of one journal",
        unit: "ms",
        samples: Samples::by_turns(STARTS, || start(many), || start(one)),
        wanted: Wanted::Told,
    }
}

fn read_case(scale: Scale, wire: &Wire, many: &Served, one: &Served) -> Case {
    let last = JOURNALS / 2 + 17;
    let mut reads = wire.asking(&many.url);
    let mut rival = wire.asking(&one.url);
    let (many, one) = (name(last), name(0));
    let round = async || [read(&mut reads, &many).await, read(&mut rival, &one).await];
    let samples = wire.latencies(scale, round);
    Case {
        row: 19,
        what: format!("{JOURNALS} journals: read in the middle, p50"),
        against: "a broker of one journal",
        unit: "us",
        samples,
        wanted: Wanted::AtMost(1.5),
    }
}

/// Bytes of a fragment.
const FRAGMENT_LEN: i64 = 16;

/// Reads the fifth fragment of a journal from its middle on.
async fn read(asking: &mut Asking, journal: &str) -> f64 {
    read_at(asking, journal, 4 * FRAGMENT_LEN).await
}

/// Reads the fragment that begins at an offset from its middle on.
async fn read_at(asking: &mut Asking, journal: &str, begin: i64) -> f64 {
    let begun = Instant::now();
    let content = asking.read(journal, begin + FRAGMENT_LEN / 2).await;
    let took = since(begun);
    assert_eq!(&content[..8], b"bytes..\n", "the middle of a fragment");
    took
}

fn list_case(scale: Scale, wire: &Wire, many: &Served) -> Case {
    let mut asking = wire.asking(&many.url);
    let list = async || {
        let begun = Instant::now();
        assert_eq!(asking.list().await, JOURNALS as usize);
        [since(begun) * 1e3]
    };
    let [all] = wire.rounds(scale.repeats, list);
    Case {
        row: 19,
        what: format!("{JOURNALS} journals: list of all, by pages"),
        against: "",
        unit: "ms",
        samples: told(all),
        wanted: Wanted::Told,
    }
}

/// The name of a journal of a data set (`broker/examples/many_journals.rs`).
fn name(at: u32) -> String {
    format!("many/{:04}/{:04}", at / 100, at % 100)
}

struct DataSet {
    folder: TempDir,
}

impl DataSet {
    fn new(journals: u32) -> DataSet {
        DataSet::of(journals, FRAGMENTS)
    }

    fn of(journals: u32, fragments: u32) -> DataSet {
        let folder = ground::folder("many-");
        let mut make = Command::new(ground::example("many_journals"));
        make.arg(data(folder.path())).args([journals, fragments].map(|count| count.to_string()));
        let made = make.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        DataSet { folder }
    }
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

struct Served {
    daemon: Daemon,
    url: String,
}

impl Served {
    fn start(data_set: &DataSet) -> Served {
        let data = data(data_set.folder.path());
        let data = data.to_str().unwrap();
        let daemon = Daemon::start(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
        let line = daemon.ready_line();
        let url = line.split_whitespace().last().unwrap().to_owned();
        Served { daemon, url }
    }
}
