//! Asking again for what passes by itself, for as long as the mount waits.

use client::Error;
use protocol::Remedy;
use std::time::Duration;

const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Asks until the answer is not `Later`, or `limit` is over; then the last such answer stands, or
/// `Unknown` when there was none. What is asked must bear being asked twice.
pub(crate) async fn patiently<T, W>(limit: Duration, ask: impl Fn() -> W) -> Result<T, Error>
where
    W: Future<Output = Result<T, Error>>,
{
    let mut last = Error::Unknown;
    let asking = async {
        let mut pause = PAUSE_FIRST;
        loop {
            match ask().await {
                Err(error) if error.remedy() == Remedy::Later => last = error,
                answer => return answer,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    };
    match tokio::time::timeout(limit, asking).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(last),
    }
}
