//! How many bytes a journal keeps and has, by labels: a spec of Gazette's knows retention by age
//! alone and no limit of size, and takes any label.

use crate::{Error, Served};
use protocol::{Invalid, JournalSpec, Offset};

/// How many bytes below its head a journal keeps at least; more are deleted in their time.
pub(crate) const RETAIN_BYTES: &str = "courant/retain-bytes";

/// How many readable bytes a journal has at most.
const MAX_BYTES: &str = "courant/max-bytes";

/// Refuses an append of `len` bytes that would make a journal longer than it may be. What was
/// trimmed does not count.
pub(crate) fn check(served: &Served, head: Offset, len: u64) -> Result<(), Error> {
    let entry = served.entry();
    let Some(max) = bytes_of(&entry.spec, MAX_BYTES)? else { return Ok(()) };
    let size = head.as_u64().saturating_sub(served.first().as_u64());
    if size.saturating_add(len) <= max {
        return Ok(());
    }
    Err(Error::OverSize { journal: served.journal().clone(), max })
}

/// Refuses a spec of which a label says no number of bytes.
pub(crate) fn check_labels(spec: &JournalSpec) -> Result<(), Error> {
    [RETAIN_BYTES, MAX_BYTES].into_iter().try_for_each(|label| bytes_of(spec, label).map(drop))
}

/// What a label of a journal says, if it has it.
pub(crate) fn bytes_of(spec: &JournalSpec, label: &str) -> Result<Option<u64>, Error> {
    let Some(value) = spec.labels.value_of(label) else { return Ok(None) };
    match value.parse() {
        Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => {
            let text = format!(
                "{}: its label {label} is {value:?}, and no number of bytes, such as 1073741824",
                spec.name
            );
            Err(Invalid::new(text).into())
        }
    }
}
