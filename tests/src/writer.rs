//! A process that appends tagged records (`tests::model`) until something ends it, and tells which
//! of them were acknowledged.

use crate::model::History;
use crate::running::Running;
use crate::shell;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// See the module.
#[derive(Debug)]
pub struct Writer {
    id: u32,
    first: u64,
    running: Running,
}

impl Writer {
    /// Appends to a file by write(2) from record `first` on; `options` are those of
    /// `programs/writer.py`.
    #[track_caller]
    pub fn to_file(file: &Path, id: u32, first: u64, options: &[String]) -> Writer {
        let mut command = shell::python("writer.py");
        command.arg(file).args([id.to_string(), first.to_string()]).args(options);
        Writer { id, first, running: Running::start(&mut command) }
    }

    /// Appends by HTTP PUT to a journal that is there, such as `/local/log`.
    #[track_caller]
    pub fn over_http(address: &str, path: &str, id: u32, first: u64) -> Writer {
        let mut command = shell::python("http_writer.py");
        command.args([address, path]).args([id.to_string(), first.to_string()]);
        Writer { id, first, running: Running::start(&mut command) }
    }

    /// Waits for the first acknowledgement.
    #[track_caller]
    pub fn until_acknowledged(&mut self) {
        self.running.until_prints("ack");
    }

    /// Waits for its end, which is the first append that fails.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        self.running.wait(limit)
    }

    /// Kill -9, without waiting for its end.
    pub fn strike(&mut self) {
        self.running.strike();
    }

    /// Kill -9, and its end.
    #[track_caller]
    pub fn kill(&mut self) {
        assert!(self.running.kill(), "writer {} survives SIGKILL", self.id);
    }

    /// Whether it has not ended.
    pub fn lives(&mut self) -> bool {
        self.running.ended().is_none()
    }

    pub fn id(&self) -> u32 {
        self.id
    }

    /// The numbers that were acknowledged so far.
    #[track_caller]
    pub fn acknowledged(&self) -> Vec<u64> {
        let said = self.said();
        assert!(!said.contains("short"), "writer {} wrote a part", self.id);
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

    /// Puts what it was told into a history, as that of a writer who was ended; with which number
    /// to go on.
    #[track_caller]
    pub fn note(&self, history: &mut History) -> u64 {
        self.acknowledged().into_iter().for_each(|number| history.acknowledge(self.id, number));
        history.interrupt(self.id);
        self.unanswered() + 1
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.running.stdout()).into_owned()
    }
}
