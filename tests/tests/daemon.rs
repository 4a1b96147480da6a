//! Real daemons, killed at any moment under load: every acknowledged append is there after the
//! restart, whole and in order, no torn append is shown, and a reader saw nothing that went away.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use std::process::Command;
use std::time::Duration;
use tests::ground;
use tests::model::History;
use tests::patience::{LIMIT, pause};
use tests::running::Running;
use tests::shell::cat;
use tests::world::{self, Up};
use tests::writer::{Manner, Writer};

/// Rounds in CI; `ROUNDS` asks for more.
const ROUNDS: usize = 50;

/// What a writer of the load does: the journal, the filler's size, and whether over HTTP.
struct Load {
    journal: &'static str,
    fill: usize,
    over_http: bool,
}

/// The load: small and large appends, two writers of one journal, and one that goes past the mount.
/// HTTP appends are synced before they are acknowledged; those of the mount are not, and outlive
/// the process all the same.
const LOAD: [Load; 4] = [
    Load { journal: "small", fill: 60, over_http: false },
    Load { journal: "small", fill: 3000, over_http: false },
    Load { journal: "large", fill: 200_000, over_http: false },
    Load { journal: "small", fill: 100, over_http: true },
];

const JOURNALS: [&str; 2] = ["small", "large"];

/// Bytes of a fragment.
const FRAGMENT: usize = 256 << 10;

fn start(up: &Up, id: usize, first: u64) -> Writer {
    let Load { journal, fill, over_http } = LOAD[id];
    let number = u32::try_from(id).unwrap();
    if over_http {
        return Writer::over_http(&up.address(), &format!("/local/{journal}"), number, first);
    }
    // Large ones are few, so that the journal can be read whole after each round.
    let pause = Duration::from_millis(if fill > 100_000 { 20 } else { 1 });
    let manner = Manner { fill, pause, ..Manner::default() };
    Writer::start(&up.file(journal), number, first, manner)
}

#[test]
fn kill_9_loses_nothing_that_was_acknowledged() {
    let mut up = Up::with(&["--local-budget", "32M"]);
    // Fragments are stored and freed all the time.
    JOURNALS.iter().for_each(|name| world::apply(&up, name, FRAGMENT, "ZSTANDARD"));
    up.bash(": >> small; echo '<9 1 0>' >> small; echo '<9 1 0>' >> large", &[]).ok();
    let mut histories = JOURNALS.map(|_| History::new());
    histories.iter_mut().for_each(|history| history.acknowledge(9, 1));
    let mut next = LOAD.map(|_| 1);
    let mut before = JOURNALS.map(|_| Vec::new());

    for round in 0..ground::number("ROUNDS", ROUNDS) {
        let mut writers: Vec<Writer> = (0..LOAD.len()).map(|id| start(&up, id, next[id])).collect();
        let mut follow = Command::new("tail");
        let follower = Running::start(follow.args(["-c", "+1", "-f"]).arg(up.file("small")));
        for writer in &mut writers {
            writer.until_acknowledged();
        }
        let spread = u64::try_from(round).unwrap().wrapping_mul(6_364_136_223_846_793_005) % 150;
        pause(Duration::from_millis(spread));
        up.daemon().kill();

        for (id, mut writer) in writers.into_iter().enumerate() {
            // Each sees its next append fail.
            writer.wait(LIMIT);
            let journal = JOURNALS.iter().position(|name| *name == LOAD[id].journal).unwrap();
            next[id] = writer.end(&mut histories[journal]);
        }
        let followed = follower.stdout();
        drop(follower);
        up.again();
        for (at, name) in JOURNALS.iter().enumerate() {
            let seen = cat(&up.file(name));
            let check = histories[at].check(&seen);
            check.unwrap_or_else(|wrong| panic!("round {round}, journal {name}: {wrong}"));
            assert!(seen.starts_with(&before[at]), "round {round}: old bytes of {name} changed");
            before[at] = seen;
        }
        assert!(before[0].starts_with(&followed), "round {round}: a follower saw other bytes");
    }
    let second = up.second();
    for (at, name) in JOURNALS.iter().enumerate() {
        assert!(cat(&second.file(name)) == before[at], "the mounts differ in {name}");
    }
}

#[test]
fn a_stop_and_a_start_keep_everything() {
    let mut up = Up::start();
    for round in 1..=3 {
        up.bash("for i in $(seq 100); do echo line $1 $i >> log; done", &[&round.to_string()]).ok();
        let before = cat(&up.file("log"));
        assert_eq!(before.iter().filter(|byte| **byte == b'\n').count(), 100 * round);
        assert!(up.daemon().stop().success());
        up.again();
        assert!(cat(&up.file("log")) == before, "round {round}");
    }
}
