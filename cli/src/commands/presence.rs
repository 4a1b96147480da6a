//! The log's lines of a broker that is away: one when it goes, and one when it is back.

use client::Away;
use protocol::duration;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Logs whenever the broker at `url` goes, and comes back: by a task, which ends with the set.
pub fn tell(url: &str, mut presence: watch::Receiver<Option<Away>>) -> JoinSet<()> {
    let url = url.to_owned();
    let telling = async move {
        let mut last = None;
        loop {
            let away = presence.borrow_and_update().clone();
            if let Some(line) = line(&url, last.as_ref(), away.as_ref()) {
                match away {
                    Some(_) => tracing::warn!("{line}"),
                    None => tracing::info!("{line}"),
                }
            }
            last = away;
            if presence.changed().await.is_err() {
                return;
            }
        }
    };
    let mut task = JoinSet::new();
    task.spawn(telling);
    task
}

/// What there is to say of a change.
fn line(url: &str, last: Option<&Away>, away: Option<&Away>) -> Option<String> {
    let seconds = |away: &Away| duration::format(Duration::from_secs(away.lasts().as_secs()));
    let since = |away: &Away| match away.lasts().as_secs() {
        0 => String::new(),
        _ => format!(" and has not answered for {}", seconds(away)),
    };
    match (last, away) {
        (None, Some(away)) => Some(format!(
            "the broker at {url} is away{}: {}; what is asked of it waits",
            since(away),
            away.why
        )),
        (Some(last), None) => Some(format!("the broker at {url} is back after {}", seconds(last))),
        (Some(_), Some(_)) | (None, None) => None,
    }
}
