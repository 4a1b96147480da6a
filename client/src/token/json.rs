//! The claims of a token as JSON, in the field names of Gazette's Go structs (gazette-spec 1.5).

use super::{Capability, Claims, LEEWAY, Refused};
use protocol::{Label, LabelSet, Selector};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The head of a token.
#[derive(Deserialize)]
pub(super) struct Head {
    pub alg: String,
    /// Extensions that must be understood: none is (RFC 7515, section 4.1.11).
    pub crit: Option<Value>,
}

/// Times are numbers of seconds, with a fraction where the signer likes it (RFC 7519, section 2).
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    cap: u32,
    sel: Option<WrittenSelector>,
    exp: Option<f64>,
    iat: Option<f64>,
    nbf: Option<f64>,
}

/// What is misspelled in a selector would widen it to all journals.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenSelector {
    include: Option<WrittenSet>,
    exclude: Option<WrittenSet>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSet {
    labels: Option<Vec<WrittenLabel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLabel {
    name: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    prefix: bool,
}

/// The claims as they are signed.
pub(super) fn write(claims: &Claims, now: SystemTime) -> String {
    let Selector { include, exclude } = &claims.selector;
    let selector = json!({ "include": set(include), "exclude": set(exclude) });
    let claims = json!({
        "cap": claims.capability.0,
        "sel": selector,
        "exp": seconds(claims.expires),
        "iat": seconds(now),
    });
    claims.to_string()
}

fn set(labels: &LabelSet) -> Value {
    let label = |label: &Label| {
        let mut written = json!({ "name": label.name, "value": label.value });
        if label.prefix {
            written["prefix"] = true.into();
        }
        written
    };
    json!({ "labels": labels.labels().iter().map(label).collect::<Vec<_>>() })
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads claims, and checks their times against `now`.
pub(super) fn read(bytes: &[u8], now: SystemTime) -> Result<Claims, Refused> {
    let refused = |why: String| Refused::Claims(why);
    let written: Written =
        serde_json::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
    let expires = time(written.exp.ok_or(Refused::NoExpiry)?);
    if expires + LEEWAY <= now {
        return Err(Refused::Expired);
    }
    for (name, claim) in [("iat", written.iat), ("nbf", written.nbf)] {
        if claim.is_some_and(|since| time(since) > now + LEEWAY) {
            return Err(Refused::NotYet(name));
        }
    }
    let selector = written.sel.unwrap_or_default();
    let selector = Selector { include: half(selector.include)?, exclude: half(selector.exclude)? };
    let selector = selector.without_legacy_prefix();
    Ok(Claims { capability: Capability(written.cap), selector, expires })
}

/// A time of seconds since 1970. Beyond the year 9999 it is for ever, before 1970 it has passed.
fn time(seconds: f64) -> SystemTime {
    const SECONDS_MAX: f64 = 253_402_300_799.0;
    // JSON has no number that is none.
    UNIX_EPOCH + Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX))
}

/// Signers need not sort labels, as the wire must: a selector means the same in any order.
fn half(set: Option<WrittenSet>) -> Result<LabelSet, Refused> {
    let labels = set.and_then(|set| set.labels).unwrap_or_default();
    let label = |WrittenLabel { name, value, prefix }| Label { name, value, prefix };
    let mut labels: Vec<Label> = labels.into_iter().map(label).collect();
    labels.sort();
    labels.dedup();
    LabelSet::for_selector(labels).map_err(|invalid| Refused::Claims(invalid.to_string()))
}
