//! Waiting in real time for other processes, never without a limit.

use std::time::Duration;

/// How often a condition is looked at.
const PACE: Duration = Duration::from_millis(10);

/// The limit against hanging where no other is given: generous, since it decides nothing but that.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until it holds; panics after [`LIMIT`].
#[track_caller]
pub fn until(what: &str, holds: impl FnMut() -> bool) {
    assert!(reached(LIMIT, holds), "not within {} s: {what}", LIMIT.as_secs());
}

/// Whether it came to hold within the limit.
pub fn reached(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let looks = limit.as_millis() / PACE.as_millis();
    for _ in 0..looks {
        if holds() {
            return true;
        }
        pause(PACE);
    }
    holds()
}

/// Lets real time pass, so that other processes get somewhere.
#[expect(clippy::disallowed_methods, reason = "other processes live in real time")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
