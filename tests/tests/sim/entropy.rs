//! The system's chance, of which a simulation has none: tokio takes the order in which it wakes
//! those who watch one thing from std's hasher, and that its keys from `getrandom`.

#![allow(unsafe_code, reason = "a system call is replaced")]

use std::ffi::{c_uint, c_void};

/// In this program the symbol is this one, not that of libc: who calls it gets always the same.
// SAFETY: its signature is that of getrandom(2), and nothing else in the program defines it.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, len: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller has `len` bytes there, as the system call asks for.
    unsafe { std::ptr::write_bytes(buffer.cast::<u8>(), 0x5a, len) };
    isize::try_from(len).expect("no slice is longer")
}
