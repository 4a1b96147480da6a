//! Writes through mounts of a broker, which go over one stream to it.

use crate::dying::moment;
use rustix::process::Signal;
use std::time::Duration;
use tests::ground;
use tests::model::History;
use tests::patience::{pause, until};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::{Up, apply_specs, attribute, spec};
use tests::writer::{Manner, Writer};

/// Deaths of the broker in CI; `ROUNDS` asks for more.
const ROUNDS: usize = 6;

/// A number that the broker's /metrics has at the first line that begins so.
#[track_caller]
fn metric(up: &Up, begins: &str) -> u64 {
    let text = up.bash("curl -sf \"$1/metrics\"", &[&up.url()]).ok().text();
    let line = text.lines().find(|line| line.starts_with(begins));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

fn calls(up: &Up, method: &str) -> u64 {
    let labels = format!("grpc_method=\"{method}\",grpc_service=\"courant.v1.Courant\"");
    metric(up, &format!("grpc_server_started_total{{{labels}"))
}

#[test]
fn writes_of_two_mounts_happen_once_though_their_broker_is_killed() {
    let mut up = Up::start();
    let mounts = [up.second(), up.second()];
    let mut history = [History::new(), History::new()];
    // Writers of each mount and journal: none of them ends, since a write waits for the broker.
    let pause_between = Duration::from_millis(1);
    let manner = |at: usize| Manner { pause: pause_between, fill: 50 + 991 * at, ..<_>::default() };
    let mut writers: Vec<(usize, Writer)> = (0..8)
        .map(|at| {
            let file = mounts[at % 2].file(["one", "two"][at / 4]);
            let id = u32::try_from(at).unwrap() + 1;
            (at / 4, Writer::start(&file, id, 1, manner(at)))
        })
        .collect();
    for round in 0..ground::number("ROUNDS", ROUNDS) {
        let before: Vec<u64> = writers.iter().map(|(_, writer)| writer.unanswered()).collect();
        until("all go on", || {
            let now = writers.iter().map(|(_, writer)| writer.unanswered());
            now.zip(&before).all(|(now, before)| now > *before)
        });
        // Each mount has a stream again, and nothing is a call.
        let (streams, calls) = (calls(&up, "AppendEach"), calls(&up, "Append"));
        assert!(streams >= 2 && calls == 0, "round {round}: {streams} streams, {calls} calls");
        pause(moment(round, 200));
        up.daemon().kill();
        up.again();
    }
    for (at, (_, writer)) in writers.iter_mut().enumerate() {
        assert!(writer.lives(), "writer {at} failed: {}", writer.last_word());
        writer.strike();
    }
    for (journal, writer) in writers {
        writer.end(&mut history[journal]);
    }
    for (name, history) in ["one", "two"].into_iter().zip(&history) {
        assert!(history.acknowledgements() > 0);
        for file in [up.file(name), mounts[0].file(name), mounts[1].file(name)] {
            history.check(&cat(&file)).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        }
    }
}

#[test]
fn a_refused_write_reaches_no_other_file_of_its_mount() {
    let up = Up::start();
    let mounts = [up.second_with(&["--write-timeout", "2s"]), up.second()];
    let limit = ", labels: [{name: courant/max-bytes, value: '12'}]";
    apply_specs(&up, &spec("small", 1 << 20, "NONE", limit));
    apply_specs(&up, &spec("slow", 1 << 20, "NONE", ", max_append_rate: 100"));
    let mut history = History::new();
    let writers = [1, 2, 3, 4].map(|id| {
        let file = mounts[id as usize % 2].file("log");
        Writer::start(&file, id, 1, Manner { count: Some(1000), ..Manner::default() })
    });
    // Case: one journal is full, the other takes it in a minute, and where there is nothing
    let refused = "for i in $(seq 20); do
                       dd if=/dev/zero of=$1 oflag=append conv=notrunc bs=60000 count=1
                   done";
    for (mount, name) in [(0, "small"), (1, "small"), (0, "slow")] {
        let ran = shell::bash(mounts[mount].mount().path(), refused, &[name]);
        let told = ran.stderr.matches("Disk quota exceeded").count();
        assert_eq!(told, 20, "{name}: {}", ran.stderr);
        assert_eq!(attribute(&up, name, "head"), "0");
    }
    writers.into_iter().for_each(|writer| writer.finish(&mut history));
    for file in [up.file("log"), mounts[0].file("log"), mounts[1].file("log")] {
        history.check(&cat(&file)).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    assert_eq!(calls(&up, "Append"), 0);
}

#[test]
fn a_write_whose_program_is_killed_does_not_happen_later() {
    let up = Up::start();
    let mounts = [up.second(), up.second()];
    apply_specs(&up, &spec("slow", 1 << 20, "NONE", ", max_append_rate: 1000"));
    let staged = "courant_staged_bytes{place=\"memory\"}";
    for mount in &mounts {
        // It would wait for twenty seconds.
        let line = "dd if=/dev/zero of=slow oflag=append conv=notrunc bs=20000 count=1";
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &format!("exec {line}")]).current_dir(mount.mount().path());
        let mut writer = Running::start(&mut command);
        until("it waits in the broker", || metric(&up, staged) == 20_000);
        writer.signal(Signal::TERM);
        until("it has ended", || writer.ended().is_some());
        until("the broker holds nothing of it", || metric(&up, staged) == 0);
        assert_eq!(attribute(&up, "slow", "head"), "0");
        // Case: others of the mount go on
        shell::bash(mount.mount().path(), "echo line >> log", &[]).ok();
    }
    assert_eq!(cat(&mounts[0].file("log")), b"line\nline\n");
}
