//! Who may do what: a request's bearer token against the keys of the broker (gazette-spec 1.5).
//!
//! Without keys everybody may do everything. With keys each door asks its [`Guard`] first, and what
//! it gets, a [`Grant`], goes with the request: a journal that the grant does not see is not there.

use crate::Error;
use client::token::{self, Capability, Keys};
use index::Clock;
use protocol::{Journal, LabelSet, Selector};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request without a token may go on where keys let such requests in.
const OPEN_TTL: Duration = Duration::from_secs(3600);

/// Why a request is not authorized. Over gRPC each is `Unauthenticated`, as with Gazette.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unauthorized {
    #[error("no authorization: send the header `authorization: Bearer TOKEN`")]
    Missing,
    #[error("the authorization is not of the form `Bearer TOKEN`")]
    NotBearer,
    #[error("the bearer token is refused: {0}")]
    Token(#[from] token::Refused),
    #[error(
        "the bearer token lacks the capability {needed}, which {} needs (it has {has})",
        .needed.purpose()
    )]
    Lacks { needed: Capability, has: Capability },
    #[error("not authorized to {0}")]
    Journal(Journal),
    /// The request is about more than the journals of a selector.
    #[error("not authorized: the token is for some journals alone, and this is about all of them")]
    NotAll,
    #[error("the bearer token expired while the request was under way")]
    Expired,
}

impl Unauthorized {
    /// Whether another token of the same bearer would not help: he is known, and may not.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Unauthorized::Lacks { .. } | Unauthorized::Journal(_) | Unauthorized::NotAll => true,
            Unauthorized::Missing
            | Unauthorized::NotBearer
            | Unauthorized::Token(_)
            | Unauthorized::Expired => false,
        }
    }
}

/// The keys of a port. Without any, all are let in.
#[derive(Debug)]
pub struct Guard {
    keys: Option<Keys>,
    clock: Arc<dyn Clock>,
}

impl Guard {
    pub fn new(keys: Option<Keys>, clock: Arc<dyn Clock>) -> Self {
        Guard { keys, clock }
    }

    /// Whether anything is checked at all.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// What a request may do whose header `authorization` is this one, if it may do what it needs.
    pub fn check(
        &self,
        authorization: Option<&[u8]>,
        needed: Capability,
    ) -> Result<Grant, Unauthorized> {
        let Some(keys) = &self.keys else { return Ok(Grant::all()) };
        let Some(authorization) = authorization.filter(|header| !header.is_empty()) else {
            return match keys.is_open() {
                true => Ok(Grant { selector: None, until: Some(Instant::now() + OPEN_TTL) }),
                false => Err(Unauthorized::Missing),
            };
        };
        let token = bearer(authorization).ok_or(Unauthorized::NotBearer)?;
        let now = self.clock.now();
        let claims = keys.verify(token, now)?;
        if !claims.capability.has(needed) {
            return Err(Unauthorized::Lacks { needed, has: claims.capability });
        }
        let left = claims.expires.duration_since(now).unwrap_or(Duration::ZERO);
        let is_for_all = claims.selector == Selector::default();
        Ok(Grant {
            selector: (!is_for_all).then(|| Arc::new(claims.selector)),
            // A token that lasts longer than a clock can count lasts for ever.
            until: Instant::now().checked_add(left),
        })
    }
}

/// The token of `Bearer TOKEN`. The word is of either case (RFC 9110, section 11.1).
fn bearer(authorization: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(authorization).ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// What one request may do: with which journals, and until when.
#[derive(Debug, Clone)]
pub struct Grant {
    /// `None`: all journals.
    selector: Option<Arc<Selector>>,
    /// `None`: for ever.
    until: Option<Instant>,
}

impl Grant {
    /// Everything, for ever.
    pub fn all() -> Self {
        Grant { selector: None, until: None }
    }

    /// Whether a journal of that name and those labels is one that it is about.
    pub fn sees(&self, journal: &Journal, labels: &LabelSet) -> bool {
        self.selector.as_ref().is_none_or(|selector| selector.matches(labels, journal))
    }

    /// Refuses a journal that it is not about.
    pub fn check(&self, journal: &Journal, labels: &LabelSet) -> Result<(), Unauthorized> {
        match self.sees(journal, labels) {
            true => Ok(()),
            false => Err(Unauthorized::Journal(journal.clone())),
        }
    }

    /// Whether it is about all journals.
    pub fn is_for_all(&self) -> bool {
        self.selector.is_none()
    }

    /// Refuses unless it is about all journals.
    pub fn check_all(&self) -> Result<(), Unauthorized> {
        if self.is_for_all() { Ok(()) } else { Err(Unauthorized::NotAll) }
    }

    /// Why what it allowed ended: its time is over, or the port's.
    pub fn why_ended(&self) -> Error {
        match self.until.is_some_and(|until| until <= Instant::now()) {
            true => Unauthorized::Expired.into(),
            false => Error::Closing,
        }
    }

    /// Returns when it ends. What goes on for long ends then: a read, a watch.
    pub async fn ended(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::token::Claims;
    use index::clock::ManualClock;
    use std::time::UNIX_EPOCH;

    const NOW: Duration = Duration::from_secs(1_750_000_000);

    fn guard(keys: &str) -> Guard {
        let keys = (!keys.is_empty()).then(|| keys.parse().expect("valid keys"));
        let now = u64::try_from(NOW.as_micros()).expect("fits");
        Guard::new(keys, Arc::new(ManualClock::at_us(now)))
    }

    fn token(capability: Capability, selector: &str, ttl: i64) -> String {
        let keys: Keys = "c2VjcmV0".parse().expect("valid keys");
        let expires = NOW.as_secs().checked_add_signed(ttl).expect("a time");
        let expires = UNIX_EPOCH + Duration::from_secs(expires);
        let selector = selector.parse().expect("a valid selector");
        keys.sign(&Claims { capability, selector, expires }, UNIX_EPOCH + NOW)
    }

    #[tokio::test]
    async fn tokens_are_asked_for_where_there_are_keys() {
        let valid = format!("Bearer {}", token(Capability::READ, "", 60));
        let lower = valid.replace("Bearer", "bearer");
        let late = format!("Bearer {}", token(Capability::READ, "", -6));
        let listing = format!("Bearer {}", token(Capability::LIST, "", 60));
        // Case: the keys, the header, and why a read is refused
        let cases = [
            ("", None, None),
            ("", Some("nonsense"), None),
            ("c2VjcmV0", None, Some("no authorization")),
            ("c2VjcmV0", Some(""), Some("no authorization")),
            ("c2VjcmV0", Some("Basic YTpi"), Some("not of the form")),
            ("c2VjcmV0", Some("Bearer"), Some("not of the form")),
            ("c2VjcmV0", Some("Bearer nonsense"), Some("no JWT")),
            ("c2VjcmV0", Some(&*valid), None),
            ("c2VjcmV0", Some(&*lower), None),
            ("b3RoZXI=,c2VjcmV0", Some(&*valid), None),
            ("b3RoZXI=", Some(&*valid), Some("of none of the keys")),
            ("c2VjcmV0", Some(&*late), Some("expired")),
            ("c2VjcmV0", Some(&*listing), Some("lacks the capability READ")),
            // Case: who shows nothing is let in, who shows something wrong is not
            ("c2VjcmV0,AA==", None, None),
            ("c2VjcmV0,AA==", Some("Bearer nonsense"), Some("no JWT")),
            ("c2VjcmV0,AA==", Some(&*listing), Some("lacks the capability READ")),
        ];
        for (keys, header, expected) in cases {
            let found = guard(keys).check(header.map(str::as_bytes), Capability::READ);
            match (found, expected) {
                (Ok(_), None) => {}
                (Err(refused), Some(why)) => {
                    assert!(refused.to_string().contains(why), "{keys} {header:?}: {refused}");
                }
                (found, _) => panic!("{keys} {header:?}: {found:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_grant_sees_what_its_selector_matches() {
        let labels = LabelSet::default().with("tag", "a").expect("valid");
        // Case: the selector, whether it sees logs/app with tag=a, whether it sees everything
        let cases = [
            ("", true, true),
            ("name=logs/app", true, false),
            ("name=logs/other", false, false),
            ("name:prefix=logs/", true, false),
            ("prefix=logs/", true, false),
            ("tag=a", true, false),
            ("tag=b", false, false),
            ("!tag", false, false),
        ];
        for (selector, sees, is_all) in cases {
            let header = format!("Bearer {}", token(Capability::ALL, selector, 60));
            let grant = guard("c2VjcmV0").check(Some(header.as_bytes()), Capability::APPLY);
            let grant = grant.expect("authorized");
            let journal = "logs/app".parse().expect("valid");
            assert_eq!(grant.sees(&journal, &labels), sees, "{selector}");
            assert_eq!(grant.check(&journal, &labels).is_ok(), sees, "{selector}");
            assert_eq!(grant.check_all().is_ok(), is_all, "{selector}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_ends_with_its_token() {
        let header = format!("Bearer {}", token(Capability::READ, "", 60));
        let grant = guard("c2VjcmV0").check(Some(header.as_bytes()), Capability::READ);
        let begun = Instant::now();
        grant.expect("authorized").ended().await;
        assert_eq!(begun.elapsed().as_secs(), 60);
        // Case: without keys nothing ends
        let ended = tokio::time::timeout(Duration::from_secs(1 << 30), Grant::all().ended()).await;
        assert!(ended.is_err());
    }
}
