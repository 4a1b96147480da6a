//! The FUSE adapter: decode, hand to `fs`, reply.
//!
//! No FUSE thread ever blocks. A reply is computed on the FUSE thread when nothing has to be waited
//! for; else the parked reply goes with a task ([`answer`](mod@answer)). [`adapter`] is fuser's
//! trait, [`backing`] the files that the kernel reads itself, [`pages`] the kernel's page cache,
//! [`session`] a mount from its start to its end. [`mountpoint`] is the directory that is mounted
//! on, [`proc`] what /proc tells of callers.

mod adapter;
mod answer;
mod backing;
mod convert;
pub mod mountpoint;
mod opener;
mod pages;
mod polls;
pub mod proc;
mod replies;
mod session;

pub use session::{Error, MountHandle, Settings, serve, stack_depth};
