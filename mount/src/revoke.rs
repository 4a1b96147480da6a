//! Ending the handles of journals whose bytes are asked back.
//!
//! The kernel notices as it looks the name up, which is for somebody else to cause: the helper
//! process does, where there is one, and else whoever comes next.

use crate::notify::Helper;
use fs::{Filesystem, Revoked};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often those are looked at again that their writers had open.
const PACE: Duration = Duration::from_secs(1);

/// Takes back what is asked for, for as long as anything may be.
pub async fn take_back(fs: Arc<Filesystem>, helper: Option<Helper>) {
    let mut asked = fs.revocations();
    loop {
        let lives = asked.borrow_and_update().clone();
        for revoked in fs.take_back(&lives) {
            tell(&fs, helper.as_ref(), &revoked).await;
        }
        tokio::select! {
            biased;
            changed = asked.changed() => if changed.is_err() { return },
            () = sleep(PACE), if !lives.is_empty() => {}
        }
    }
}

/// Has the name looked up.
async fn tell(fs: &Arc<Filesystem>, helper: Option<&Helper>, revoked: &Revoked) {
    let Some(helper) = helper else { return };
    let Ok(Some(place)) = fs.place_of_revoked(revoked).await else { return };
    if helper.touch(place).await {
        fs.has_taken_back(revoked);
    }
}
