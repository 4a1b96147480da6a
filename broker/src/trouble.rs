//! Work that is done again and again, and fails: told once in the log, and to those who wait
//! for it.
//!
//! An append that is recorded goes forward only, so a disk that fails leaves it undecided: it
//! happens when the disk works again. Its caller is not kept for so long.

use crate::{Error, limits};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;

/// What fails of an operation of the disk.
#[derive(Debug, Clone)]
struct Cause {
    operation: &'static str,
    path: PathBuf,
    errno: Option<i32>,
}

/// What fails at the moment, of the work that appends wait for.
#[derive(Debug, Default)]
pub(crate) struct Troubles(watch::Sender<BTreeMap<&'static str, Cause>>);

impl Troubles {
    /// Waits for work that needs the disk. Where it is not done and the disk has failed for
    /// [`limits::DISK_PATIENCE`], the disk's error is the answer.
    pub async fn outlast<T>(
        &self,
        work: impl Future<Output = Result<T, index::Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            done = work => Ok(done?),
            cause = self.lasting() => Err(cause.into()),
        }
    }

    async fn lasting(&self) -> index::Error {
        let mut troubles = self.0.subscribe();
        loop {
            let begun = troubles.wait_for(|troubles| !troubles.is_empty()).await;
            let cause = begun.ok().and_then(|troubles| troubles.values().next().cloned());
            let Some(Cause { operation, path, errno }) = cause else {
                return std::future::pending().await;
            };
            let over = troubles.wait_for(BTreeMap::is_empty);
            if timeout(limits::DISK_PATIENCE, over).await.is_err() {
                let source =
                    errno.map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
                return index::Error::Disk { operation, path, source };
            }
        }
    }

    fn note(&self, what: &'static str, error: Option<&index::Error>) {
        let cause = match error {
            Some(index::Error::Disk { operation, path, source }) => {
                Some(Cause { operation, path: path.clone(), errno: source.raw_os_error() })
            }
            _ => None,
        };
        self.0.send_if_modified(|troubles| match cause {
            None => troubles.remove(what).is_some(),
            Some(cause) => troubles.insert(what, cause).is_none(),
        });
    }
}

/// Says once that something fails, and once that it works again.
pub(crate) struct Trouble {
    what: &'static str,
    /// Where those who wait for the work hear of it, if anybody does.
    troubles: Option<Arc<Troubles>>,
    last: Option<String>,
}

impl Trouble {
    pub fn new(what: &'static str) -> Self {
        Trouble { what, troubles: None, last: None }
    }

    /// Of work that appends wait for.
    pub fn of_appends(what: &'static str, troubles: &Arc<Troubles>) -> Self {
        Trouble { troubles: Some(troubles.clone()), ..Trouble::new(what) }
    }

    pub fn note(&mut self, result: Result<(), index::Error>) {
        if let Some(troubles) = &self.troubles {
            troubles.note(self.what, result.as_ref().err());
        }
        match result {
            Ok(()) if self.last.take().is_some() => {
                tracing::info!("{} works again", self.what);
            }
            Ok(()) => {}
            Err(error) => {
                let text = error.to_string();
                if self.last.as_ref() != Some(&text) {
                    tracing::error!(%error, "{} fails, and is tried again", self.what);
                }
                self.last = Some(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::time::Duration;
    use tokio::time::sleep;

    fn failure() -> Result<(), index::Error> {
        let source = io::Error::from_raw_os_error(5);
        Err(index::Error::Disk { operation: "sync", path: "log".into(), source })
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_fails_keeps_nobody() {
        let troubles = Arc::default();
        let mut sync = Trouble::of_appends("the sync", &troubles);
        sync.note(failure());
        // Case: what is done is done.
        assert_eq!(troubles.outlast(ready(Ok(7))).await.expect("it is done"), 7);
        // Case: what never is ends with the disk's error.
        let failed = troubles.outlast(pending::<Result<(), index::Error>>()).await.unwrap_err();
        assert!(failed.to_string().contains("Input/output error"), "{failed}");
        // Case: a disk that works again in time is waited for.
        let work = async {
            sleep(limits::DISK_PATIENCE / 2).await;
            sync.note(Ok(()));
            sleep(2 * limits::DISK_PATIENCE).await;
            Ok(8)
        };
        assert_eq!(troubles.outlast(work).await.expect("it is done"), 8);
        // Case: an error that is none of the disk's stops nobody.
        sync.note(Err(index::Error::Closing));
        let work = async {
            sleep(Duration::from_secs(60)).await;
            Ok(9)
        };
        assert_eq!(troubles.outlast(work).await.expect("it is done"), 9);
    }
}
