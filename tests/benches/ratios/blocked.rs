//! Row 23: what a thousand readers cost that wait at the heads of journals, against a mount where
//! a few do.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, since};
use crate::syncing::quantile;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tests::patience;
use tests::world::Up;
use tokio::time::Instant;

const MANY: usize = 1000;
const FEW: usize = 4;

/// Journals among which the readers are.
const JOURNALS: usize = 10;

/// Appends whose latency makes one sample, and bytes of each.
const APPENDS: usize = 500;
const LEN: usize = 100;

/// How long the daemon's time is counted while nothing happens.
const IDLE: Duration = Duration::from_secs(10);

/// What came before is over after this.
const SETTLING: Duration = Duration::from_secs(2);

/// What the daemon may hold in memory, in MiB, and use of a core while nothing happens, in percent.
const MEMORY_MAX: f64 = 64.0;
const SHARE_MAX: f64 = 5.0;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let none = Blocked::start(0);
    let (mut many, mut few) = (Blocked::start(MANY), Blocked::start(FEW));
    let against = |against, what: &str, unit, samples, wanted| Case {
        row: 23,
        what: format!("{MANY} blocked readers: {what}"),
        against,
        unit,
        samples,
        wanted,
    };
    let case = |what: &str, unit, samples, wanted| {
        against("a mount with 4 blocked readers", what, unit, samples, wanted)
    };
    let once = |of: &mut dyn FnMut(&mut Blocked) -> f64, many: &mut Blocked, few: &mut Blocked| {
        Samples { ours: vec![of(many)], theirs: vec![of(few)] }
    };
    let mut cases = Vec::new();
    let share = once(&mut Blocked::share, &mut many, &mut few);
    cases.push(case("idle, of a core", "%", share, Wanted::NoMore(SHARE_MAX)));
    let (mut middle, mut slow) = (Samples::default(), Samples::default());
    for _ in 0..scale.repeats {
        let (ours, theirs) = (many.appends(), none.appends());
        for (samples, part) in [(&mut middle, 0.5), (&mut slow, 0.99)] {
            samples.ours.push(quantile(&ours, part));
            samples.theirs.push(quantile(&theirs, part));
        }
    }
    for (name, samples) in [("append, p50", middle), ("append, p99", slow)] {
        cases.push(against("a mount with none", name, "us", samples, Wanted::Told));
    }
    for (name, signal) in [("Ctrl-C", Signal::INT), ("SIGKILL", Signal::KILL)] {
        let ends = Samples::by_turns(FEW / 2, || many.end_one(signal), || few.end_one(signal));
        cases.push(case(&format!("{name} to end"), "ms", ends, Wanted::Told));
    }
    let threads = once(&mut |up| up.up.daemon().threads() as f64, &mut many, &mut few);
    cases.push(case("threads", "", threads, Wanted::Told));
    let mebibyte = f64::from(1 << 20);
    let mut resident = |up: &mut Blocked| up.up.daemon().resident_max() as f64 / mebibyte;
    let memory = once(&mut resident, &mut many, &mut few);
    cases.push(case("memory", "MiB", memory, Wanted::NoMore(MEMORY_MAX)));
    cases
}

/// A mount with readers that wait.
struct Blocked {
    // Ended before the mount goes.
    readers: Vec<Reader>,
    up: Up,
}

impl Blocked {
    fn start(count: usize) -> Blocked {
        let up = Up::start();
        for number in 0..JOURNALS {
            std::fs::write(up.file(&format!("log-{number}")), "first\n").unwrap();
        }
        let reader = |number: usize| {
            let name = format!(".courant/follow/log-{}", number % JOURNALS);
            let mut command = Command::new("cat");
            command.arg(up.file(&name)).stdin(Stdio::null()).stdout(Stdio::null());
            Reader(command.spawn().unwrap())
        };
        let readers: Vec<Reader> = (0..count).map(reader).collect();
        patience::until("all readers wait", || readers.iter().all(Reader::waits));
        patience::pause(SETTLING);
        Blocked { readers, up }
    }

    /// Percents of a core that the daemon uses while nothing happens.
    fn share(&mut self) -> f64 {
        let process = self.up.daemon().id();
        let (before, begun) = (machine::ticks(process), Instant::now());
        patience::pause(IDLE);
        (machine::ticks(process) - before) as f64 / since(begun)
    }

    /// Microseconds of appends to a journal that nobody reads, ascending.
    fn appends(&self) -> Vec<f64> {
        let path = self.up.file("other");
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        let one = || {
            let begun = Instant::now();
            file.write_all(&[b'x'; LEN]).unwrap();
            since(begun) * 1e6
        };
        let mut all: Vec<f64> = std::iter::repeat_with(one).take(APPENDS).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    /// Milliseconds from a signal to the end of the reader that gets it.
    fn end_one(&mut self, signal: Signal) -> f64 {
        let mut reader = self.readers.pop().expect("some are left");
        let begun = Instant::now();
        reader.signal(signal);
        let ended = reader.0.wait();
        assert!(!ended.unwrap().success());
        since(begun) * 1e3
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // All before any is waited for: the daemon takes its time to see each.
        self.readers.iter().for_each(|reader| reader.signal(Signal::KILL));
    }
}

/// A `cat` of a follow view.
struct Reader(Child);

impl Reader {
    /// Whether it waits for an answer of the daemon's.
    fn waits(&self) -> bool {
        let wait = std::fs::read_to_string(format!("/proc/{}/wchan", self.0.id()));
        wait.is_ok_and(|wait| wait.contains("request_wait_answer"))
    }

    /// It has not been waited for, so that its number is its own.
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}
