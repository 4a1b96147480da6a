//! The bounds of the local side, each with its reason.

/// Content up to here is written into its record; beyond it lies in a staging file, so that a
/// segment holds many records and a record is read in one go.
pub const INLINE_MAX: u64 = 64 << 10;

/// The size of a commit log segment where the disk is large enough for sixteen of them.
pub const SEGMENT_LEN: u64 = 64 << 20;

/// The first segment of a new data directory: small, so that a first start is quick.
pub const FIRST_SEGMENT_LEN: u64 = 4 << 20;

/// Below this a segment does not hold one record of `INLINE_MAX` with its frame and room for marks.
pub const SEGMENT_LEN_MIN: u64 = 256 << 10;

/// The end of a segment that only marks may use when no spare could be made: a full disk must still
/// record what frees it.
pub const MARKS_RESERVE: u64 = 32 << 10;

/// A shared staging file takes the content of many appends up to this size.
pub const STAGING_FILE_LEN: u64 = 64 << 20;

/// Of content that comes as a stream so much is left to the page cache before the disk is asked to
/// begin with it: the sync at its end has little to wait for.
pub const WRITTEN_SOON_LEN: u64 = 8 << 20;

/// Idle staging files that are kept for reuse.
pub const STAGING_POOL: usize = 4;

/// Bytes of records and of staged content that wait in memory for a sync past which one is asked
/// for at once, and past which appends wait for it: what failed to sync is written again from
/// there.
pub const UNSYNCED_SOON: u64 = 4 << 20;
pub const UNSYNCED_MAX: u64 = 24 << 20;

/// Staged bytes since the last checkpoint past which the next one is due, where the disk is large
/// enough for sixteen times as many: a start needs room for them in mirrors once more.
pub const STAGED_PER_CHECKPOINT: u64 = 128 << 20;

/// A ceiling is raised by at least this, and by at most `CEILING_STEP_MAX`, at a time.
pub const CEILING_STEP_MIN: u64 = 1 << 20;
pub const CEILING_STEP_MAX: u64 = 1 << 30;

/// Space is reserved in a mirror by the size of what is there, within these bounds.
pub const RESERVE_MIN: u64 = 16 << 10;
pub const RESERVE_MAX: u64 = 16 << 20;

/// Writers whose last sequence a journal remembers; the longest silent one is forgotten first.
pub const WRITERS_PER_JOURNAL: usize = 1024;

/// A mirror file ends here at the latest (ext4: 16 TiB less a block).
pub const MIRROR_FILE_MAX: u64 = (16 << 40) - (64 << 10);

/// A mirror that nobody used for so many ticks rests: its files may be closed.
pub const RESTED_TICKS: u32 = 30;

/// Mirrors that rest with open files past which a checkpoint is due, which closes them.
pub const RESTING_MAX: u64 = 256;

/// Holes are punched in whole blocks of this size.
pub const BLOCK: u64 = 4096;

/// Cut ends of the log that are kept aside.
pub const ASIDE_FILES_MAX: usize = 16;

/// Segments that wait for a checkpoint before appends are refused: mirrors that can't be synced
/// must not fill the disk with log.
pub const SEGMENTS_MAX: usize = 32;

/// Segments past which a hold on the log has to end: half of what appends may fill.
pub const SEGMENTS_HELD_MAX: usize = SEGMENTS_MAX / 2;

/// Bytes that a copy of a file moves at a time.
pub const COPY_LEN: u64 = 4 << 20;

/// Room kept for a start on a full disk: a checkpoint and the smallest segment.
pub const BALLAST_MIN: u64 = 512 << 10;
pub const BALLAST_MAX: u64 = 4 << 20;

/// Bytes of one journal that the thread which syncs moves itself; larger pieces have a thread of
/// their own, so that no other append waits behind them.
pub const MOVED_BY_SYNC_MAX: u64 = 8 << 20;
