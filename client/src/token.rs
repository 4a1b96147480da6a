//! Bearer tokens: who may do what with which journals, signed by keys that brokers and clients
//! share (gazette-spec 1.5).
//!
//! A token is a JWT. The signatures are HMACs of `ring`, and times are read from the caller's
//! clock, which is why no JWT library stands between: those read the system's.

mod json;
mod keys;

pub use keys::Keys;

use protocol::Selector;
use std::time::{Duration, SystemTime};

/// How far the clocks of a signer and a verifier may be apart (gazette-spec 1.5).
pub const LEEWAY: Duration = Duration::from_secs(5);

/// How long a token lasts that was signed for one request, but for those below.
const TTL: Duration = Duration::from_secs(3600);

/// How long a token lasts that may change specs.
const TTL_OF_APPLY: Duration = Duration::from_secs(60);

/// What a token allows: a set of bits. Those from `1 << 16` on are for applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capability(pub u32);

impl Capability {
    pub const NONE: Capability = Capability(0);
    pub const LIST: Capability = Capability(1 << 1);
    pub const APPLY: Capability = Capability(1 << 2);
    pub const READ: Capability = Capability(1 << 3);
    pub const APPEND: Capability = Capability(1 << 4);
    pub const REPLICATE: Capability = Capability(1 << 5);
    pub const ALL: Capability = Capability(u32::MAX);

    /// Whether every bit of `needed` is here.
    pub fn has(self, needed: Capability) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// The names of its bits, and those that have none as one number.
    fn parts(self) -> Vec<String> {
        let named = [
            Capability::LIST,
            Capability::APPLY,
            Capability::READ,
            Capability::APPEND,
            Capability::REPLICATE,
        ];
        let here = named.into_iter().filter(|one| self.has(*one));
        let mut parts: Vec<String> = here.map(|one| one.to_string()).collect();
        let rest = named.iter().fold(self.0, |rest, one| rest & !one.0);
        if rest != 0 {
            parts.push(format!("{rest:#x}"));
        }
        parts
    }

    /// What it is for, in words.
    pub fn purpose(self) -> &'static str {
        match self {
            Capability::LIST => "listing journals",
            Capability::APPLY => "creating, changing or deleting journals",
            Capability::READ => "reading journals and asking for their fragments",
            Capability::APPEND => "appending to journals",
            Capability::REPLICATE => "replicating journals",
            _ => "this request",
        }
    }

    /// What a call of `service` needs; `None` where there is no such call. Those of `courant.v1`
    /// need what the call of Gazette needs that comes nearest.
    pub fn of_call(service: &str, method: &str) -> Option<Capability> {
        Some(match (service, method) {
            ("protocol.Journal", "List") => Capability::LIST,
            ("protocol.Journal", "Apply") => Capability::APPLY,
            ("protocol.Journal", "Read" | "ListFragments" | "FragmentStoreHealth") => {
                Capability::READ
            }
            ("protocol.Journal", "Append") => Capability::APPEND,
            ("protocol.Journal", "Replicate") => Capability::REPLICATE,
            ("courant.v1.Courant", "Heads" | "Status" | "Templates") => Capability::LIST,
            (
                "courant.v1.Courant",
                "Create" | "Delete" | "Prune" | "PutTemplate" | "DeleteTemplate" | "Hold",
            ) => Capability::APPLY,
            ("courant.v1.Courant", "Append" | "Appends" | "AppendEach" | "Sync") => {
                Capability::APPEND
            }
            _ => return None,
        })
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Capability::LIST => f.write_str("LIST"),
            Capability::APPLY => f.write_str("APPLY"),
            Capability::READ => f.write_str("READ"),
            Capability::APPEND => f.write_str("APPEND"),
            Capability::REPLICATE => f.write_str("REPLICATE"),
            Capability::ALL => f.write_str("ALL"),
            Capability::NONE => f.write_str("none"),
            mixed => f.write_str(&mixed.parts().join(" and ")),
        }
    }
}

/// What a token says.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    pub capability: Capability,
    /// The journals that it is about, by their labels and `name`. In the form of
    /// [`Selector::without_legacy_prefix`] where it was verified.
    pub selector: Selector,
    pub expires: SystemTime,
}

impl Claims {
    /// The claims of one request by who has the keys: what it needs, of any journal.
    pub fn of_call(capability: Capability, now: SystemTime) -> Self {
        let ttl = if capability == Capability::APPLY { TTL_OF_APPLY } else { TTL };
        Claims { capability, selector: Selector::default(), expires: now + ttl }
    }
}

/// Why a token or keys are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("a key is not base64: expected keys as of `head -c 32 /dev/urandom | base64`")]
    NotBase64,
    #[error("no key to sign with (expected base64 keys, separated by commas or spaces)")]
    NoKey,
    #[error("it is no JWT ({0})")]
    Malformed(&'static str),
    #[error("it is signed by {0:?} (expected HS256 or HS384)")]
    Algorithm(String),
    #[error("its signature is of none of the keys")]
    Signature,
    #[error("its claims can't be read: {0}")]
    Claims(String),
    #[error("it has no expiry (claim exp)")]
    NoExpiry,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet (claim {0})")]
    NotYet(&'static str),
}

#[cfg(test)]
mod tests;
