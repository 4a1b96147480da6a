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
