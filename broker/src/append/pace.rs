//! Flow control: how fast a journal takes content, and how slowly a client may send it
//! (gazette-spec 2.8).
//!
//! Content is staged before an append takes its turn, so neither keeps anybody else waiting: a
//! client that is slowed down, or slow by itself, holds nothing but its own bytes.

use crate::{Error, Served};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What a journal may take at once when nothing was appended yet.
const AT_FIRST: Duration = Duration::from_secs(1);

/// What it may take at once after a pause, however long.
const BANKED_MAX: Duration = Duration::from_secs(10);

/// What a client may be behind at its begin, and ahead after a burst.
const CREDIT_MAX: Duration = Duration::from_secs(1);

/// The time that `len` bytes take at `rate` bytes a second.
fn cost(len: u64, rate: u64) -> Duration {
    let nanos = u128::from(len) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// What a journal may still take: all its appends together draw on it, in the order of asking.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// When everything taken so far is paid for at the journal's rate; `None` before the first.
    paid_at: Mutex<Option<Instant>>,
}

impl Allowance {
    /// Takes `cost` of the allowance. How long to wait until it is paid for.
    fn take(&self, cost: Duration, now: Instant) -> Duration {
        let earlier = |by| now.checked_sub(by).unwrap_or(now);
        let mut paid_at = self.paid_at.lock().expect("no holder of an allowance panics");
        let begin = paid_at.unwrap_or(earlier(AT_FIRST)).max(earlier(BANKED_MAX));
        // What has no end in the clock's range is as good as never.
        let end = begin.checked_add(cost).unwrap_or(begin);
        *paid_at = Some(end);
        end.saturating_duration_since(now)
    }

    fn give_back(&self, cost: Duration) {
        let mut paid_at = self.paid_at.lock().expect("no holder of an allowance panics");
        *paid_at = paid_at.and_then(|end| end.checked_sub(cost));
    }
}

/// What was taken of an allowance and is not paid for yet: given back when nobody waits any more.
struct Due<'a> {
    allowance: &'a Allowance,
    cost: Duration,
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.allowance.give_back(self.cost);
    }
}

/// Bytes that a journal takes at so many bytes a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    pub len: u64,
    pub rate: u64,
}

impl Price {
    /// Waits until the bytes may be taken, and says for how long. Where that is longer than `max`
    /// it fails at once with `OverRate`, and takes nothing of what others wait for.
    pub async fn pay(self, served: &Served, max: Option<Duration>) -> Result<Duration, Error> {
        let (allowance, cost) = (served.allowance(), cost(self.len, self.rate));
        let wait = allowance.take(cost, Instant::now());
        if wait.is_zero() {
            return Ok(wait);
        }
        let due = Due { allowance, cost };
        if max.is_some_and(|max| wait > max) {
            return Err(Error::OverRate { journal: served.journal().clone(), rate: self.rate });
        }
        sleep(wait).await;
        std::mem::forget(due);
        Ok(wait)
    }
}

/// How long a client that must send at some rate may still rest. Only its own pauses count: what it
/// waits for us does not.
#[derive(Debug)]
pub(super) struct Credit {
    rate: u64,
    left: Duration,
}

impl Credit {
    pub fn new(rate: u64) -> Self {
        Credit { rate, left: CREDIT_MAX }
    }

    pub fn left(&self) -> Duration {
        self.left
    }

    pub fn too_slow(&self) -> Error {
        Error::TooSlow { rate: self.rate }
    }

    /// `len` bytes came after a pause.
    pub fn received(&mut self, len: u64, pause: Duration) {
        let left = self.left.saturating_sub(pause).saturating_add(cost(len, self.rate));
        self.left = left.min(CREDIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn an_allowance_is_paid_at_its_rate() {
        let begin = Instant::now() + Duration::from_secs(3600);
        let allowance = Allowance::default();
        // Case: milliseconds since the begin, bytes at 1000 a second, the wait in milliseconds
        let cases = [
            (0, 600, 0),
            // Case: a second's worth at first, then as time goes.
            (0, 600, 200),
            (0, 100, 300),
            (200, 100, 200),
            (400, 0, 0),
            // Case: ten seconds are banked and no more.
            (100_000, 10_000, 0),
            (100_000, 500, 500),
            (200_000, 25_000, 15_000),
        ];
        for (at, len, wait) in cases {
            let found = allowance.take(cost(len, 1000), begin + MS(at));
            assert_eq!(found, MS(wait), "{len} at {at}");
        }
    }

    #[test]
    fn what_nobody_waits_for_is_given_back() {
        let now = Instant::now() + Duration::from_secs(3600);
        let allowance = Allowance::default();
        assert_eq!(allowance.take(MS(5000), now), MS(4000));
        drop(Due { allowance: &allowance, cost: MS(5000) });
        assert_eq!(allowance.take(MS(1500), now), MS(500));
        // Case: a cost beyond all time.
        assert_eq!(cost(u64::MAX, 0), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn a_client_may_rest_by_what_it_sent() {
        let mut credit = Credit::new(1000);
        // Case: bytes, the pause before them, milliseconds that are left
        for (len, pause, left) in
            [(0, 0, 1000), (100, 500, 600), (5000, 0, 1000), (0, 999, 1), (10, 1, 10), (0, 50, 0)]
        {
            credit.received(len, MS(pause));
            assert_eq!(credit.left(), MS(left), "{len} after {pause}");
        }
    }
}
