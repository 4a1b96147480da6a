//! The identity of a journal between its creation and its deletion.

/// A journal's life: a hash of cluster id, name and create revision (design, section 2).
///
/// Local files are kept by it, open handles and caches belong to it, and the inode is made of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Life(u64);

/// Inodes of journals are `JOURNALS..2^53`: readable by every program that keeps them in a double.
/// Directories lie in `DIRECTORIES..JOURNALS`, placeholders in `PLACEHOLDERS..DIRECTORIES`, and the
/// kernel's node ids below `PLACEHOLDERS`.
pub mod inode_range {
    pub const JOURNALS: u64 = 1 << 52;
    pub const DIRECTORIES: u64 = 1 << 51;
    pub const PLACEHOLDERS: u64 = 1 << 50;
}

impl Life {
    /// Takes any 64 bits and keeps the low 52, so that equal lives and equal inodes are one thing.
    pub const fn new(hash: u64) -> Self {
        Life(hash & (inode_range::JOURNALS - 1))
    }

    pub const fn get(self) -> u64 {
        self.0
    }

    /// The journal's `st_ino`, the same on every mount and after every restart.
    pub const fn inode(self) -> u64 {
        inode_range::JOURNALS | self.0
    }
}

impl std::fmt::Display for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:013x}", self.0)
    }
}

impl std::fmt::Debug for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Life {
    type Err = crate::Invalid;

    /// Reads the 13 hex digits that `Display` writes.
    fn from_str(text: &str) -> Result<Self, crate::Invalid> {
        let bad = || crate::Invalid::new(format!("invalid journal id ({text})"));
        if text.len() != 13 || text.starts_with('+') {
            return Err(bad());
        }
        u64::from_str_radix(text, 16).map(Life::new).map_err(|_| bad())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inodes_stay_in_their_range() {
        for hash in [0, 1, u64::MAX] {
            let inode = Life::new(hash).inode();
            assert!((inode_range::JOURNALS..1 << 53).contains(&inode), "{inode}");
        }
        assert_eq!(Life::new(u64::MAX), Life::new((1 << 52) - 1));
    }

    #[test]
    fn a_life_survives_as_text() {
        let life = Life::new(0xabc);
        assert_eq!(life.to_string(), "0000000000abc");
        assert_eq!(life.to_string().parse(), Ok(life));
        // Case: too short, no hex digits, a sign that integers may have.
        for bad in ["abc", "000000000xabc", "+000000000abc"] {
            assert!(bad.parse::<Life>().is_err(), "{bad}");
        }
    }
}
