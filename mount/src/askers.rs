//! What was told to those who ask for attributes, so that a pass of a follower over its files can
//! be recognised.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Threads of which something is remembered; the one that came first goes first.
const ASKERS_MAX: usize = 1024;

/// Files of which something is remembered for a thread: as many as a follower may have open.
const FILES_MAX: usize = 64;

/// What each thread was told.
#[derive(Debug, Default)]
pub struct Askers {
    by_thread: BTreeMap<u32, Asker>,
    order: VecDeque<u32>,
}

#[derive(Debug, Default)]
struct Asker {
    /// The last size told, by `st_ino`.
    told: BTreeMap<u64, u64>,
    /// The files told to be unchanged at their heads, since any was told to have grown.
    passed: BTreeSet<u64>,
}

impl Askers {
    /// Notes the size that is told to a thread. `true` when it was told the same of this file
    /// before; what has grown ends the pass over all of the thread's files.
    pub fn tell(&mut self, thread: u32, inode: u64, size: u64) -> bool {
        let asker = self.asker(thread);
        match asker.told.get_mut(&inode) {
            Some(told) if *told == size => true,
            Some(told) => {
                *told = size;
                asker.passed.clear();
                false
            }
            None => {
                if asker.told.len() >= FILES_MAX {
                    *asker = Asker::default();
                }
                asker.told.insert(inode, size);
                false
            }
        }
    }

    /// The thread is told that a file is unchanged, having read it to its head.
    pub fn pass(&mut self, thread: u32, inode: u64) {
        self.asker(thread).passed.insert(inode);
    }

    /// Whether the thread has passed all of these files since any of its files grew.
    pub fn has_passed(&self, thread: u32, inodes: impl IntoIterator<Item = u64>) -> bool {
        let Some(asker) = self.by_thread.get(&thread) else { return false };
        inodes.into_iter().all(|inode| asker.passed.contains(&inode))
    }

    /// One of the thread's files grew, though it was not told yet.
    pub fn restart(&mut self, thread: u32) {
        self.asker(thread).passed.clear();
    }

    fn asker(&mut self, thread: u32) -> &mut Asker {
        if !self.by_thread.contains_key(&thread) {
            if self.order.len() >= ASKERS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_thread.remove(&oldest);
            }
            self.order.push_back(thread);
        }
        self.by_thread.entry(thread).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_of_any_file_ends_the_pass() {
        let mut askers = Askers::default();
        assert!(!askers.tell(1, 10, 100));
        assert!(!askers.tell(1, 11, 5));
        assert!(askers.tell(1, 10, 100));
        askers.pass(1, 10);
        assert!(!askers.has_passed(1, [10, 11]));
        askers.pass(1, 11);
        assert!(askers.has_passed(1, [10, 11]));
        assert!(!askers.has_passed(2, [10]));
        // Case: the other file grew.
        assert!(!askers.tell(1, 11, 6));
        assert!(!askers.has_passed(1, [10]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut askers = Askers::default();
        for thread in 0..5_000 {
            askers.tell(thread, 1, 1);
        }
        assert_eq!(askers.by_thread.len(), ASKERS_MAX);
        assert!(!askers.tell(0, 1, 1), "the oldest is forgotten");
        assert!(askers.tell(4_999, 1, 1));
        for inode in 0..1_000 {
            askers.tell(4_999, inode, 1);
        }
        assert!(askers.by_thread[&4_999].told.len() <= FILES_MAX);
    }
}
