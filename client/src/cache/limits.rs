//! The bounds of a cache, each with its reason.

use std::time::Duration;

/// What is counted as used, and freed, together.
pub(super) const CHUNK_LEN: u64 = 1 << 20;

/// Bytes that one request of a fetch asks for.
pub(super) const PIECE_MAX: usize = 1 << 20;

/// How far a sequential reader is read ahead of: what a few round trips to another region take at
/// a gigabit a second.
pub(super) const AHEAD: u64 = 8 << 20;

/// How far from where the last read ended a read still counts as its successor.
pub(super) const NEAR: u64 = 1 << 20;

/// Fetches under way at once, each with one piece in memory. A reader beyond them reads past the
/// cache.
pub(super) const FETCHES_MAX: usize = 16;

/// Journals that have a mirror, each of which keeps a file open. The one that was not read for
/// longest goes first.
pub(super) const MIRRORS_MAX: usize = 4096;

/// Journals that are lent, each of which is followed for as long.
pub(super) const LENT_MAX: usize = 1024;

/// Up to here a journal that was whole is made so again when its growth is told.
pub(super) const GROWTH_MAX: u64 = 1 << 20;

/// Between two journals whose loans are asked back, and for how long nobody appended to one here.
pub(super) const RECALL_PAUSE: Duration = Duration::from_secs(5);

/// For how long it is waited for such a journal before another one is asked for in its place.
pub(super) const RECALL_MAX: Duration = Duration::from_secs(60);

/// How long whoever asks for a size waits for a lent mirror to have as many bytes.
pub(super) const CATCH_UP_MAX: Duration = Duration::from_secs(2);

/// How long nothing is written after the local disk failed.
pub(super) const REST: Duration = Duration::from_secs(30);

/// Reads up to here run on the thread that asks, as a broker's do: from the page cache they take
/// microseconds.
pub(super) const INLINE_READ: usize = 256 << 10;

/// The list of what a cache has is refused beyond this: four thousand journals with thousands of
/// spans each.
pub(super) const LIST_MAX: u64 = 256 << 20;
