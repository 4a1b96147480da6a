//! The limits of this crate in one place, each with its reason.

/// The largest append of one write, in bytes: 255 pages. A request of FUSE holds 256 pages, and a
/// buffer that does not begin at a page border touches one page more than it fills, so this is the
/// largest `write(2)` that surely comes as one request.
pub const ATOMIC_MAX: usize = 255 * 4096;

/// The longest name of a file, in bytes: `NAME_MAX` of Linux.
pub const NAME_MAX: usize = 255;

/// Files without a byte that a mount remembers. They cost only memory, and only until unmount.
pub const PLACEHOLDERS_MAX: usize = 65_536;

/// Directories made by `mkdir` that a mount remembers.
pub const MADE_DIRECTORIES_MAX: usize = 65_536;

/// Names of which a mount remembers whether others begin with them. Past it all are asked again.
pub const IMPLIED_MAX: usize = 65_536;

/// Threads that were sent to the other node of a journal and have not opened it yet. One is added
/// by each refused open, and most are gone microseconds later; the oldest goes first.
pub const HANDOVERS_MAX: usize = 1_024;

/// The most content of one open file that waits to be committed, in bytes: the longest append that
/// a broker takes unless it is told otherwise.
pub const STAGED_PER_HANDLE_MAX: u64 = 4 << 30;

/// All content that waits to be committed, in bytes, unless the mount was told otherwise: two of
/// the longest.
pub const STAGED_MAX: u64 = 8 << 30;

/// Open files with content that waits: each takes a descriptor, of which a process may have a few
/// thousand.
pub const DRAFTS_MAX: usize = 1_024;

/// Look-ups in the order of a listing that make a run, whose next ones are asked for together. A
/// glob of a shell opens what it looks up, and two files may be looked up by chance.
pub const RUN_MIN: usize = 3;

/// Journals whose state is asked for together: the request costs little more than that of one, and
/// `ls -l` is through with them in some 4 ms.
pub const FORESEEN_AT_ONCE: usize = 32;

/// How long the state of a journal that was asked for so may be told: a little more than walking
/// through [`FORESEEN_AT_ONCE`] takes. Who is slower asks again.
pub const FORESEEN_AGE: std::time::Duration = std::time::Duration::from_millis(10);

/// Listings of directories that are remembered for the look-ups that follow them: `find` and `du`
/// have as many open as they are deep.
pub const LISTINGS_MAX: usize = 16;

/// Journals in all those listings together: some 10 MB of names. A longer one is not remembered.
pub const LISTED_MAX: usize = 131_072;

/// Threads whose runs are remembered; that which began first goes first.
pub const RUNS_MAX: usize = 64;

/// Ends of appends after a close that `.courant/status` remembers: one screen.
pub const OUTCOMES_MAX: usize = 32;

/// The longest pause between attempts to commit what was closed while the broker was away.
pub const CLOSING_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(30);

/// What an earlier mount left that is committed at once: enough that some which have to wait do not
/// keep the others.
pub const TAKEN_UP_AT_ONCE: usize = 64;

/// What may wait in the queues of an `--async` mount, in bytes: some milliseconds of a fast disk.
/// It is what kill -9 of the mount may lose.
pub const QUEUED_MAX: usize = 16 << 20;

/// What each queued write counts for at least, which bounds their number to 4,096.
pub const QUEUED_MIN: usize = 4 << 10;

/// Bytes of queued writes that ride in one append, unless a single one is longer.
pub const RIDE_MAX: usize = 1 << 20;

/// Fragments that are listed with one request.
pub const FRAGMENTS_AT_ONCE: usize = 10_000;

/// The longest text of a spec, in bytes: a spec is one value of etcd, which takes 1.5 MiB.
pub const SPEC_LEN_MAX: usize = 1 << 20;

/// Open journals that the status names one by one. Of more, only the number is told.
pub const NAMED_MAX: usize = 100;
