//! Writers in processes of their own, and the history of what they were told.

use std::path::Path;
use std::time::Duration;
use tests::model::History;
use tests::patience::LIMIT;
use tests::running::Running;
use tests::shell;

/// A running `programs/writer.py`.
pub struct Writer {
    id: u32,
    first: u64,
    running: Running,
}

/// How a writer is to write.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    pub count: Option<u64>,
    pub fill: usize,
    pub pause: Duration,
    pub further: &'a [&'a str],
}

impl Default for Manner<'_> {
    fn default() -> Self {
        Manner { count: None, fill: 60, pause: Duration::ZERO, further: &[] }
    }
}

impl Writer {
    /// Starts it with the number `first`.
    #[track_caller]
    pub fn start(file: &Path, id: u32, first: u64, manner: Manner<'_>) -> Writer {
        let mut command = shell::python("writer.py");
        command.arg(file).args([id.to_string(), first.to_string()]);
        command.args(["--fill".into(), manner.fill.to_string()]);
        command.args(["--pause".into(), manner.pause.as_secs_f64().to_string()]);
        command.args(manner.count.map(|count| format!("--count={count}")));
        command.args(manner.further);
        Writer { id, first, running: Running::start(&mut command) }
    }

    /// Waits until it was acknowledged at least once.
    #[track_caller]
    pub fn until_acknowledged(&mut self) {
        self.running.until_prints("ack");
    }

    /// Waits for its end; it must have succeeded with all.
    #[track_caller]
    pub fn finish(mut self, history: &mut History) {
        let ended = self.running.wait(2 * LIMIT);
        let next = self.note(history);
        assert!(ended.success(), "writer {} failed before {next}: {}", self.id, self.said());
    }

    /// Sends it kill -9. A writer that waits for another writer's write of the same file on the
    /// same mount (the kernel's inode lock) ends when that one does: strike all before ending one.
    pub fn strike(&mut self) {
        self.running.strike();
    }

    /// Ends it with kill -9, if it has not ended by itself, and tells the number to go on with. One
    /// append may have been on its way.
    #[track_caller]
    pub fn end(mut self, history: &mut History) -> u64 {
        assert!(self.running.kill(), "writer {} hangs", self.id);
        self.running.wait(LIMIT);
        history.interrupt(self.id);
        // The one on its way has a number too.
        self.note(history) + 1
    }

    /// Takes over what was acknowledged; the number after the last of it.
    fn note(&self, history: &mut History) -> u64 {
        let said = self.said();
        assert!(!said.contains("short"), "writer {} wrote a part: {said}", self.id);
        let mut next = self.first;
        let numbers = said.lines().filter_map(|line| line.strip_prefix("ack ")?.parse().ok());
        for number in numbers {
            history.acknowledge(self.id, number);
            next = number + 1;
        }
        next
    }

    fn said(&self) -> String {
        // A line that SIGKILL cut short was not said.
        let said = String::from_utf8_lossy(&self.running.stdout()).into_owned();
        let whole = said.rfind('\n').map_or(0, |end| end + 1);
        said[..whole].to_string() + &self.running.stderr()
    }
}
