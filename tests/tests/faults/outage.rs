//! Case T16: a store that is away while writers write. It costs local space and nothing else, and
//! when it is back all goes there, with nothing restarted.

use std::time::Duration;
use tests::ground;
use tests::model::History;
use tests::patience::{pause, until};
use tests::shell::cat;
use tests::world::{self, Up, attribute};
use tests::writer::{Manner, Writer};

/// Seconds for which the store is away; `OUTAGE_SECONDS` asks for more.
const AWAY: usize = 5;

/// Bytes of a fragment.
const FRAGMENT: usize = 65_536;

#[test]
fn t16_a_store_that_is_away_stops_nobody() {
    let up = Up::start();
    let second = up.second();
    world::apply(&up, "log", FRAGMENT, "ZSTANDARD");
    let mut history = History::new();
    let manner = Manner { pause: Duration::from_millis(2), ..Manner::default() };
    let mut writers = [
        Writer::start(&up.file("log"), 1, 1, Manner { fill: 2000, ..manner }),
        Writer::start(&second.file("log"), 2, 1, manner),
        Writer::over_http(&up.address(), "/local/log", 3, 1),
    ];
    writers.iter_mut().for_each(Writer::until_acknowledged);
    until("a fragment is stored", || persisted(&up) > 0);

    let (store, away) = (up.data().join("store"), up.data().join("store-away"));
    std::fs::rename(&store, &away).unwrap();
    // A file in its place: nobody makes the directory anew.
    std::fs::write(&store, "no directory").unwrap();
    pause(Duration::from_secs(1));
    let (before, stored) = (acknowledgements(&writers), persisted(&up));
    pause(Duration::from_secs(ground::number("OUTAGE_SECONDS", AWAY) as u64));
    assert!(writers.iter_mut().all(Writer::lives), "a writer was refused");
    let after = acknowledgements(&writers);
    assert!((0..3).all(|at| after[at] > before[at] + 10), "{before:?}, {after:?}");
    assert_eq!(persisted(&up), stored, "nothing is stored meanwhile");
    let told = tests::daemon::run(&["status", "--broker", &up.url()]).ok().text();
    assert!(told.contains("file:///"), "the status names no store that fails: {told}");

    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&away, &store).unwrap();
    let head = acknowledged_bytes(&up);
    until("what came meanwhile is stored", || persisted(&up) >= head - FRAGMENT as u64);
    for mut writer in writers {
        assert!(writer.lives(), "a writer was refused");
        writer.end(&mut history);
    }
    let seen = cat(&up.file("log"));
    history.check(&seen).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(cat(&second.file("log")) == seen, "the mounts differ");
}

fn acknowledgements(writers: &[Writer; 3]) -> [usize; 3] {
    writers.each_ref().map(|writer| writer.acknowledged().len())
}

/// Below which offset the store has all.
fn persisted(up: &Up) -> u64 {
    attribute(up, "log", "persisted").parse().unwrap()
}

fn acknowledged_bytes(up: &Up) -> u64 {
    attribute(up, "log", "head").parse().unwrap()
}
