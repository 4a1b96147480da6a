//! Chance, from the seed alone: every part of the world takes numbers of its own stream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A stream of numbers (splitmix64). Clones share it.
#[derive(Debug, Clone)]
pub struct Chance(Arc<Mutex<u64>>);

impl Chance {
    /// The stream of `name` under a seed. Streams of two names have nothing to do with each other.
    pub fn new(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed ^ 0x51_7c_c1_b7_27_22_0a_95, |state, byte| {
            mix(state.rotate_left(8) ^ u64::from(byte))
        });
        Chance(Arc::new(Mutex::new(mixed)))
    }

    pub fn number(&self) -> u64 {
        let mut state = self.0.lock().expect("no holder panics");
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(*state)
    }

    /// A number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.number() % bound
    }

    pub fn one_in(&self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).expect("an index of a slice")]
    }

    pub fn millis(&self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }

    /// Sixteen bytes, as for the id of a writer.
    pub fn id(&self) -> [u8; 16] {
        let (low, high) = (self.number(), self.number());
        (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
    }
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
