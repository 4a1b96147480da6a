//! Registers as the log keeps them: a label set in its wire encoding.

use prost::Message;
use protocol::{LabelSet, wire::gazette};

pub fn encode(registers: &LabelSet) -> Vec<u8> {
    gazette::LabelSet::from(registers.clone()).encode_to_vec()
}

/// What verified in the log was encoded from a valid set; anything else reads as no registers.
pub fn decode(encoded: &[u8]) -> LabelSet {
    let wire = gazette::LabelSet::decode(encoded).ok();
    wire.and_then(|wire| LabelSet::try_from(wire).ok()).unwrap_or_default()
}
