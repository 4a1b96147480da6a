//! The FUSE adapter: decode, hand to `fs`, reply.
//!
//! No FUSE thread ever blocks. A reply is computed on the FUSE thread when nothing has to be waited
//! for; else the parked reply goes with a task (`answer`), which waits no longer than its system
//! call may (`calls`). `adapter` is fuser's trait, `opener` and `backing` give the kernel files
//! that it reads itself, `pages` is its page cache, `hold` and `watch` keep those who wait for
//! growth and let them go, `session` is a mount from its start to its end; `notify` raises inotify
//! events. [`mountpoint`] is the directory to mount on, [`proc`] what /proc tells of callers.

mod adapter;
mod answer;
mod askers;
mod backing;
mod calls;
mod convert;
mod hold;
pub mod mountpoint;
mod notify;
mod opener;
mod pages;
mod polls;
pub mod proc;
mod replies;
mod revoke;
mod session;
mod watch;

pub use notify::run_helper as run_notify_helper;
pub use session::{Error, MountHandle, Settings, serve, stack_depth};
