//! The test world: what the tests of this package stand on.
//!
//! The tests see Courant as its users do: as the binary, in processes of its own, through real
//! mounts that other programs read and write. Every wait has a limit, every process is ended and
//! every mount is taken away, however a test ends: a test that panics leaves nothing behind.
//!
//! * [`patience`]: waiting in real time, with a limit;
//! * [`ground`]: temporary folders on a real disk, ports, the programs of `programs/`;
//! * [`running`]: a child process, its output and its end;
//! * [`shell`]: commands that are run to their end;
//! * [`daemon`]: the `courant` binary;
//! * [`detour`]: a way to a broker that can be blocked;
//! * [`filesystem`]: small file systems, and such that lack something;
//! * [`mountdir`]: a directory to mount on, free of mounts when it goes;
//! * [`world`]: `courant up` with its mount, and further mounts of the same broker;
//! * [`model`]: tagged appends, and what must be true of a journal that took them.
//!
//! Real mounts need root and /dev/fuse (`scripts/setup` says what else). The binary is the one
//! beside the tests, or `$COURANT_BIN`.

pub mod daemon;
pub mod detour;
pub mod filesystem;
pub mod ground;
pub mod model;
pub mod mountdir;
pub mod patience;
pub mod running;
pub mod shell;
pub mod world;
pub mod writer;
