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
            return reply.opened(handle, direct());
        };
        let register = || reply.open_backing(&*file);
        match self.backings.open(node, opened.handle, register) {
            Ok(backing) => reply.opened_passthrough(handle, passthrough(is_direct), &backing),
            Err(error) => {
                self.passthrough_failed(&error);
                self.fs.refuse_passthrough(opened.handle, caller);
                reply.error(Errno::ESTALE);
            }
        }
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

/// Every read and write comes here. Nothing is left to a close, so none is told.
pub fn direct() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH
}

fn passthrough(is_direct: bool) -> FopenFlags {
    let writes = if is_direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() };
    FopenFlags::FOPEN_PASSTHROUGH | FopenFlags::FOPEN_NOFLUSH | writes
}
