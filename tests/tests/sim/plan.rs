//! What a seed decides before anything happens: how the broker is run, how bad the world is, and
//! how often it dies. Printed with a failure.

use crate::chance::Chance;
use crate::disk::{Aim, Part};
use index::disk::Crash;
use protocol::{Codec, Journal};
use std::time::Duration;

/// Journals that stay.
pub const JOURNALS: [&str; 3] = ["s/one", "s/two", "s/three"];

/// The journal whose appends all go by its register.
pub const REGISTERED: &str = "s/registered";

pub fn journal(name: &str) -> Journal {
    Journal::new(name).expect("a valid name")
}

/// Journals that stay, with the one that has a register.
pub fn journals() -> impl Iterator<Item = Journal> {
    JOURNALS.into_iter().chain([REGISTERED]).map(journal)
}

/// The journal that does not keep everything, where the seed has retention.
pub const RETAINED: &str = "s/three";

/// The longest life, and that of a slow world, in which retention has its time.
const LIFE_MAX: Duration = Duration::from_secs(6);
const SLOW_LIFE_MAX: Duration = Duration::from_secs(75);

/// What is synced, and how often in a life, about.
const SYNCED: [(Part, u64); 4] =
    [(Part::KeySpace, 3), (Part::KeySpace, 12), (Part::Log, 30), (Part::Mirror, 12)];

/// What a journal keeps: so many bytes, or what is so young.
#[derive(Debug, Clone, Copy)]
pub struct Retention {
    pub bytes: Option<u64>,
    pub age: Option<Duration>,
}

/// How one life of the broker ends.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub crash: Crash,
    pub when: When,
    /// The next start is cut short at this operation, in this way.
    pub recovery_stops_at: Option<(u64, Crash)>,
}

#[derive(Debug, Clone, Copy)]
pub enum When {
    /// At so many operations of its disk.
    Operation(u64),
    /// After so long, wherever its tasks are.
    After(Duration),
    /// At a step of its work that matters.
    At(Aim),
    /// Soon after a sync of that part failed, as where somebody starts a broker anew that
    /// complains of its disk.
    Failing(Aim),
}

/// Steps of a broker's work between which a power cut finds things half done: operations, by the
/// parts of the data directory, and how many of them a life of a few seconds has, about.
const STEPS: [(&str, Part, u64); 12] = [
    ("sync", Part::Log, 12),
    ("sync", Part::Log, 60),
    ("write", Part::Log, 300),
    ("rename", Part::Log, 8),
    ("sync", Part::Mirror, 12),
    ("punch", Part::Mirror, 4),
    ("punch", Part::Mirror, 20),
    ("remove", Part::Mirror, 4),
    ("rename", Part::Checkpoint, 4),
    ("sync", Part::KeySpace, 20),
    ("write", Part::KeySpace, 60),
    ("sync", Part::Staging, 12),
];

/// See the module.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub segment_len: u64,
    pub inline_max: u64,
    pub local_budget: Option<u64>,
    pub fragment_len: u64,
    pub codec: Codec,
    /// One append in so many is at `disk`: where they are rare there is more to lose.
    pub disk_share: u64,
    /// How long actors rest: milliseconds, at most, between two things that they do.
    pub rest: u64,
    /// Milliseconds between two faults, about.
    pub fault_pause: u64,
    pub has_disk_faults: bool,
    /// The disk fails to read at times.
    pub has_read_faults: bool,
    pub has_full_disk: bool,
    pub has_store_faults: bool,
    /// The store is one of files on the broker's own disk.
    pub has_own_store: bool,
    pub has_network_faults: bool,
    /// While the network is rough, one piece in so many breaks its connection.
    pub breaks_in: u64,
    /// Whether some appends are of many messages.
    pub has_bulk: bool,
    /// One actor in so many is there.
    pub actor_share: u64,
    pub life_max: Duration,
    pub retention: Option<Retention>,
    pub ends: Vec<End>,
    /// Whether the last phase begins with a stop that is clean.
    pub is_stopped_cleanly: bool,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let chance = Chance::new(seed, "plan");
        let is_slow = chance.one_in(8);
        let life_max = if is_slow { SLOW_LIFE_MAX } else { LIFE_MAX };
        let ends = (0..1 + chance.below(3)).map(|_| End::new(&chance, life_max)).collect();
        let pace = if is_slow { 15 } else { 1 };
        // Files of these disks have no times: what is too old can't be told.
        let has_own_store = !is_slow && chance.one_in(4);
        Plan {
            seed,
            life_max,
            has_own_store,
            retention: is_slow.then(|| Retention::new(&chance)),
            actor_share: chance.pick(&[2, 3, 4]),
            segment_len: chance.pick(&[32 << 10, 64 << 10]),
            inline_max: chance.pick(&[100, 2_000, 64 << 10]),
            local_budget: chance.pick(&[None, Some(100_000), Some(60_000)]),
            fragment_len: if is_slow { 3_000 } else { chance.pick(&[3_000, 12_000]) },
            codec: chance.pick(&[Codec::None, Codec::Zstandard, Codec::Gzip]),
            disk_share: chance.pick(&[2, 2, 40]),
            rest: match is_slow {
                true => chance.pick(&[4_000, 12_000]),
                false => chance.pick(&[60, 400, 1_500]),
            },
            fault_pause: chance.pick(&[200, 800, 3_000]) * pace,
            has_disk_faults: chance.one_in(2),
            has_full_disk: chance.one_in(3),
            has_store_faults: chance.one_in(2),
            has_network_faults: chance.one_in(2),
            has_read_faults: chance.one_in(3),
            breaks_in: chance.pick(&[60, 60, 12]),
            has_bulk: chance.one_in(5),
            ends,
            is_stopped_cleanly: chance.one_in(2),
        }
    }
}

impl Retention {
    fn new(chance: &Chance) -> Self {
        let (bytes, age) = (10_000, Duration::from_secs(20));
        match chance.below(3) {
            0 => Retention { bytes: Some(bytes), age: None },
            1 => Retention { bytes: None, age: Some(age) },
            _ => Retention { bytes: Some(bytes), age: Some(age) },
        }
    }
}

impl End {
    fn new(chance: &Chance, life_max: Duration) -> Self {
        let crash = crash(chance);
        let when = match chance.below(5) {
            0 => When::After(chance.millis(50..4_000) * if life_max > LIFE_MAX { 25 } else { 1 }),
            1 if life_max > LIFE_MAX => When::Operation(chance.below(20_000)),
            1 => When::Operation(chance.below(2_000)),
            2 => {
                let (part, about) = chance.pick(&SYNCED);
                When::Failing(Aim { operation: "sync", part, nth: chance.below(about) })
            }
            _ => {
                let (operation, part, about) = chance.pick(&STEPS);
                When::At(Aim { operation, part, nth: chance.below(about) })
            }
        };
        // In the middle of a recovery, or soon after one.
        let within = chance.pick(&[80, 400]);
        let recovery_stops_at =
            chance.one_in(2).then(|| (chance.below(within), self::crash(chance)));
        match when {
            // The next process finds what the failed sync left in the page cache, and then the
            // disk does.
            When::Failing(_) => {
                let stop = (chance.below(within), Crash::Power(chance.number()));
                End { crash: Crash::Kill, when, recovery_stops_at: Some(stop) }
            }
            _ => End { crash, when, recovery_stops_at },
        }
    }
}

fn crash(chance: &Chance) -> Crash {
    match chance.one_in(3) {
        true => Crash::Kill,
        false => Crash::Power(chance.number()),
    }
}
