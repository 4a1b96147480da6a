//! A daemon that stands still (SIGSTOP) and goes on: writers wait, nothing is lost or twice.

use rustix::process::Signal;
use std::time::Duration;
use tests::model::History;
use tests::patience::{pause, until};
use tests::shell::cat;
use tests::world::Up;
use tests::writer::{Manner, Writer};

/// How long it stands: longer than any client thinks that an answer takes.
const STANDING: Duration = Duration::from_secs(3);

const ROUNDS: usize = 2;

#[test]
fn daemons_that_stand_still_and_go_on_lose_nothing() {
    let mut up = Up::start();
    let mut second = up.second();
    up.bash("echo '<9 1 0>' >> log", &[]).ok();
    let mut history = History::new();
    history.acknowledge(9, 1);
    let manner = Manner { pause: Duration::from_millis(2), ..Manner::default() };
    let mut writers = [
        Writer::start(&up.file("log"), 1, 1, manner),
        Writer::start(&second.file("log"), 2, 1, manner),
        Writer::over_http(&up.address(), "/local/log", 3, 1),
    ];
    writers.iter_mut().for_each(Writer::until_acknowledged);
    let counts =
        |writers: &[Writer; 3]| writers.each_ref().map(|writer| writer.acknowledged().len());
    for round in 0..ROUNDS {
        // Case: the broker with its mount, and the mount elsewhere.
        let daemon = if round % 2 == 0 { up.daemon() } else { second.daemon() };
        daemon.signal(Signal::STOP);
        pause(STANDING);
        daemon.signal(Signal::CONT);
        let before = counts(&writers);
        until("all writers go on", || {
            let after = counts(&writers);
            writers.iter_mut().all(Writer::lives) && (0..3).all(|at| after[at] > before[at] + 10)
        });
    }
    for writer in writers {
        writer.end(&mut history);
    }
    let seen = cat(&up.file("log"));
    history.check(&seen).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(cat(&second.file("log")) == seen, "the mounts differ");
}
