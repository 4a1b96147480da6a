//! Asking again, for what passes by itself: paced, with jitter, and not for ever.

use crate::Error;
use crate::limits::{PAUSE_FIRST, PAUSE_MAX};
use protocol::Remedy;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The pauses between attempts: each up to twice as long as the one before, and none of a length
/// that others could have too, so that the clients of a broker that comes back do not come at once.
#[derive(Debug, Clone)]
pub struct Pauses {
    next: Duration,
    state: u64,
}

impl Pauses {
    /// The same seed gives the same pauses; each client has its own.
    pub fn new(seed: u64) -> Self {
        Pauses { next: PAUSE_FIRST, state: seed }
    }

    /// Begins with short pauses again, after a success.
    pub fn reset(&mut self) {
        self.next = PAUSE_FIRST;
    }

    /// A length between the half and the whole of the present step.
    pub(crate) fn step(&mut self) -> Duration {
        let half = self.next / 2;
        self.next = (self.next * 2).min(PAUSE_MAX);
        half + half.mul_f64(self.fraction())
    }

    /// A number of `0.0..1.0` (splitmix64).
    fn fraction(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Waits before the next attempt.
    pub async fn pause(&mut self) {
        sleep(self.step()).await;
    }
}

/// Whether an error asks for another attempt. Nothing else decides that.
pub fn is_worth_a_retry(error: &Error) -> bool {
    match error.remedy() {
        Remedy::Later | Remedy::Reroute => true,
        Remedy::Fix | Remedy::Lost => false,
    }
}

/// Asks until the answer is final or `limit` is over; then the last answer stands, or `Unknown`
/// when there was none. What is asked must bear being asked twice.
pub async fn patiently<T, W>(
    limit: Duration,
    mut pauses: Pauses,
    mut ask: impl FnMut() -> W,
) -> Result<T, Error>
where
    W: Future<Output = Result<T, Error>>,
{
    let mut last = Error::Unknown;
    let asking = async {
        loop {
            match ask().await {
                Err(error) if is_worth_a_retry(&error) => {
                    tracing::debug!(%error, "it is asked again");
                    last = error;
                }
                answer => return answer,
            }
            pauses.pause().await;
        }
    };
    match timeout(limit, asking).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[test]
    fn pauses_grow_to_a_bound_and_differ() {
        let mut pauses = Pauses::new(1);
        let mut whole = PAUSE_FIRST;
        for _ in 0..20 {
            let step = pauses.step();
            assert!(step >= whole / 2 && step <= whole, "{step:?} of {whole:?}");
            whole = (whole * 2).min(PAUSE_MAX);
        }
        pauses.reset();
        assert!(pauses.step() <= PAUSE_FIRST);
        assert_ne!(Pauses::new(1).step(), Pauses::new(2).step());
        assert_eq!(Pauses::new(1).step(), Pauses::new(1).step());
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_passes_is_asked_again() {
        let later = || Error::Later("busy".into());
        type Answers = Vec<Result<u32, Error>>;
        // Case: the answers, how often is asked, how it ends
        let cases: [(Answers, usize, &str); 4] = [
            (vec![Ok(1)], 1, "1"),
            (vec![Err(later()), Err(Error::Unreachable("gone".into())), Ok(2)], 3, "2"),
            (vec![Err(Error::Unknown), Ok(3)], 1, "no answer came"),
            (vec![Err(later()), Err(Error::Protocol("odd".into())), Ok(4)], 2, "odd"),
        ];
        for (answers, times, expected) in cases {
            let mut asked = 0;
            let found = patiently(Duration::from_secs(60), Pauses::new(7), || {
                asked += 1;
                std::future::ready(answers[asked - 1].clone())
            })
            .await;
            let text = found.map_or_else(|error| error.to_string(), |number| number.to_string());
            assert!(text.contains(expected), "{text}");
            assert_eq!(asked, times, "{expected}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn patience_has_a_limit() {
        let limit = Duration::from_secs(3);
        let begun = Instant::now();
        let found: Result<(), Error> = patiently(limit, Pauses::new(1), || {
            std::future::ready(Err(Error::Later("store away".into())))
        })
        .await;
        assert!(matches!(found, Err(Error::Later(_))));
        assert_eq!(begun.elapsed(), limit);
        // Case: no answer at all
        let found: Result<(), Error> =
            patiently(limit, Pauses::new(1), std::future::pending::<Result<(), Error>>).await;
        assert!(matches!(found, Err(Error::Unknown)));
    }
}
