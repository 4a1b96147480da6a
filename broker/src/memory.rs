//! The memory for what grows with use, and how it is shared out.
//!
//! What asks for a share is refused, goes to disk, or takes smaller pieces when there is none left:
//! each bound says which. Nothing waits for memory, since those who wait hold some.

/// So many bytes, in shares that are never more than all of them. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory(u64);

impl Memory {
    /// The least that a broker works with: smaller ones are this one.
    pub const MIN: u64 = 64 << 20;

    /// Unless configured. A broker with little to do takes some tens of megabytes of it.
    pub const DEFAULT: Memory = Memory(1 << 30);

    /// `len` bytes, or the least that is possible.
    pub fn of(len: u64) -> Self {
        Memory(len.max(Memory::MIN))
    }

    /// Content of all appends that are whole when they come: it waits for the disk alone.
    pub fn whole(self) -> u64 {
        self.0 / 8
    }

    /// Content of all appends that come in pieces; beyond it content goes to disk at once. It has
    /// a bound of its own: clients that stall must not stop those that are quick.
    pub fn pieces(self) -> u64 {
        self.0 / 8
    }

    /// Messages of Append streams that are not whole, beside the first bytes of each.
    pub fn messages(self) -> u64 {
        self.0 / 8
    }

    /// The same of one connection, so that none takes all.
    pub fn messages_of_connection(self) -> u64 {
        self.messages() / 8
    }

    /// Requests of one message that are not whole, beside the first bytes of each.
    pub fn requests(self) -> u64 {
        self.0 / 4
    }

    /// What clients have sent ahead of those who take it, over all connections. A connection gets
    /// its part of it when it begins, so that those that came early hold larger ones: at the worst
    /// that is nine times as much.
    pub fn windows(self) -> u64 {
        self.0 / 4
    }

    /// Parts of stored fragments that readers fetch ahead; who finds none left fetches in one
    /// piece.
    pub fn parts(self) -> u64 {
        self.0 / 16
    }

    /// Chunks of all reads at a time. Those that began while there were few hold larger ones: at
    /// the worst that is seven times as much.
    pub fn chunks(self) -> u64 {
        self.0 / 32
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_not_more_than_all() {
        for len in [0, Memory::MIN, 1 << 30, u64::MAX] {
            let memory = Memory::of(len);
            let shares = [
                memory.whole(),
                memory.pieces(),
                memory.messages(),
                memory.requests(),
                memory.windows(),
                memory.chunks(),
                memory.parts(),
            ];
            let sum: u128 = shares.into_iter().map(u128::from).sum();
            assert!(sum <= u128::from(memory.0), "{len}");
            // Case: the least still takes the longest message of its default.
            assert!(memory.requests() >= crate::server::MESSAGE_LEN_MAX as u64, "{len}");
            assert!(memory.messages_of_connection() >= 1 << 20, "{len}");
        }
    }
}
