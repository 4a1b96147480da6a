//! What a seed decides before anything happens: how the broker is run, how bad the world is, and
//! how often it dies. Printed with a failure.

use crate::chance::Chance;
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

/// The longest life.
pub const LIFE_MAX: Duration = Duration::from_secs(6);

/// How one life of the broker ends.
#[derive(Debug, Clone, Copy)]
pub struct End {
    pub crash: Crash,
    pub when: When,
    /// The next start is cut short at this operation.
    pub recovery_stops_at: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub enum When {
    /// At so many operations of its disk.
    Operation(u64),
    /// After so long, wherever its tasks are.
    After(Duration),
}

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
    pub has_full_disk: bool,
    pub has_store_faults: bool,
    pub has_network_faults: bool,
    pub ends: Vec<End>,
    /// Whether the last phase begins with a stop that is clean.
    pub is_stopped_cleanly: bool,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let chance = Chance::new(seed, "plan");
        let ends = (0..1 + chance.below(3)).map(|_| End::new(&chance)).collect();
        Plan {
            seed,
            segment_len: chance.pick(&[32 << 10, 64 << 10]),
            inline_max: chance.pick(&[100, 2_000, 64 << 10]),
            local_budget: chance.pick(&[None, Some(100_000), Some(60_000)]),
            fragment_len: chance.pick(&[3_000, 12_000]),
            codec: chance.pick(&[Codec::None, Codec::Zstandard, Codec::Gzip]),
            disk_share: chance.pick(&[2, 2, 40]),
            rest: chance.pick(&[60, 400, 1_500]),
            fault_pause: chance.pick(&[200, 800, 3_000]),
            has_disk_faults: chance.one_in(2),
            has_full_disk: chance.one_in(3),
            has_store_faults: chance.one_in(2),
            has_network_faults: chance.one_in(2),
            ends,
            is_stopped_cleanly: chance.one_in(2),
        }
    }
}

impl End {
    fn new(chance: &Chance) -> Self {
        let crash = match chance.one_in(3) {
            true => Crash::Kill,
            false => Crash::Power(chance.number()),
        };
        let when = match chance.one_in(2) {
            true => When::After(chance.millis(50..4_000)),
            false => When::Operation(chance.below(2_000)),
        };
        // In the middle of a recovery, or soon after one.
        let within = chance.pick(&[80, 400]);
        let recovery_stops_at = chance.one_in(2).then(|| chance.below(within));
        End { crash, when, recovery_stops_at }
    }
}
