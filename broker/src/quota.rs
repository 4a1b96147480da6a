//! How long a journal may be.

use crate::{Error, Served};
use protocol::Offset;

/// Refuses an append of `len` bytes that would make a journal longer than its spec says. What was
/// trimmed does not count.
pub(crate) fn check(served: &Served, head: Offset, len: u64) -> Result<(), Error> {
    let Some(max) = served.entry().spec.max_bytes()? else { return Ok(()) };
    let max = max.unsigned_abs();
    let size = head.as_u64().saturating_sub(served.first().as_u64());
    if size.saturating_add(len) <= max {
        return Ok(());
    }
    Err(Error::OverSize { journal: served.journal().clone(), max })
}
