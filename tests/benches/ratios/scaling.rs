//! Rows 19 and 21: a broker with many journals and many stored fragments, against one with a single
//! journal.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, median, since};
use crate::wire::{Asking, Wire};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tests::daemon::Daemon;
use tests::ground;
use tests::mountdir::MountDir;
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
    let mut samples = Samples::default();
    for _ in 0..scale.repeats {
        let many = name(last);
        let round = async || [read(&mut reads, &many).await, read(&mut rival, &name(0)).await];
        let [ours, theirs] = wire.rounds(scale.requests, round).map(|all| median(&all) * 1e6);
        samples.ours.push(ours);
        samples.theirs.push(theirs);
    }
    Case {
        row: 19,
        what: format!("{JOURNALS} journals: read in the middle, p50"),
        against: "a broker of one journal",
        unit: "us",
        samples,
        wanted: Wanted::AtMost(1.5),
    }
}

async fn read(asking: &mut Asking, journal: &str) -> f64 {
    let begun = Instant::now();
    let content = asking.read(journal, 72).await;
    let took = since(begun);
    assert_eq!(&content[..8], b"bytes..\n", "offset 72 is the middle of the fifth fragment");
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
        let folder = ground::folder("many-");
        let mut make = Command::new(machine::example("many_journals"));
        make.arg(data(folder.path())).args([journals, FRAGMENTS].map(|count| count.to_string()));
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
