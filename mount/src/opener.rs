//! Replying to OPEN: directly, or with a file that the kernel reads itself.

use crate::backing::Backings;
use fs::{Caller, Filesystem, HandleId, Opened, Way};
use fuser::{Errno, FileHandle, FopenFlags, ReplyOpen};
use rustix::io::Errno as Cause;
use std::io;
use std::sync::Arc;

/// Gives handles to the kernel, and the backing ids that go with them.
pub struct Opener {
    fs: Arc<Filesystem>,
    backings: Backings,
}

impl Opener {
    pub fn new(fs: Arc<Filesystem>) -> Self {
        Opener { fs, backings: Backings::default() }
    }

    pub fn reply(&self, opened: Opened, caller: Caller, reply: ReplyOpen) {
        let handle = FileHandle(opened.handle.0);
        let Way::Passthrough { node, file, direct: is_direct } = opened.way else {
            return reply.opened(handle, direct(self.closes(opened.handle)));
        };
        let register = || reply.open_backing(&*file);
        match self.backings.open(node, opened.handle, register) {
            Ok(backing) => {
                let flags = passthrough(is_direct, self.closes(opened.handle));
                reply.opened_passthrough(handle, flags, &backing);
            }
            Err(error) => {
                self.passthrough_failed(&error);
                self.fs.refuse_passthrough(opened.handle, caller);
                reply.error(Errno::ESTALE);
            }
        }
    }

    /// What a handle asks for at each close.
    pub fn closes(&self, handle: HandleId) -> Closes {
        if self.fs.tells_at_close(handle) { Closes::Told } else { Closes::Silent }
    }

    pub fn release(&self, handle: HandleId) {
        self.backings.release(handle);
    }

    /// A cause that lies in the mount and not in one file (no right to it, a data directory that is
    /// itself stacked too deep) is not asked for again.
    fn passthrough_failed(&self, error: &io::Error) {
        tracing::warn!(%error, "the kernel does not read a mirror itself");
        let lasting = [Cause::PERM, Cause::LOOP, Cause::OPNOTSUPP, Cause::NOSYS];
        if Cause::from_io_error(error).is_some_and(|cause| lasting.contains(&cause)) {
            self.fs.stop_passthrough();
        }
    }
}

/// Whether each close(2) comes here, and waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// Writes are answered before they are committed: a close tells what became of them.
    Told,
    /// Nothing is left to a close.
    Silent,
}

impl Closes {
    fn flags(self) -> FopenFlags {
        match self {
            Closes::Told => FopenFlags::empty(),
            Closes::Silent => FopenFlags::FOPEN_NOFLUSH,
        }
    }
}

/// Every read and write comes here.
pub fn direct(closes: Closes) -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | closes.flags()
}

fn passthrough(is_direct: bool, closes: Closes) -> FopenFlags {
    let writes = if is_direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() };
    FopenFlags::FOPEN_PASSTHROUGH | closes.flags() | writes
}
