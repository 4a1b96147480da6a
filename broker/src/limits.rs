//! The bounds of a broker, each with its reason.

use std::time::Duration;

/// The longest append, unless configured: what one fragment should hold, and what a disk can be
/// asked to stage at once.
pub const APPEND_MAX: u64 = 4 << 30;

/// Content up to here is staged in memory. It is what a mount writes at once, and what moves into a
/// mirror on the thread that asked.
pub const STAGED_IN_MEMORY: usize = 1 << 20;

/// Content up to here is summed on the thread that asks: it takes a tenth of a millisecond.
pub const INLINE_SUM: usize = 128 << 10;

/// Staged bytes of all appends on disk, unless configured.
pub const STAGED_MAX: u64 = 16 << 30;

/// Staged bytes on disk of one connection: two of the longest appends.
pub const STAGED_PER_CONNECTION: u64 = 8 << 30;

/// Content that stops coming for so long is given up. An append holds nothing but its own bytes
/// meanwhile, so this is generous.
pub const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long a request waits for the first listing of a journal's stores before it is told `Later`:
/// less than callers wait for us.
pub const LISTING_WAIT: Duration = Duration::from_secs(10);

/// Listings under way at once. They are cheap for us and cost the store.
pub const LISTINGS: usize = 8;

/// Listings of what is new between two of everything: with Gazette's refresh interval of five
/// minutes everything is listed about every 80 minutes.
pub const LISTINGS_OF_NEWS: u32 = 16;

/// Fragments that a listing of what is new lists once more: twice what a Gazette broker puts at
/// the same time.
pub const LISTED_AGAIN: usize = 64;

/// A failed listing is tried again after this, doubling to `RETRY_MAX`.
pub const RETRY_MIN: Duration = Duration::from_millis(250);

/// The longest pause between two tries of a store that fails. What waits for it goes on within
/// half a minute of its recovery, and it is asked a few times a minute until then.
pub const RETRY_MAX: Duration = Duration::from_secs(16);

/// The longest pause between two looks for the directory of a file store that is missing.
pub const RETRY_OF_DIRECTORY: Duration = Duration::from_secs(1);

/// Fragments that are put at once: each compresses on a core and holds two parts in memory.
pub const PUTS: usize = 4;

/// A put that takes longer is given up and tried again: Gazette's limit, and a second for each MiB,
/// since a long fragment over a slow line must get there at all.
pub fn put_max(len: u64) -> Duration {
    Duration::from_secs(5 * 60 + (len >> 20))
}

/// Bytes of one chunk of a read: its message costs little, and is far below gRPC's 4 MiB.
pub const CHUNK: usize = 128 << 10;

/// Bytes of messages that gRPC's encoder puts together before it hands them on.
pub const BATCH: usize = 32 << 10;

/// The smallest chunk of a read: one page.
pub const CHUNK_MIN: usize = 4 << 10;

/// Local reads up to here run on the thread that asks: from the page cache they take microseconds.
pub const INLINE_READ: usize = 256 << 10;

/// Streams of stored fragments that stay open between two reads.
pub const PARKED_STREAMS: usize = 16;

/// A parked stream serves a read that begins up to so far ahead of it, and skips what lies between.
pub const SKIP_MAX: u64 = 4 << 20;

/// Bytes that a parked stream keeps behind its position, for reads that come out of order.
pub const WINDOW: u64 = 2 << 20;

/// A later fragment of this age ends the wait for what lies before it (gazette-spec 1.7).
pub const JUMP_AGE: Duration = Duration::from_secs(6 * 60 * 60);

/// Free bytes that eviction keeps, where the disk is large: `FREE_SHARE` of it at most.
pub const FREE_MIN: u64 = 1 << 30;
pub const FREE_SHARE: u64 = 20;

/// The share of the local budget that is freed beyond what is over it.
pub const FREED_AHEAD_SHARE: u64 = 16;

/// The share of the local budget that is still free when spools are closed early and loans are
/// taken back: the ones have to be stored first, the others come back when those who read get to
/// know of it.
pub const SHORT_SHARE: u64 = 8;

/// A spool that has this share of the bytes that have to go is closed early at once.
pub const EARLY_SHARE: u64 = 16;

/// A shorter one is when it is so old, in microseconds: one fragment in so much time is what a
/// journal makes of it at most.
pub const EARLY_AGE_US: u64 = 10_000_000;

/// How long an append or a sync waits for a disk whose every try fails, before its caller is told.
/// A disk that works again within a second or two is nobody's affair, and callers of a mount wait
/// half a minute at most.
pub const DISK_PATIENCE: Duration = Duration::from_secs(5);

/// How long a backup may keep journals from being created and fragments from being stored: callers
/// wait meanwhile.
pub const QUIET_MAX: Duration = Duration::from_secs(60);

/// How often it is looked whether a hold may go on.
pub const HOLD_LOOK: Duration = Duration::from_secs(1);

/// The longest hold: a copy that is slower than that is stuck.
pub const HOLD_MAX: Duration = Duration::from_secs(24 * 3600);

/// A hold ends when the free part of the disk is below this share of what is to stay free: room for
/// appends goes before a backup.
pub const HOLD_FREE_SHARE: u64 = 2;

/// Bytes of the key space's file in one answer.
pub const IMAGE_PART: usize = 1 << 20;

/// How long a closing broker waits for what is under way.
pub const CLOSE_WAIT: Duration = Duration::from_secs(5);
