//! Faults, one after the other and several at once, as long as the world is not calm.

use crate::chance::Chance;
use crate::world::World;
use index::disk::Trouble;
use index::store::faulty::Manner;
use std::time::Duration;
use tokio::time::sleep;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The operations of a disk that fail by name.
const OPERATIONS: [&str; 10] = [
    "open",
    "rename",
    "remove",
    "create_dir",
    "sync_dir",
    "write",
    "sync",
    "set_len",
    "reserve",
    "punch",
];

/// Brings faults up until the world ends.
pub async fn run(world: World) {
    let chance = world.chance("weather");
    let pause = world.plan().fault_pause;
    while !world.is_ending() {
        sleep(chance.millis(pause / 2..pause * 2)).await;
        if !world.is_calm() {
            fault(&world, &chance);
        }
    }
}

fn fault(world: &World, chance: &Chance) {
    let plan = world.plan();
    match chance.below(4) {
        0 if plan.has_disk_faults => fail_once(world, chance),
        1 if plan.has_full_disk => fill(world, chance),
        2 if plan.has_store_faults => {
            let lost = u32::try_from(chance.below(4)).expect("a small number");
            let manner = [Manner::Works, Manner::Down, Manner::LosesReplies(1 + lost)];
            let delay = [Duration::ZERO, Duration::from_millis(300), Duration::from_secs(4)];
            world.store().behave(chance.pick(&manner), chance.pick(&delay), chance.one_in(2));
        }
        3 if plan.has_network_faults => match chance.one_in(2) {
            true => world.network().set_rough(chance.one_in(2)),
            false => drop(world.network().cut_one()),
        },
        _ => {}
    }
}

/// One operation of the disk fails: the next of its name, or one soon.
fn fail_once(world: &World, chance: &Chance) {
    let disk = world.disk();
    let operation = chance.pick(&OPERATIONS);
    // A sync that fails is the worst that a disk does to a log.
    let operation = if chance.one_in(3) { "sync" } else { operation };
    let nth = disk.inner().operations_of(operation) + chance.below(3);
    let errno = if chance.one_in(4) { ENOSPC } else { EIO };
    world.trace().line(format_args!("weather fails {operation} {nth} {errno}"));
    world.model().disturb();
    disk.inner().fail(Trouble { operation: Some(operation), nth, errno });
}

/// The disk has little room, or has it again.
fn fill(world: &World, chance: &Chance) {
    let capacity = chance.one_in(2).then(|| 150_000 + chance.below(100_000));
    world.trace().line(format_args!("weather capacity {capacity:?}"));
    world.model().disturb();
    world.disk().inner().set_capacity(capacity);
}
