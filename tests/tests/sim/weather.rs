//! Faults, one after the other and several at once, as long as the world is not calm.

use crate::chance::Chance;
use crate::disk::{Aim, Fate, Part};
use crate::world::World;
use index::store::faulty::Manner;
use std::time::Duration;
use tokio::time::{Instant, sleep};

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

/// What fails on its own most often: a sync is the worst of it, since it leaves the page cache
/// with what the disk has not.
const SYNCED: [Part; 6] =
    [Part::Log, Part::Log, Part::KeySpace, Part::KeySpace, Part::Mirror, Part::Staging];

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
        0 if plan.has_disk_faults => fail_some(world, chance),
        1 if plan.has_full_disk => fill(world, chance),
        2 if plan.has_store_faults => {
            let lost = u32::try_from(chance.below(4)).expect("a small number");
            let manner = [Manner::Works, Manner::Down, Manner::LosesReplies(1 + lost)];
            let delay = [Duration::ZERO, Duration::from_millis(300), Duration::from_secs(4)];
            world.store().behave(chance.pick(&manner), chance.pick(&delay), chance.one_in(2));
            // Who reads the store itself finds it failing, too.
            let aim = Aim { operation: "read", part: Part::Any, nth: chance.below(4) };
            world.store().files().aim(aim, Fate::Fail { errno: EIO, times: 1 });
        }
        3 if plan.has_network_faults => match chance.one_in(2) {
            true => world.network().set_rough(chance.one_in(2).then_some(plan.breaks_in)),
            false => drop(world.network().cut_one()),
        },
        _ => {}
    }
}

/// Operations of the disk fail: the next of a name, or some soon, once or several in a row.
fn fail_some(world: &World, chance: &Chance) {
    let (operation, part) = match chance.below(6) {
        0..=2 => ("sync", chance.pick(&SYNCED)),
        3 if world.plan().has_read_faults => ("read", Part::Any),
        _ => (chance.pick(&OPERATIONS), Part::Any),
    };
    let errno = if chance.one_in(4) { ENOSPC } else { EIO };
    let times = chance.pick(&[1, 1, 2, 3, 6]);
    let aim = Aim { operation, part, nth: chance.below(3) };
    world.disk().aim(aim, Fate::Fail { errno, times });
}

/// The disk has little room, or has it again.
fn fill(world: &World, chance: &Chance) {
    let capacity = chance.one_in(2).then(|| 150_000 + chance.below(100_000));
    world.trace().line(format_args!("weather capacity {capacity:?}"));
    world.model().disturb(Instant::now());
    world.disk().inner().set_capacity(capacity);
}
