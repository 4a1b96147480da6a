//! The keys by which tokens are signed and verified.

use super::json::{self, Head};
use super::{Capability, Claims, Refused};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, general_purpose::URL_SAFE};
use ring::hmac;
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

/// The key that says: who shows no token at all may do all, too (gazette-spec 1.5).
const OPEN: &[u8] = &[0];

/// Keys are taken with and without their padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Keys that a fleet shares: the first one signs, and each one verifies, so that a new key can be
/// put in front while tokens of the old one are about. There is at least one.
#[derive(Clone)]
pub struct Keys {
    keys: Vec<Key>,
    is_open: bool,
}

#[derive(Clone)]
struct Key {
    hs256: hmac::Key,
    hs384: hmac::Key,
}

impl Key {
    fn new(secret: &[u8]) -> Self {
        let key = |algorithm| hmac::Key::new(algorithm, secret);
        Key { hs256: key(hmac::HMAC_SHA256), hs384: key(hmac::HMAC_SHA384) }
    }
}

/// Says how many there are, never what they are.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("len", &self.keys.len())
            .field("is_open", &self.is_open)
            .finish()
    }
}

impl FromStr for Keys {
    type Err = Refused;

    /// Base64, separated by commas or white space. `AA==` is no key: see [`Keys::is_open`].
    fn from_str(text: &str) -> Result<Self, Refused> {
        let is_border = |c: char| c == ',' || c.is_whitespace();
        let mut keys = Keys { keys: Vec::new(), is_open: false };
        for text in text.split(is_border).filter(|text| !text.is_empty()) {
            let secret = LENIENT.decode(text).map_err(|_invalid| Refused::NotBase64)?;
            match secret.as_slice() {
                OPEN => keys.is_open = true,
                secret => keys.keys.push(Key::new(secret)),
            }
        }
        if keys.keys.is_empty() { Err(Refused::NoKey) } else { Ok(keys) }
    }
}

impl Keys {
    /// Whether a request without any token is served too, while a fleet learns to send them.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// A token of these claims, signed at `now` by the first key.
    pub fn sign(&self, claims: &Claims, now: SystemTime) -> String {
        let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let body = URL_SAFE_NO_PAD.encode(json::write(claims, now));
        let signed = format!("{head}.{body}");
        let key = self.keys.first().expect("there is at least one key");
        let tag = hmac::sign(&key.hs256, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// A token for one request that needs `capability`.
    pub fn sign_for(&self, capability: Capability, now: SystemTime) -> String {
        self.sign(&Claims::of_call(capability, now), now)
    }

    /// What a token says, if one of the keys signed it and `now` is its time.
    pub fn verify(&self, token: &str, now: SystemTime) -> Result<Claims, Refused> {
        let (signed, tag) = token.rsplit_once('.').ok_or(Refused::Malformed("it has no parts"))?;
        let (head, body) =
            signed.split_once('.').ok_or(Refused::Malformed("expected three parts"))?;
        let head: Head = serde_json::from_slice(&decoded(head)?)
            .map_err(|_invalid| Refused::Malformed("its head is not JSON"))?;
        if head.crit.is_some() {
            return Err(Refused::Malformed("its head has extensions (crit)"));
        }
        let key_of = match head.alg.as_str() {
            "HS256" => |key: &Key| key.hs256.clone(),
            "HS384" => |key: &Key| key.hs384.clone(),
            other => return Err(Refused::Algorithm(other.to_owned())),
        };
        let tag = decoded(tag)?;
        let is_signed_by = |key: &Key| hmac::verify(&key_of(key), signed.as_bytes(), &tag).is_ok();
        if !self.keys.iter().any(is_signed_by) {
            return Err(Refused::Signature);
        }
        json::read(&decoded(body)?, now)
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Refused> {
    let engine = if part.ends_with('=') { &URL_SAFE } else { &URL_SAFE_NO_PAD };
    engine.decode(part).map_err(|_invalid| Refused::Malformed("a part is not base64"))
}
