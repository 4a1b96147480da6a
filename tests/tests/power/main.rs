//! Cuts of the power under the real binary (case T13): its disk forgets what was not synced. What
//! was promised at `disk` is there, of `memory` the end of what each writer wrote may be gone, no
//! offset has two contents, and the head never falls below one that was shown.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod machine;
mod trial;

use machine::{Forgetful, Ground, Machine, ReadOnly, Real};
use std::time::Duration;
use tests::ground;
use tests::patience::{LIMIT, pause, until};
use tests::shell;
use tests::world;
use tests::writer::{Manner, Writer};
use trial::{Promise, Trial};

/// Cuts in CI; `ROUNDS` asks for more.
const ROUNDS: usize = 12;

const JOURNAL: &str = "log";

/// Writers: over HTTP, whose appends are synced, and through a mount, whose are not, with the fill
/// of a record and whether all of it goes to staging.
const WRITERS: [(Promise, usize); 4] = [
    (Promise::Disk, 100),
    (Promise::Memory, 60),
    (Promise::Memory, 3000),
    (Promise::Memory, 90_000),
];

fn start<G: Ground>(machine: &Machine<G>, id: usize, first: u64) -> Writer {
    let (promise, fill) = WRITERS[id];
    let number = u32::try_from(id).unwrap();
    match promise {
        Promise::Disk => {
            Writer::over_http(&machine.address(), &format!("/local/{JOURNAL}"), number, first)
        }
        Promise::Memory => {
            let pause = Duration::from_millis(if fill > 10_000 { 50 } else { 2 });
            let manner = Manner { fill, pause, ..Manner::default() };
            Writer::start(&machine.file(JOURNAL), number, first, manner)
        }
    }
}

/// Takes over what a writer was told; with which number to go on.
fn note(writer: &Writer, trial: &mut Trial) -> u64 {
    let promise = WRITERS[writer.id() as usize].0;
    for number in writer.acknowledged() {
        trial.acknowledge(writer.id(), number, promise);
    }
    trial.interrupt(writer.id(), writer.unanswered());
    writer.unanswered() + 1
}

/// Each writer sees its next append fail, and nobody hangs.
fn until_refused<G: Ground>(machine: &Machine<G>, writers: &mut [Writer], trial: &mut Trial) {
    for writer in writers {
        assert_eq!(writer.wait(LIMIT).code(), Some(1));
        let (last, log) = (writer.last_word(), machine.log());
        assert!(last.ends_with("EIO") || last.ends_with("500"), "{last}; {log}");
        note(writer, trial);
    }
}

#[test]
fn t13_a_cut_of_the_power_takes_nothing_that_was_synced() {
    cut_again_and_again(Forgetful::new());
}

#[test]
fn t13_a_cut_of_a_real_file_system_takes_nothing_that_was_synced() {
    cut_again_and_again(Real::new());
}

#[test]
fn a_disk_that_fails_takes_no_append_and_is_named() {
    let mut machine = begin(Real::new());
    let mut trial = Trial::default();
    let mut writers = [1, 0].map(|id| start(&machine, id, 1));
    writers.iter_mut().for_each(Writer::until_acknowledged);
    machine.fail();
    until_refused(&machine, &mut writers, &mut trial);
    until("the log says so", || machine.log().contains("Input/output error"));
    machine.cut(0);
    machine.boot();
    let runs = trial::read(&machine.url(), "local/log");
    trial.check(&trial::Runs::new(), 0, &runs).unwrap_or_else(|wrong| panic!("{wrong}"));
    machine.ask(&["journals", "append", "local/log", "-i", "/dev/null"]).ok();
}

#[test]
fn a_disk_that_becomes_read_only_takes_no_append_and_is_read_on() {
    let mut machine = begin(ReadOnly::new());
    let mut trial = Trial::default();
    let mut writers = [0, 1, 3].map(|id| start(&machine, id, 1));
    writers.iter_mut().for_each(Writer::until_acknowledged);
    machine.fail();
    until_refused(&machine, &mut writers, &mut trial);
    // Nothing more is acknowledged, at either durability.
    for durability in ["disk", "memory"] {
        let line = ["journals", "append", "local/log", "--durability", durability, "-i"];
        let refused = machine.ask(&[&line[..], &["/etc/hostname"]].concat()).refusal(1);
        assert!(refused.contains("Read-only file system"), "{durability}: {refused}");
    }
    until("the log says so", || machine.log().contains("Read-only file system"));
    // What is there is read on, and all of it is right.
    let seen = trial::read(&machine.url(), "local/log");
    assert!(trial::end(&seen) > 0);
    let synced = machine.synced(JOURNAL);
    machine.cut(0);
    machine.boot();
    let runs = trial::read(&machine.url(), "local/log");
    trial.check(&seen, synced, &runs).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(head(&machine) >= trial::end(&seen), "an offset that was shown is given again");
    machine.ask(&["journals", "append", "local/log", "-i", "/etc/hostname"]).ok();
}

/// A machine with the journal.
fn begin<G: Ground>(ground: G) -> Machine<G> {
    let machine = Machine::start(ground);
    let specs = ground::folder("power-");
    let path = specs.path().join("specs.yaml");
    // Fragments are short, so that they are stored and freed while writers write.
    std::fs::write(&path, world::spec(JOURNAL, 65_536, "ZSTANDARD", "")).unwrap();
    machine.ask(&["journals", "apply", "--specs", path.to_str().unwrap()]).ok();
    machine
}

fn cut_again_and_again<G: Ground>(ground: G) {
    let mut machine = begin(ground);
    let mut trial = Trial::default();
    let mut next = WRITERS.map(|_| 1);
    let mut shown = 0;
    for round in 0..ground::number("ROUNDS", ROUNDS) {
        let mut writers: Vec<Writer> =
            (0..WRITERS.len()).map(|id| start(&machine, id, next[id])).collect();
        writers.iter_mut().for_each(Writer::until_acknowledged);
        let spread = u64::try_from(round).unwrap().wrapping_mul(6_364_136_223_846_793_005) % 1500;
        pause(Duration::from_millis(spread));
        // What was told to be durable before it was read is durable.
        let synced = machine.synced(JOURNAL);
        let seen = trial::read(&machine.url(), "local/log");
        machine.cut(round);
        // They would go on once the broker is there again. One that waits for the file's lock ends
        // after the one that has it.
        writers.iter_mut().for_each(Writer::strike);
        for (id, writer) in writers.iter_mut().enumerate() {
            writer.kill();
            next[id] = note(writer, &mut trial);
        }
        drop(writers);
        machine.boot();
        let runs = trial::read(&machine.url(), "local/log");
        let checked = trial.check(&seen, synced, &runs);
        checked.unwrap_or_else(|wrong| panic!("round {round}: {wrong}\n{}", machine.log()));
        // Where the next append goes: never below what anybody saw.
        shown = trial::end(&seen).max(trial::end(&runs)).max(shown);
        let head: u64 = head(&machine);
        assert!(head >= shown, "round {round}: the head is {head}, and {shown} was shown");
        if head > trial::end(&runs) {
            let log = machine.log();
            assert!(
                log.contains("lost"),
                "round {round}: nobody names the gap {runs_end}..{head}: {log}",
                runs_end = trial::end(&runs)
            );
        }
    }
    assert!(trial.found + trial.lost > 0, "appends at memory were tried");
}

/// The journal's head, as the broker tells it.
fn head<G: Ground>(machine: &Machine<G>) -> u64 {
    let url = format!("{}/local/{JOURNAL}", machine.url());
    let line = "curl -sfI \"$1\" | tr -d '\\r' | sed -n 's/^x-write-head: //Ip'";
    shell::bash(&std::env::temp_dir(), line, &[&url]).ok().text().parse().unwrap()
}
