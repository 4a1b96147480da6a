//! What is done to a mount, and what may come of it.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    pub reads: bool,
    pub writes: bool,
    pub append: bool,
    pub create: bool,
    pub exclusive: bool,
    pub truncate: bool,
}

impl How {
    /// As `open(2)` takes them.
    pub fn flags(self) -> OFlags {
        let mut flags = match (self.reads, self.writes) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        flags.set(OFlags::APPEND, self.append);
        flags.set(OFlags::CREATE, self.create);
        flags.set(OFlags::EXCL, self.exclusive);
        flags.set(OFlags::TRUNC, self.truncate);
        flags
    }
}

/// Where a positioned call goes, as it is made: an offset of the file.
pub type At = u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Open {
        mount: usize,
        slot: usize,
        name: &'static str,
        how: How,
    },
    Close {
        mount: usize,
        slot: usize,
    },
    Write {
        mount: usize,
        slot: usize,
        at: At,
        content: Vec<u8>,
    },
    Read {
        mount: usize,
        slot: usize,
        at: At,
        len: usize,
    },
    SeekData {
        mount: usize,
        slot: usize,
        at: At,
    },
    SeekHole {
        mount: usize,
        slot: usize,
        at: At,
    },
    SetAppend {
        mount: usize,
        slot: usize,
        append: bool,
    },
    Fsync {
        mount: usize,
        slot: usize,
    },
    Size {
        mount: usize,
        name: &'static str,
    },
    List {
        mount: usize,
        directory: &'static str,
    },
    Truncate {
        mount: usize,
        name: &'static str,
        size: u64,
    },
    Rename {
        mount: usize,
        from: &'static str,
        to: &'static str,
    },
    Unlink {
        mount: usize,
        name: &'static str,
    },
    Mkdir {
        mount: usize,
        name: &'static str,
    },
    Rmdir {
        mount: usize,
        name: &'static str,
    },
    /// An append that comes past the mounts. It makes the journal where there is none.
    Elsewhere {
        name: &'static str,
        content: Vec<u8>,
    },
    /// The mount dies and comes back: its open files and what it alone knew are gone.
    Restart {
        mount: usize,
    },
}

impl Op {
    /// The mount that it is done on; what comes past them counts as the first's.
    pub fn mount(&self) -> usize {
        match self {
            Op::Elsewhere { .. } => 0,
            Op::Open { mount, .. }
            | Op::Close { mount, .. }
            | Op::Write { mount, .. }
            | Op::Read { mount, .. }
            | Op::SeekData { mount, .. }
            | Op::SeekHole { mount, .. }
            | Op::SetAppend { mount, .. }
            | Op::Fsync { mount, .. }
            | Op::Size { mount, .. }
            | Op::List { mount, .. }
            | Op::Truncate { mount, .. }
            | Op::Rename { mount, .. }
            | Op::Unlink { mount, .. }
            | Op::Mkdir { mount, .. }
            | Op::Rmdir { mount, .. }
            | Op::Restart { mount } => *mount,
        }
    }
}

/// In a line, with bytes cut short.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Write { mount, slot, at, content } => {
                write!(f, "Write {{ mount: {mount}, slot: {slot}, at: {at}, {} }}", cut(content))
            }
            Op::Elsewhere { name, content } => {
                write!(f, "Elsewhere {{ {name}, {} }}", cut(content))
            }
            op => write!(f, "{op:?}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Number(u64),
    Bytes(Vec<u8>),
    Names(Vec<String>),
    Failed(Errno),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Bytes(bytes) => f.write_str(&cut(bytes)),
            outcome => write!(f, "{outcome:?}"),
        }
    }
}

fn cut(bytes: &[u8]) -> String {
    format!("{} bytes {:?}", bytes.len(), &bytes[..bytes.len().min(4)])
}
