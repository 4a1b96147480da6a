//! Row 11: from an append to the output of an unmodified `tail -f` on a terminal, against tail's
//! own polling.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, median};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tests::ground;
use tests::patience;
use tests::world::Up;
use tokio::time::Instant;

/// Between two appends: twenty of them a second.
const PACE: Duration = Duration::from_millis(50);

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let up = Up::start();
    let folder = ground::folder("bench-");
    let (journal, local) = (up.file("log"), folder.path().join("log"));
    // tail takes a file system that it knows as local to have inotify, and then does not poll.
    let polling = ["---disable-inotify"];
    vec![Case {
        row: 11,
        what: "append to output of tail -f, terminal, p50".to_owned(),
        against: "GNU tail's own polling, of a local file",
        unit: "ms",
        samples: Samples::by_turns(
            // A turn takes seconds, whoever is measured.
            scale.repeats.min(3),
            || latency(&journal, &[], scale.followed),
            || latency(&local, &polling, scale.followed),
        ),
        wanted: Wanted::TimesFaster(100.0),
    }]
}

/// The median, in milliseconds, from an append until tail has shown it.
fn latency(path: &Path, options: &[&str], count: usize) -> f64 {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(b"begin\n").unwrap();
    let tail = Tail::start(path, options);
    // The last line that is there is shown, and then tail follows.
    patience::until("tail shows what is there", || tail.seen() == 1);
    let mut appended = Vec::with_capacity(count);
    for number in 0..count {
        patience::pause(PACE);
        let line = format!("line {number}\n");
        appended.push(Instant::now());
        file.write_all(line.as_bytes()).unwrap();
    }
    patience::until("tail shows all lines", || tail.seen() == count + 1);
    let shown = tail.shown.lock().unwrap();
    let latencies = appended.iter().zip(&shown[1..]);
    let latencies: Vec<f64> = latencies
        .map(|(appended, shown)| shown.duration_since(*appended).as_secs_f64() * 1e3)
        .collect();
    median(&latencies)
}

/// A `tail -f` on a terminal of its own.
struct Tail {
    child: Child,
    /// When each line came.
    shown: Arc<Mutex<Vec<Instant>>>,
}

impl Tail {
    fn start(path: &Path, options: &[&str]) -> Tail {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = OpenOptions::new().write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = Command::new("tail");
        command.args(options).args(["-n", "1", "-f"]).arg(path);
        let child = command.stdin(Stdio::null()).stdout(terminal).spawn().unwrap();
        // The command holds the terminal too: with it closed, the output ends when tail does.
        drop(command);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let lines = shown.clone();
        thread::spawn(move || collect(File::from(master), &lines));
        Tail { child, shown }
    }

    /// How many lines it has shown.
    fn seen(&self) -> usize {
        self.shown.lock().unwrap().len()
    }
}

/// Notes when each line comes. A terminal without anybody at its other end fails.
fn collect(master: File, lines: &Mutex<Vec<Instant>>) {
    let mut master = BufReader::new(master);
    let mut line = Vec::new();
    while let Ok(1..) = master.read_until(b'\n', &mut line) {
        lines.lock().unwrap().push(Instant::now());
        line.clear();
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
