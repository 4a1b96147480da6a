//! The seam to the time of day.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time of day. Waiting is `tokio::time`'s, which tests pause.
pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> SystemTime;

    /// Microseconds since 1970; 0 before.
    fn now_us(&self) -> u64 {
        let since = self.now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    // The one place that fills the seam.
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that a test sets.
#[derive(Debug, Default)]
pub struct ManualClock(std::sync::atomic::AtomicU64);

impl ManualClock {
    pub fn at_us(us: u64) -> Self {
        ManualClock(us.into())
    }

    pub fn advance(&self, by: Duration) {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.fetch_add(us, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
}
