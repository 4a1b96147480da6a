//! Which journal a record goes to: by chance, by a hash of its key, or by name (gazette-spec 7.4).

use crate::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::Journal;

/// How records are shared out.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Any journal that was selected, by chance.
    Random,
    /// By the hash of the key, modulo the number of journals: all keys move when that changes.
    Modulo,
    /// By the hash of the key and each journal's name: few keys move when journals come or go.
    Rendezvous,
    /// The key is the journal's name.
    Direct,
}

impl Mapping {
    /// Whether each record comes after its key.
    pub fn has_keys(self) -> bool {
        self != Mapping::Random
    }
}

/// The journals that records go to, in the order of their names, and how they are shared out.
/// Invariant: there is one at least.
pub struct Partitions {
    journals: Vec<Journal>,
    mapping: Mapping,
    is_base64: bool,
    state: u64,
}

impl Partitions {
    /// `seed` is of the choice by chance.
    pub fn new(mut journals: Vec<Journal>, mapping: Mapping, is_base64: bool, seed: u64) -> Self {
        assert!(!journals.is_empty(), "a selection has a journal");
        journals.sort();
        Partitions { journals, mapping, is_base64, state: seed }
    }

    /// One of them by chance.
    pub fn any(&mut self) -> Journal {
        // The upper bits of a linear congruence are even enough to share a load.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.journals[self.index(self.state >> 32)].clone()
    }

    /// The one that a key goes to.
    pub fn of_key(&mut self, key: &[u8]) -> Result<Journal, Error> {
        let decoded;
        let key = match self.is_base64 {
            false => key,
            true => {
                decoded = STANDARD.decode(key).map_err(|_| unknown(key, "is no base64"))?;
                &decoded
            }
        };
        let hash = fnv1a(key);
        Ok(match self.mapping {
            Mapping::Random => self.any(),
            Mapping::Modulo => self.journals[self.index(hash.into())].clone(),
            Mapping::Rendezvous => self.rendezvous(hash).clone(),
            Mapping::Direct => {
                let name = str::from_utf8(key).ok();
                let found = self.journals.iter().find(|journal| Some(journal.as_str()) == name);
                let missing = || Error::NoPartition(String::from_utf8_lossy(key).into_owned());
                found.ok_or_else(missing)?.clone()
            }
        })
    }

    /// The journal of the greatest mixed hash; the first of equal ones.
    fn rendezvous(&self, hash: u32) -> &Journal {
        let mut best = (0, &self.journals[0]);
        for journal in &self.journals {
            let mixed = hash ^ fnv1a(journal.as_str().as_bytes());
            if mixed > best.0 {
                best = (mixed, journal);
            }
        }
        best.1
    }

    fn index(&self, number: u64) -> usize {
        usize::try_from(number % self.journals.len() as u64).expect("below a length")
    }
}

fn unknown(key: &[u8], why: &str) -> Error {
    Error::Specs(format!("the key {:?}", String::from_utf8_lossy(key)), why.to_owned())
}

/// FNV-1a of 32 bits.
fn fnv1a(bytes: &[u8]) -> u32 {
    let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions(mapping: Mapping, is_base64: bool) -> Partitions {
        let names = ["a/part-002", "a/part-000", "a/part-001"];
        Partitions::new(names.map(|n| n.parse().expect("valid")).into(), mapping, is_base64, 7)
    }

    #[test]
    fn hashes_are_those_of_gazette() {
        // Case: the text, its hash (gazette-spec 7.4)
        let cases = [
            ("key-1", 0x57e0_3446),
            ("a/part-000", 0x832c_0c7d),
            ("a/part-001", 0x822c_0aea),
            ("a/part-002", 0x812c_0957),
        ];
        for (text, expected) in cases {
            assert_eq!(fnv1a(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn keys_go_where_gazette_sends_them() {
        // Case: the mapping, whether keys are base64, the key, the journal
        let cases = [
            (Mapping::Modulo, false, "key-1", Some("a/part-001")),
            (Mapping::Modulo, true, "a2V5LTE=", Some("a/part-001")),
            (Mapping::Rendezvous, false, "key-1", Some("a/part-002")),
            (Mapping::Direct, false, "a/part-000", Some("a/part-000")),
            (Mapping::Direct, false, "a/part-009", None),
            (Mapping::Modulo, true, "no base64", None),
        ];
        for (mapping, is_base64, key, expected) in cases {
            let found = partitions(mapping, is_base64).of_key(key.as_bytes()).ok();
            assert_eq!(found.as_ref().map(Journal::as_str), expected, "{mapping:?} {key}");
        }
    }

    #[test]
    fn chance_is_fair() {
        let mut partitions = partitions(Mapping::Random, false);
        let taken: Vec<Journal> = (0..300).map(|_| partitions.any()).collect();
        for journal in partitions.journals {
            let count = taken.iter().filter(|taken| **taken == journal).count();
            assert!((50..150).contains(&count), "{journal}: {count}");
        }
    }
}
