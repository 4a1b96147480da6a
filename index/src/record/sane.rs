//! Whether a record says what can be: a checksum vouches for its bytes, and not for who wrote them.

use super::{Append, Body, Mark, Persisted, Rolled, Synced};

/// Whether the numbers of the record fit together. One that is not sane does not count as a record:
/// its place is damaged, as if its checksum were wrong.
pub fn is_sane(body: &Body) -> bool {
    match body {
        Body::Append(append) => is_sane_append(append),
        Body::Rolled(Rolled { begin, end, .. })
        | Body::Persisted(Persisted { begin, end, .. })
        | Body::Synced(Synced { begin, end, .. })
        | Body::Evicted(Mark { begin, end, .. })
        | Body::Trimmed(Mark { begin, end, .. })
        | Body::Lost(Mark { begin, end, .. })
        | Body::Damaged(Mark { begin, end, .. })
        | Body::Adopted(Mark { begin, end, .. })
        | Body::Ceiling(Mark { begin, end, .. })
        | Body::Gathered(Mark { begin, end, .. }) => 0 <= *begin && begin <= end,
        Body::Segment(_) | Body::Created(_) | Body::Deleted(_) | Body::Stop(_) => true,
    }
}

fn is_sane_append(append: &Append) -> bool {
    let Append { begin, len, content, staged, spool_begin, .. } = append;
    let is_whole = staged.is_some() || content.len() as u64 == *len;
    let ends = i64::try_from(*len).ok().and_then(|len| begin.checked_add(len));
    is_whole && 0 <= *spool_begin && *spool_begin <= *begin && ends.is_some()
}
