//! Lives: one number for a journal from its creation to its deletion.

use protocol::{Journal, Life};
use sha1::{Digest, Sha1};

/// The life of the journal that was created under `name` at `create_revision`.
///
/// Local files are named after it, so the hash is the same in every release. `nonce` is 0 but for
/// a journal whose life was taken when it was created; it is kept with the spec.
pub fn life(cluster_id: u64, name: &Journal, create_revision: i64, nonce: u32) -> Life {
    let mut hash = Sha1::new();
    // Numbers have a fixed width and the name comes last, so no two inputs have equal bytes.
    hash.update(cluster_id.to_be_bytes());
    hash.update(create_revision.to_be_bytes());
    hash.update(nonce.to_be_bytes());
    hash.update(name.as_str());
    Life::new(first_u64(&hash.finalize()))
}

/// The first life that no journal has, and its nonce.
pub(crate) fn free_life(
    cluster_id: u64,
    name: &Journal,
    create_revision: i64,
    is_taken: impl Fn(Life) -> bool,
) -> (u32, Life) {
    (0..=u32::MAX)
        .map(|nonce| (nonce, life(cluster_id, name, create_revision, nonce)))
        .find(|(_, life)| !is_taken(*life))
        .expect("2^32 lives are not all taken")
}

/// A number that is not zero, made of `entropy` for one purpose.
pub(crate) fn derive_id(entropy: u64, purpose: &str) -> u64 {
    let mut hash = Sha1::new();
    hash.update(entropy.to_be_bytes());
    hash.update(purpose);
    first_u64(&hash.finalize()).max(1)
}

fn first_u64(hash: &[u8]) -> u64 {
    let first = hash.first_chunk().expect("a SHA1 has 20 bytes");
    u64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(name: &str) -> Journal {
        Journal::new(name).expect("a valid name")
    }

    #[test]
    fn lives_are_the_same_in_every_release() {
        // SHA1 of 0x0000000000000001 0x0000000000000002 0x00000000 "logs/app", computed elsewhere.
        assert_eq!(life(1, &journal("logs/app"), 2, 0).to_string(), "3cad3e9ae000f");
    }

    #[test]
    fn each_input_makes_another_life() {
        let one = life(1, &journal("logs/app"), 2, 0);
        // Case: one input differs
        for other in [
            life(2, &journal("logs/app"), 2, 0),
            life(1, &journal("logs/apq"), 2, 0),
            life(1, &journal("logs/app"), 3, 0),
            life(1, &journal("logs/app"), 2, 1),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_taken_life_takes_the_next_nonce() {
        let name = journal("logs/app");
        let taken = [life(1, &name, 2, 0), life(1, &name, 2, 1)];
        let (nonce, free) = free_life(1, &name, 2, |life| taken.contains(&life));
        assert_eq!((nonce, free), (2, life(1, &name, 2, 2)));
    }
}
