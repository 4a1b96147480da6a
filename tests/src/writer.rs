//! Writers in processes of their own, and the history of what they were told.

use crate::model::History;
use crate::patience::LIMIT;
use crate::running::Running;
use crate::shell;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// A running `programs/writer.py` or `programs/http_writer.py`: it appends tagged records
/// (`tests::model`) until one fails or something ends it.
#[derive(Debug)]
pub struct Writer {
    id: u32,
    first: u64,
    running: Running,
}

/// How a writer of a file is to write.
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
    /// Starts to append to a file by write(2), with the number `first`.
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

    /// Starts to append by HTTP PUT to a journal that is there, such as `/local/log`.
    #[track_caller]
    pub fn over_http(address: &str, path: &str, id: u32, first: u64) -> Writer {
        let mut command = shell::python("http_writer.py");
        command.args([address, path]).args([id.to_string(), first.to_string()]);
        Writer { id, first, running: Running::start(&mut command) }
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// Waits until it was acknowledged at least once.
    #[track_caller]
    pub fn until_acknowledged(&mut self) {
        self.running.until_prints("ack");
    }

    /// Whether it has not ended.
    pub fn lives(&mut self) -> bool {
        self.running.ended().is_none()
    }

    /// Waits for its end, as where its next append fails.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        self.running.wait(limit)
    }

    /// Waits for its end; it must have succeeded with all.
    #[track_caller]
    pub fn finish(mut self, history: &mut History) {
        let ended = self.running.wait(2 * LIMIT);
        self.note(history);
        let (next, said) = (self.unanswered(), self.said());
        let complaint = self.running.stderr();
        assert!(ended.success(), "writer {} failed before {next}: {said}{complaint}", self.id);
    }

    /// Sends it kill -9. A writer that waits for another writer's write of the same file on the
    /// same mount (the kernel's inode lock) ends when that one does: strike all before ending one.
    pub fn strike(&mut self) {
        self.running.strike();
    }

    /// Ends it with kill -9, if it has not ended by itself.
    #[track_caller]
    pub fn kill(&mut self) {
        assert!(self.running.kill(), "writer {} hangs", self.id);
        self.running.wait(LIMIT);
    }

    /// Ends it so, and tells the number to go on with. One append may have been on its way.
    #[track_caller]
    pub fn end(mut self, history: &mut History) -> u64 {
        self.kill();
        history.interrupt(self.id);
        self.note(history);
        // The one on its way has a number too.
        self.unanswered() + 1
    }

    /// Takes over what was acknowledged.
    #[track_caller]
    fn note(&self, history: &mut History) {
        self.acknowledged().into_iter().for_each(|number| history.acknowledge(self.id, number));
    }

    /// The numbers that were acknowledged so far.
    #[track_caller]
    pub fn acknowledged(&self) -> Vec<u64> {
        let said = self.said();
        assert!(!said.contains("short"), "writer {} wrote a part: {said}", self.id);
        said.lines().filter_map(|line| line.strip_prefix("ack ")?.parse().ok()).collect()
    }

    /// The number of the append that has no answer, or will be the next.
    #[track_caller]
    pub fn unanswered(&self) -> u64 {
        self.acknowledged().last().map_or(self.first, |last| last + 1)
    }

    /// The last line that it has said.
    pub fn last_word(&self) -> String {
        self.said().lines().last().unwrap_or_default().to_owned()
    }

    fn said(&self) -> String {
        // A line that SIGKILL cut short was not said.
        let mut said = String::from_utf8_lossy(&self.running.stdout()).into_owned();
        said.truncate(said.rfind('\n').map_or(0, |end| end + 1));
        said
    }
}
